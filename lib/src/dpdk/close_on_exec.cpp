#include "dpdk/close_on_exec.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace weftio::dpdk {

namespace {

/// Calls `visit` with each descriptor of the process. Returns false if they cannot be listed.
template <class Visitor>
bool for_each_descriptor(Visitor&& visit)
{
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
    if (!folder)
        return false;
    while (const dirent* entry = readdir(folder.get()))
        if (const int descriptor = std::atoi(entry->d_name);
            entry->d_name[0] != '.' && descriptor != dirfd(folder.get()))
            visit(static_cast<std::size_t>(descriptor));
    return true;
}

} // namespace

close_on_exec::close_on_exec() noexcept
{
    try { // inside the body: a handler around it would throw again
        is_known_ = for_each_descriptor([&](std::size_t descriptor) {
            if (descriptor >= open_before_.size())
                open_before_.resize(descriptor + 1);
            open_before_[descriptor] = true;
        });
    } catch (const std::bad_alloc&) { // descriptors stay as DPDK opens them
    }
}

close_on_exec::~close_on_exec()
{
    if (is_known_)
        for_each_descriptor([&](std::size_t descriptor) {
            const int number = static_cast<int>(descriptor);
            if (descriptor >= open_before_.size() || !open_before_[descriptor])
                fcntl(number, F_SETFD, fcntl(number, F_GETFD) | FD_CLOEXEC);
        });
}

} // namespace weftio::dpdk
