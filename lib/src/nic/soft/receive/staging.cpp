#include "nic/soft/receive/staging.hpp"

#include <algorithm>

namespace weftio::nic::soft {

staging::delivery staging::turn()
{
    delivery published;
    for (std::uint32_t completed = target_.copies->completed(); completed_ != completed && completed_ != started_;
         ++completed_)
        for (const std::uint32_t end = end_of_batch_[completed_ % most_under_way]; first_ != end; ++first_) {
            const packet& first = packet_at(first_);
            // Release: bytes 0..59 of the completion are visible first. The packet was complete before the copy queue
            // reported its batch.
            weftio_store_release_sys_u32(first.where, first.publication);
            ++published.packets;
            published.bytes += first.bytes;
        }
    if (copied_ != end_ && started_ - completed_ < most_under_way)
        start_copies();
    return published;
}

/// Starts one batch with all waiting packets. Packets in neighboring slots share one copy, each row as long as the
/// longest of them.
void staging::start_copies()
{
    while (copied_ != end_) {
        const packet& first = packet_at(copied_);
        std::uint32_t bytes = first.bytes, last_slot = first.slot;
        while (++copied_ != end_ && packet_at(copied_).slot == last_slot + 1) {
            bytes = std::max(bytes, packet_at(copied_).bytes);
            ++last_slot;
        }
        const std::size_t offset = std::size_t{first.slot} * stride_bytes_;
        target_.copies->copy(target_.slots + offset, slots_ + offset,
                             {.bytes = bytes + zeroed_bytes_,
                              .count = last_slot - first.slot + 1,
                              .to_stride = stride_bytes_,
                              .from_stride = stride_bytes_});
    }
    end_of_batch_[started_ % most_under_way] = end_;
    target_.copies->mark(++started_);
}

} // namespace weftio::nic::soft
