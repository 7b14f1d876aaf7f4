#include "bar1.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

namespace weftio::cufile {

namespace {

std::uint64_t number_in(const std::filesystem::path& file)
{
    std::uint64_t number = 0;
    std::ifstream(file) >> std::hex >> number;
    return number;
}

bool is_gpu(const std::filesystem::path& device)
{
    constexpr std::uint64_t nvidia = 0x10de, display = 0x03;
    return number_in(device / "vendor") == nvidia && number_in(device / "class") >> 16 == display;
}

} // namespace

std::optional<std::uint64_t> bar1_bytes(const std::filesystem::path& devices, std::size_t index)
{
    std::vector<std::filesystem::path> gpus;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(devices, none))
        if (is_gpu(entry.path()))
            gpus.push_back(entry.path());
    if (index >= gpus.size())
        return std::nullopt;
    std::sort(gpus.begin(), gpus.end());
    // A line for each BAR: first and last address, flags. BAR1 is the largest, and not always the second: a BAR of 64 bits
    // takes two lines.
    constexpr int bars = 6;
    std::ifstream resource(gpus[index] / "resource");
    std::uint64_t first = 0, last = 0, flags = 0, largest = 0;
    for (int bar = 0; bar < bars && resource >> std::hex >> first >> last >> flags; ++bar)
        if (last > first)
            largest = std::max(largest, last - first + 1);
    return largest != 0 ? std::optional(largest) : std::nullopt;
}

} // namespace weftio::cufile
