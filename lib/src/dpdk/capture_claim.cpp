#include "dpdk/capture_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/undying.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

struct used_file {
    dev_t device;
    ino_t inode;
    capture_claim::use use;

    bool operator==(const used_file&) const = default;
};

struct used_files {
    std::mutex mutex;
    std::vector<used_file> all;
};

[[noreturn]] void refuse(std::string_view spec, const std::string& path, bool wants_to_write, bool is_written)
{
    const char* hint = !wants_to_write ? "close that port first, or read another file"
                       : is_written    ? "close that port first, or write another file"
                                       : "writing would empty it; write another file";
    throw error(errc::in_use, fmt::format("weftio: port {}: {} is already being {} by a port of this process; {}", spec,
                                          path, is_written ? "written" : "read", hint));
}

} // namespace

void capture_claim::take(std::string_view spec, const std::string& path, const struct stat& file, use wanted)
{
    release();
    if (!S_ISREG(file.st_mode))
        return;
    const bool writes = wanted == use::write;
    used_files& files = core::undying<used_files>();
    std::scoped_lock lock(files.mutex);
    for (const used_file& used : files.all)
        if (used.device == file.st_dev && used.inode == file.st_ino && (writes || used.use == use::write))
            refuse(spec, path, writes, used.use == use::write);
    files.all.push_back({file.st_dev, file.st_ino, wanted});
    device_ = file.st_dev;
    inode_ = file.st_ino;
    use_ = wanted;
    taken_ = true;
}

void capture_claim::release() noexcept
{
    if (!std::exchange(taken_, false))
        return;
    used_files& files = core::undying<used_files>();
    std::scoped_lock lock(files.mutex);
    const auto found = std::find(files.all.begin(), files.all.end(), used_file{device_, inode_, use_});
    if (found != files.all.end())
        files.all.erase(found);
}

} // namespace weftio::dpdk
