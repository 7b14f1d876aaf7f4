#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/report.hpp"

namespace weftio::replay {

namespace {

constexpr double width = 960, height = 420, left = 70, right = 40, top = 40, bottom = 50;

/// Where things go on the page: time across, error up, from 100 ns in decades.
struct axes {
    double seconds = 1;
    int decades = 2;

    double x(double s) const { return left + s / seconds * (width - left - right); }
    double y(double ns) const
    {
        double share = std::clamp(std::log10(std::max(ns, 1.0)) - 2, 0.0, static_cast<double>(decades)) / decades;
        return height - bottom - share * (height - top - bottom);
    }
};

axes fit(const error_series& series)
{
    axes made;
    double worst = 1;
    for (const auto& column : series.columns())
        worst = std::max(worst, static_cast<double>(column.max_ns));
    made.decades = std::max(2, static_cast<int>(std::ceil(std::log10(worst))) - 2);
    made.seconds = std::max(1e-3, static_cast<double>(series.columns().size() * series.column_ns()) / 1e9);
    return made;
}

/// 1, 2 or 5 times a power of ten, so that at most eight fit.
double step_s(double seconds)
{
    double power = std::pow(10, std::floor(std::log10(seconds / 8)));
    for (double factor : {1, 2, 5})
        if (8 * factor * power >= seconds)
            return factor * power;
    return 10 * power;
}

std::string grid(const axes& on)
{
    std::string svg;
    for (int decade = 0; decade <= on.decades; ++decade) {
        double ns = std::pow(10, decade + 2);
        svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>"
                           "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                           left, width - right, on.y(ns), on.y(ns), left - 6, on.y(ns) + 4,
                           duration_text(static_cast<std::uint64_t>(ns)));
    }
    const double step = step_s(on.seconds);
    const auto steps = static_cast<unsigned>(on.seconds / step + 1e-9); // 0.3 / 0.1 is less than 3
    for (unsigned at = 0; at <= steps; ++at)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g} s</text>\n", on.x(at * step),
                           height - bottom + 18, at * step);
    return svg;
}

} // namespace

std::string to_svg(const run_report& report)
{
    axes on = fit(report.series);
    double column_s = static_cast<double>(report.series.column_ns()) / 1e9;
    std::string ranges, mean;
    for (std::size_t at = 0; at < report.series.columns().size(); ++at) {
        const auto& column = report.series.columns()[at];
        if (column.count == 0)
            continue;
        double x = on.x((static_cast<double>(at) + 0.5) * column_s);
        ranges += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, on.y(static_cast<double>(column.min_ns)),
                              on.y(static_cast<double>(column.max_ns)));
        mean += fmt::format("{}{:.1f} {:.1f}", mean.empty() ? "M" : "L", x,
                            on.y(static_cast<double>(column.sum_ns) / static_cast<double>(column.count)));
    }
    const histogram& errors = report.total.times.errors;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n"
        "<style>text{{font:12px sans-serif;fill:#333}}.grid{{stroke:#ddd}}path{{fill:none}}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"{}\" y=\"22\">schedule error: sent minus planned, {} frames, p50 {}, p99 {}, max {}</text>\n{}"
        "<path d=\"{}\" stroke=\"#9ec5e8\"/>\n<path d=\"{}\" stroke=\"#1a5fa8\" stroke-width=\"1.5\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time of the plan; line: mean, bars: smallest to "
        "largest</text>\n</svg>\n",
        width, height, left, grouped(errors.count()), duration_text(errors.quantile_ns(0.5)),
        duration_text(errors.quantile_ns(0.99)), duration_text(errors.max_ns()), grid(on), ranges, mean,
        (left + width - right) / 2, height - 10);
}

} // namespace weftio::replay
