// Any bytes as a pcapng file. Where they do not start like one they are blocks of a section that is put in front.
#include <algorithm>
#include <array>
#include <vector>

#include "read_whole.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    static constexpr std::array<std::uint8_t, 28> section{0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0,    0,    0x4d, 0x3c,
                                                          0x2b, 0x1a, 1,    0,    0,  0, 0xff, 0xff, 0xff, 0xff,
                                                          0xff, 0xff, 0xff, 0xff, 28, 0, 0,    0};
    std::vector<std::uint8_t> file(data, data + bytes);
    if (bytes < 4 || !std::equal(section.begin(), section.begin() + 4, data))
        file.insert(file.begin(), section.begin(), section.end());
    weftio::replay::read_whole(file.data(), file.size());
    return 0;
}
