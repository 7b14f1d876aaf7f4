#include "dpdk/leftover.hpp"

#include <mutex>

#include "core/undying.hpp"

namespace weftio::dpdk {

namespace {

/// Leftovers that still exist at exit are never freed, because their holders may read them until the process ends.
struct all_leftovers {
    std::mutex mutex;
    leftover_list list;
};

} // namespace

void keep_until_returned(leftover_list&& one) noexcept
{
    auto& all = core::undying<all_leftovers>();
    std::scoped_lock lock(all.mutex);
    all.list.splice(all.list.end(), one);
}

void free_returned_leftovers() noexcept
{
    leftover_list returned;
    auto& all = core::undying<all_leftovers>();
    std::scoped_lock lock(all.mutex);
    for (auto each = all.list.begin(); each != all.list.end();) {
        auto next = std::next(each);
        if ((*each)->returned())
            returned.splice(returned.end(), all.list, each);
        each = next;
    }
}

} // namespace weftio::dpdk
