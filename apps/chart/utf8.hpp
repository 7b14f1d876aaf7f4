// UTF-8 (RFC 3629): file names may have any bytes, JSON and SVG may not.
#pragma once

#include <cstddef>
#include <string_view>

namespace weftio::chart {

/// Length of the UTF-8 sequence at `at`; 0 if there is none.
inline std::size_t utf8_bytes(std::string_view text, std::size_t at) noexcept
{
    auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
    auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0 && follows(1))
        return 2;
    bool three = first >= 0xe0 && first < 0xf0 && follows(1) && follows(2);
    if (three && !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) >= 0xa0))
        return 3;
    bool four = first >= 0xf0 && first < 0xf5 && follows(1) && follows(2) && follows(3);
    return four && !(first == 0xf0 && byte(1) < 0x90) && !(first == 0xf4 && byte(1) >= 0x90) ? 4 : 0;
}

} // namespace weftio::chart
