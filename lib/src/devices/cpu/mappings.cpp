#include "devices/cpu/mappings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "weftio/error.hpp"

namespace weftio::devices::cpu {

bool may_be_written(const void* address, std::size_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = bytes > std::numeric_limits<std::uintptr_t>::max() - first
                                   ? std::numeric_limits<std::uintptr_t>::max()
                                   : first + bytes;
    std::ifstream mappings("/proc/self/maps");
    if (!mappings)
        return true;
    std::uintptr_t known = first; // up to here all can be read
    bool writable = true;
    for (std::string line; known < end && std::getline(mappings, line);) {
        std::uintptr_t from = 0, to = 0;
        char rights[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) != 3 || to <= known)
            continue;
        if (from > known || rights[0] != 'r')
            break;
        writable = writable && rights[1] == 'w';
        known = to;
    }
    if (known < end)
        throw error(errc::not_reachable,
                    fmt::format("weftio: device cpu: {} bytes at {} cannot be adopted: this process cannot read them "
                                "from {:#x} on; use memory that is mapped and readable",
                                bytes, address, std::max(known, first)));
    return writable;
}

} // namespace weftio::devices::cpu
