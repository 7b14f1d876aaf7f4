#include "devices/cpu/mappings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/guarded.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cpu {

namespace {

/// A mapping as a line of /proc/self/maps describes it.
struct mapping {
    std::uintptr_t from = 0, to = 0;
    bool readable = false, writable = false;
    bool of_file = false; ///< an ordinary file, which may be shorter than the mapping; no device
};

std::optional<mapping> read_mapping(const std::string& line)
{
    mapping found;
    char rights[5] = {};
    int path_at = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu %n", &found.from, &found.to, rights, &inode, &path_at) != 4)
        return std::nullopt;
    found.readable = rights[0] == 'r';
    found.writable = rights[1] == 'w';
    const std::string_view path = std::string_view(line).substr(static_cast<std::size_t>(path_at));
    found.of_file =
        inode != 0 && path.starts_with('/') && (!path.starts_with("/dev/") || path.starts_with("/dev/shm/"));
    return found;
}

/// Whether a byte can be read. Behind the end of its file, a byte cannot, though its mapping says so.
bool is_there(std::uintptr_t address)
{
    std::byte byte{};
    core::guard_memory();
    return core::guarded_copy(&byte, reinterpret_cast<const void*>(address), 1);
}

} // namespace

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
        const std::optional<mapping> next = read_mapping(line);
        if (!next || next->to <= known)
            continue;
        if (next->from > known || !next->readable || (next->of_file && !is_there(std::min(next->to, end) - 1)))
            break;
        writable = writable && next->writable;
        known = next->to;
    }
    if (known < end)
        throw error(errc::not_reachable,
                    fmt::format("weftio: device cpu: {} bytes at {} cannot be adopted: this process cannot read them "
                                "from {:#x} on; use memory that is mapped and readable, and not behind the end of its "
                                "file",
                                bytes, address, std::max(known, first)));
    return writable;
}

} // namespace weftio::devices::cpu
