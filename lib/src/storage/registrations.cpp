#include "storage/registrations.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/log.hpp"

namespace weftio::storage {

namespace {

std::atomic<std::uint64_t>& next_name() noexcept
{
    static std::atomic<std::uint64_t> name{1};
    return name;
}

std::string limit_of_locked_memory()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return "not limited";
    return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

} // namespace

registrations::registrations(tally& counts) : maker_(getpid()), counts_(counts.rings()) {}

std::uint64_t registrations::name_files(unsigned count) noexcept
{
    return next_name().fetch_add(count, std::memory_order_relaxed);
}

/// A child of fork() has the same rings as its parent, and must leave them alone.
bool registrations::same_process() const noexcept
{
    return getpid() == maker_;
}

std::uint64_t registrations::enter_memory(range which) noexcept
try {
    const std::uint64_t name = name_files(1);
    const std::lock_guard lock(mutex);
    memories_.emplace(name, which);
    return name;
} catch (const std::exception&) { // its ios pin it one by one
    return 0;
}

void registrations::leave_memory(std::uint64_t name) noexcept
{
    if (name == 0 || !same_process())
        return;
    const std::lock_guard lock(mutex);
    memories_.erase(name);
    for (ring* each : rings_)
        each->drop_memory(name);
}

void registrations::leave_files(std::uint64_t first, unsigned count) noexcept
{
    if (!same_process())
        return;
    const std::lock_guard lock(mutex);
    for (ring* each : rings_)
        for (unsigned at = 0; at < count; ++at)
            each->drop_file(first + at);
}

void registrations::join(ring& which)
{
    const std::lock_guard lock(mutex);
    rings_.push_back(&which);
}

void registrations::leave(ring& which) noexcept
{
    if (!same_process())
        return;
    const std::lock_guard lock(mutex);
    std::erase(rings_, &which);
}

registrations::range registrations::find(std::uint64_t memory) const noexcept
{
    const auto found = memories_.find(memory);
    return found == memories_.end() ? range{} : found->second;
}

void registrations::count(int files, int buffers) noexcept
{
    counts_.files.fetch_add(static_cast<std::uint64_t>(files), std::memory_order_relaxed);
    counts_.buffers.fetch_add(static_cast<std::uint64_t>(buffers), std::memory_order_relaxed);
}

void registrations::refused(const char* what, int failure) noexcept
{
    counts_.refused.fetch_add(1, std::memory_order_relaxed);
    if (std::exchange(logged_, true))
        return;
    core::log_or_lose(log_level::info, [&] {
        return fmt::format("weftio: files: io_uring cannot register {} ({}); RLIMIT_MEMLOCK is {} (ulimit -l); "
                           "continuing unregistered, which costs more CPU time",
                           what, std::strerror(failure), limit_of_locked_memory());
    });
}

} // namespace weftio::storage
