#include "nic/left_behind.hpp"

#include <mutex>

namespace weftio::nic {

namespace {

std::mutex all_mutex;
leftover_place& all()
{
    static auto& never_destroyed = *new leftover_place; // what is left at the end of the process may be read until then
    return never_destroyed;
}

} // namespace

void leave_behind(leftover_place&& one) noexcept
{
    std::scoped_lock lock(all_mutex);
    all().splice(all().end(), one);
}

void free_returned_leftovers() noexcept
{
    leftover_place returned;
    std::scoped_lock lock(all_mutex);
    for (auto each = all().begin(); each != all().end();) {
        auto next = std::next(each);
        if ((*each)->returned())
            returned.splice(returned.end(), all(), each);
        each = next;
    }
}

} // namespace weftio::nic
