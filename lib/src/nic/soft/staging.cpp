#include "nic/soft/staging.hpp"

#include <algorithm>

namespace weftio::nic {

unsigned staging::turn()
{
    unsigned published = 0;
    for (std::uint32_t landed = target_.copies->landed(); landed_ != landed && !under_way_.empty(); ++landed_) {
        for (std::size_t packets = under_way_.front(); packets != 0; --packets, ++published) {
            const packet& first = waiting_.front();
            // Release: bytes 0..59 of the completion first; the packet itself has landed before the batch was said to have.
            weftio_store_release_sys_u32(first.where, first.publication);
            waiting_.pop_front();
        }
        copying_ -= under_way_.front();
        under_way_.pop_front();
    }
    if (copying_ != waiting_.size() && under_way_.size() < most_under_way)
        start_copies();
    return published;
}

/// One batch of all that waits: a copy for each run of slots side by side, as wide as its longest packet.
void staging::start_copies()
{
    for (auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(copying_); first != waiting_.end();) {
        auto last = first;
        std::uint32_t bytes = first->bytes;
        while (last + 1 != waiting_.end() && (last + 1)->slot == last->slot + 1)
            bytes = std::max(bytes, (++last)->bytes);
        std::size_t offset = std::size_t{first->slot} * stride_bytes_;
        target_.copies->copy(target_.slots + offset, slots_ + offset, {.bytes = bytes, .count = last->slot - first->slot + 1, .stride = stride_bytes_});
        first = last + 1;
    }
    under_way_.push_back(waiting_.size() - copying_);
    copying_ = waiting_.size();
    target_.copies->mark(++started_);
}

} // namespace weftio::nic
