#include "devices/cuda/bar1.hpp"

#include <algorithm>
#include <fstream>

#include "devices/cuda/management.hpp"

namespace weftio::devices::cuda {

std::uint64_t bar1_bytes(const std::filesystem::path& device)
{
    // A line for each BAR: first and last address, flags. BAR1 is the largest, and not always the second: a BAR of 64
    // bits takes two lines.
    constexpr int bars = 6;
    std::ifstream resource(device / "resource");
    std::uint64_t first = 0, last = 0, flags = 0, largest = 0;
    for (int bar = 0; bar < bars && resource >> std::hex >> first >> last >> flags; ++bar)
        if (last > first)
            largest = std::max(largest, last - first + 1);
    return largest;
}

std::optional<bar1_use> bar1_use_of(const std::string& address)
{
    const management_library library;
    const auto bar1 = library.is_ready() ? library.bar1(library.device(address)) : std::nullopt;
    return bar1 ? std::optional(bar1_use{bar1->total, bar1->free}) : std::nullopt;
}

std::optional<std::uint64_t> free_bar1_bytes(const std::string& address)
{
    const std::optional<bar1_use> use = bar1_use_of(address);
    return use ? std::optional(use->free) : std::nullopt;
}

} // namespace weftio::devices::cuda
