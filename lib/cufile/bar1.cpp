#include "bar1.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "devices/cuda/bar1.hpp"

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
    const std::uint64_t bytes = devices::cuda::bar1_bytes(gpus[index]);
    return bytes != 0 ? std::optional(bytes) : std::nullopt;
}

} // namespace weftio::cufile
