// Names that others chose, in lines of ours.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace weftio::replay {

/// Writes control characters as \n, \t, \x1b, ...: the name of a file may have any, and steers no terminal.
inline std::string printable(std::string_view text)
{
    constexpr unsigned char first_visible = 0x20, rubout = 0x7f;
    std::string visible;
    for (char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (byte >= first_visible && byte != rubout)
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

} // namespace weftio::replay
