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

using pages = weftio::registrations::range;

std::uintptr_t page_bytes() noexcept
{
    static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

/// All pages of which a byte is in the range.
pages pages_around(registrations::range which) noexcept
{
    const auto first = reinterpret_cast<std::uintptr_t>(which.first);
    return {first & ~(page_bytes() - 1), (first + which.bytes + page_bytes() - 1) & ~(page_bytes() - 1)};
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

registrations::~registrations()
{
    if (!same_process()) // which has not its threads
        static_cast<void>(monitor_.release());
}

std::uint64_t registrations::name_files(unsigned count) noexcept
{
    return next_name().fetch_add(count, std::memory_order_relaxed);
}

/// A child of fork() has the same rings as its parent, and must leave them alone.
bool registrations::same_process() const noexcept
{
    return getpid() == maker_;
}

std::uint64_t registrations::enter_memory(range which, owner whose) noexcept
try {
    const std::uint64_t name = name_files(1);
    const std::lock_guard lock(mutex);
    memories_.emplace(name, entered{.at = which, .whose = whose});
    return name;
} catch (const std::exception&) { // its ios pin it one by one
    return 0;
}

void registrations::leave_memory(std::uint64_t name) noexcept
{
    if (name == 0 || !same_process())
        return;
    const std::lock_guard lock(mutex);
    for (ring* each : rings_)
        each->drop_memory(name);
    if (const auto found = memories_.find(name); found != memories_.end()) {
        unwatch(found->second);
        memories_.erase(found);
    }
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
    return found == memories_.end() ? range{} : found->second.at;
}

bool registrations::watch(std::uint64_t memory) noexcept
try {
    entered& wanted = memories_.at(memory);
    if (trusts_ || wanted.whose == owner::engine)
        return true;
    if (!monitor_) {
        monitor_ = std::make_unique<weftio::registrations::userfault>([this] { handle_changes(); });
        watching_.store(monitor_.get(), std::memory_order_release);
    }
    monitor_->watch(pages_around(wanted.at));
    return wanted.watched = true;
} catch (const std::exception& why) {
    not_watched(why);
    return false;
}

/// The pages at both ends stay watched: they may have bytes of other memory, too.
void registrations::unwatch(const entered& left) noexcept
{
    if (!left.watched)
        return;
    const auto first = reinterpret_cast<std::uintptr_t>(left.at.first);
    const pages inner{(first + page_bytes() - 1) & ~(page_bytes() - 1), (first + left.at.bytes) & ~(page_bytes() - 1)};
    if (inner.begin < inner.end)
        monitor_->unwatch(inner);
}

/// Memory has been unmapped, moved or emptied. It may be registered again, as what is there by then.
void registrations::handle_changes() noexcept
{
    const std::lock_guard lock(mutex);
    monitor_->take([&](const pages& changed) {
        for (auto& [name, memory] : memories_) {
            if (!memory.watched || !pages_around(memory.at).overlaps(changed))
                continue;
            memory.watched = false; // what is there now may be watched by others
            for (ring* each : rings_)
                each->drop_memory(name);
        }
    });
}

void registrations::count(int files, int buffers) noexcept
{
    counts_.files.fetch_add(static_cast<std::uint64_t>(files), std::memory_order_relaxed);
    counts_.buffers.fetch_add(static_cast<std::uint64_t>(buffers), std::memory_order_relaxed);
}

void registrations::not_watched(const std::exception& why) noexcept
{
    counts_.refused.fetch_add(1, std::memory_order_relaxed);
    if (std::exchange(logged_, true))
        return;
    core::log_or_lose(log_level::info, [&] {
        return fmt::format("weftio: files: io_uring registers no memory that could be unmapped unnoticed ({}); "
                           "continuing unregistered, which costs more CPU time",
                           why.what());
    });
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
