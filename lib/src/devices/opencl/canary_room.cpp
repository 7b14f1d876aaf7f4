// Checks that the driver can write its files: without them a wrong canary says nothing about the compiler.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "devices/opencl/canary.hpp"

namespace weftio::devices::opencl {

namespace {

constexpr std::size_t needed_bytes = std::size_t{4} << 20; // more than all files that the canary causes

std::filesystem::path existing_part(std::filesystem::path folder)
{
    std::error_code ignored;
    while (!std::filesystem::exists(folder, ignored) && folder != folder.parent_path())
        folder = folder.parent_path();
    return folder;
}

/// Writes `bytes` zeros to the file. Returns 0 or errno.
int write_zeros(int file, std::size_t bytes)
{
    const std::vector<char> zeros(std::size_t{64} << 10);
    while (bytes > 0) {
        const ssize_t written = write(file, zeros.data(), std::min(zeros.size(), bytes));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        bytes -= static_cast<std::size_t>(written);
    }
    return 0;
}

std::string lack_of_room_in(const std::filesystem::path& folder)
{
    std::string name = (existing_part(folder) / "weftio-room-XXXXXX").string();
    const int file = mkostemp(name.data(), O_CLOEXEC);
    const int reason = file < 0 ? errno : write_zeros(file, needed_bytes);
    if (file >= 0) {
        close(file);
        unlink(name.c_str());
    }
    return reason == 0 ? "" : fmt::format("{} cannot be written ({})", folder.string(), std::strerror(reason));
}

} // namespace

std::string limit_of_files()
{
    rlimit limit{};
    const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < needed_bytes;
    return limited ? fmt::format("files are limited to {} bytes (ulimit -f)", limit.rlim_cur) : "";
}

std::string lack_of_room()
{
    std::error_code none;
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(none);
    for (const std::filesystem::path& folder : {pocl_cache(), none ? std::filesystem::path("/tmp") : temporary})
        if (std::string lack = lack_of_room_in(folder); !lack.empty())
            return lack;
    return {};
}

} // namespace weftio::devices::opencl
