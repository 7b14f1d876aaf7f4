#include "rdma/kept_pairs.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "core/undying.hpp"
#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

struct kept_pair {
    const nic::rdma_queue* queue; ///< of `members`
    std::shared_ptr<void> members;
};

/// It is not destroyed when the process exits: then the queue pairs stay as they are.
struct kept_pairs {
    std::mutex mutex; ///< protects `pairs`
    std::vector<kept_pair> pairs;
    std::atomic<bool> any{false};
};

std::string words_of(const nic::rdma_queue& queue, std::uint32_t windows)
{
    return fmt::format("queue pair {}: {} memory window{} of type 2A {} bound by it", queue.number(), windows,
                       windows == 1 ? "" : "s", windows == 1 ? "is" : "are");
}

} // namespace

void require_no_windows(std::string_view who, const nic::rdma_queue& queue)
{
    if (const std::uint32_t windows = queue.windows(); windows != 0)
        throw error(errc::in_use, fmt::format("weftio: {}: close: {}; invalidate or destroy {} first", who,
                                              words_of(queue, windows), windows == 1 ? "it" : "them"));
}

void keep_while_bound(std::string_view who, const nic::rdma_queue& queue, std::shared_ptr<void> members) noexcept
{
    const std::uint32_t windows = queue.windows();
    if (windows == 0)
        return;
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: {}: {}; it is kept, with its memory, until {} been destroyed", who,
                           words_of(queue, windows), windows == 1 ? "the window has" : "they have");
    });
    kept_pairs& kept = core::undying<kept_pairs>();
    const std::scoped_lock lock(kept.mutex);
    kept.pairs.push_back({&queue, std::move(members)});
    kept.any.store(true);
}

void end_kept_pairs() noexcept
{
    kept_pairs& kept = core::undying<kept_pairs>();
    if (!kept.any.load())
        return;
    std::vector<kept_pair> ended; // destroyed after the lock, because each waits for its engine
    const std::scoped_lock lock(kept.mutex);
    std::erase_if(kept.pairs, [&](kept_pair& each) {
        const bool ends = each.queue->windows() == 0;
        if (ends)
            ended.push_back(std::move(each));
        return ends;
    });
    kept.any.store(!kept.pairs.empty());
}

} // namespace weftio::rdma
