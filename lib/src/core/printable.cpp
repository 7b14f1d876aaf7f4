#include "core/printable.hpp"

#include <fmt/format.h>

namespace weftio::core {

std::string printable(std::string_view text, std::string_view kept)
{
    constexpr unsigned char first_visible = 0x20, rubout = 0x7f;
    std::string visible;
    for (char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if ((byte >= first_visible && byte != rubout) || kept.find(character) != std::string_view::npos)
            visible += character;
        else if (character == '\n')
            visible += "\\n";
        else if (character == '\t')
            visible += "\\t";
        else
            visible += fmt::format("\\x{:02x}", byte);
    }
    return visible;
}

} // namespace weftio::core
