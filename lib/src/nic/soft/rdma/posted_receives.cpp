#include "nic/soft/rdma/posted_receives.hpp"

#include <algorithm>

#include "weftio/device/platform.h"

namespace weftio::nic::soft {

/// Reads the doorbell record (docs/formats.md, "Doorbells"). A record that posts more than the ring holds is refused.
void posted_receives::read_doorbell_record() noexcept
{
    if (refused_)
        return;
    // Acquire, pairs with the release of the kernel: the entries are written, and it has read their completions.
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    const auto more = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(posted_));
    refused_ = posted_ - taken_ + more > ring_.depth;
    if (!refused_)
        posted_ += more;
}

std::uint32_t posted_receives::waiting() const noexcept
{
    if (ring_.depth == 0)
        return 0;
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_relaxed_u32(ring_.dbrec)));
    return std::min<std::uint32_t>(static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(taken_)),
                                   ring_.depth);
}

roce::taken posted_receives::take(receive_entry& out) noexcept
{
    if (ring_.depth == 0)
        return roce::taken::none;
    if (taken_ == posted_)
        read_doorbell_record();
    if (taken_ == posted_)
        return refused_ ? roce::taken::refused : roce::taken::none;
    const std::uint32_t slot = taken_ & (ring_.depth - 1);
    out = {taken_++, {ring_.words, ring_.depth * ring_.segments, slot * ring_.segments, ring_.segments}};
    return roce::taken::entry;
}

void posted_receives::restart(const rdma_rx_ring& ring) noexcept
{
    *this = posted_receives(ring);
}

} // namespace weftio::nic::soft
