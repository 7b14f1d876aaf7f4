// Any bytes behind a magic of pcap, or behind none; the first byte says which.
#include <vector>

#include "read_whole.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    static constexpr std::uint8_t magics[][4] = {{0xd4, 0xc3, 0xb2, 0xa1}, {0xa1, 0xb2, 0xc3, 0xd4},
                                                 {0x4d, 0x3c, 0xb2, 0xa1}, {0xa1, 0xb2, 0x3c, 0x4d},
                                                 {0x34, 0xcd, 0xb2, 0xa1}, {0xa1, 0xb2, 0xcd, 0x34}};
    if (bytes == 0)
        return 0;
    std::vector<std::uint8_t> file(data + 1, data + bytes);
    constexpr std::size_t count = sizeof magics / sizeof magics[0];
    if (std::size_t kind = data[0] % (count + 1); kind < count)
        file.insert(file.begin(), magics[kind], magics[kind] + sizeof magics[kind]);
    weftio::replay::read_whole(file.data(), file.size());
    return 0;
}
