#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "utf8.hpp"

namespace weftio::chart {

double grid_step(double most)
{
    const double power = std::pow(10, std::floor(std::log10(most / 8)));
    for (const double factor : {1, 2, 5})
        if (8 * factor * power >= most)
            return factor * power;
    return 10 * power;
}

std::string escaped(std::string_view text)
{
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = utf8_bytes(text, at);
        const char first = text[at];
        if (bytes == 0 || (bytes == 1 && (static_cast<unsigned char>(first) < 0x20 || first == 0x7f)))
            out += "&#xfffd;";
        else if (first == '&' || first == '<' || first == '>')
            out += fmt::format("&#{};", static_cast<int>(first));
        else
            out += text.substr(at, bytes);
        at += std::max<std::size_t>(bytes, 1);
    }
    return out;
}

std::string document(double width, double height, std::string_view style, std::string_view body)
{
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n"
                       "<style>text{{font:12px sans-serif;fill:#333}}.title{{font-weight:bold}}.grid{{stroke:#ddd}}"
                       "path{{fill:none}}{}</style>\n"
                       "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
                       width, height, style, body);
}

} // namespace weftio::chart
