// Reads the counts of another process.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "storage/statistics_page.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

namespace fs = std::filesystem;

/// The process's own number of itself: that of the innermost namespace.
std::uint64_t own_number(const fs::path& process, std::uint64_t otherwise)
{
    std::ifstream in(process / "status");
    for (std::string line; std::getline(in, line);)
        if (line.compare(0, 6, "NSpid:") == 0) {
            std::istringstream numbers(line.substr(6));
            while (numbers >> otherwise) {
            }
        }
    return otherwise;
}

/// Copies a page; false if the file is none.
bool copy_page(const fs::path& from, statistics_copy& to)
{
    const int file = ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    const ssize_t got = ::pread(file, &to, sizeof to, 0);
    ::close(file);
    return got == static_cast<ssize_t>(sizeof to) && to.is == statistics_copy::format && to.page_bytes == sizeof to;
}

} // namespace

std::vector<statistics_copy> read_statistics(const std::string& root, std::uint32_t process)
{
    const fs::path folder = fs::path(root) / "proc" / std::to_string(process);
    std::error_code failed;
    std::vector<statistics_copy> found;
    for (auto at = fs::directory_iterator(folder / "fd", failed); !failed && at != fs::directory_iterator();
         at.increment(failed)) {
        std::error_code gone;
        const std::string target = fs::read_symlink(at->path(), gone).string();
        statistics_copy page{};
        if (target.find(statistics_name) != std::string::npos && copy_page(at->path(), page) &&
            page.process == own_number(folder, process))
            found.push_back(page);
    }
    if (failed)
        throw error(failed.value() == EACCES ? errc::permission_denied : errc::not_found,
                    failed.value() == EACCES
                        ? fmt::format("weftio-files: process {}: belongs to another user; run as that user, or as root",
                                      process)
                        : fmt::format("weftio-files: process {}: {}", process,
                                      failed.value() == ENOENT ? "no such process" : failed.message()));
    return found;
}

} // namespace weftio::storage
