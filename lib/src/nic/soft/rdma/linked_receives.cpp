#include "nic/soft/rdma/linked_receives.hpp"

#include <algorithm>

#include "weftio/device/platform.h"

namespace weftio::nic::soft {

/// As posted_receives::read_doorbell_record().
void linked_receives::read_doorbell_record() noexcept
{
    // Acquire, pairs with the release of the program: the entries are written, and linked.
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    const auto more = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(posted_));
    broken_ = broken_ || posted_ - taken_ + more > ring_.depth;
    if (!broken_)
        posted_ += more;
}

/// The next entry of the list. An entry that is posted has a successor: a program keeps one entry, the last, unposted.
bool linked_receives::find_next(std::uint32_t& index) noexcept
{
    if (taken_ == posted_)
        read_doorbell_record();
    if (broken_ || taken_ == posted_)
        return false;
    index = next_;
    const std::uint32_t first = weftio_load_relaxed_u32(ring_.words + std::size_t{index} * ring_.segments * 4);
    next_ = weftio_swap32(first) & 0xffff;
    broken_ = next_ >= ring_.depth;
    ++taken_;
    return true;
}

roce::taken linked_receives::take(receive_entry& out) noexcept
{
    std::uint32_t index = 0;
    if (!returned_.empty()) {
        index = returned_.back();
        returned_.pop_back();
    } else if (!find_next(index)) {
        return broken_ ? roce::taken::refused : roce::taken::none;
    }
    const std::uint32_t segments = ring_.segments;
    out = {index, {ring_.words, ring_.depth * segments, index * segments + 1, segments - 1}};
    check_limit();
    return roce::taken::entry;
}

std::uint32_t linked_receives::waiting() const noexcept
{
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_relaxed_u32(ring_.dbrec)));
    const std::uint32_t listed = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(taken_));
    return std::min(listed + static_cast<std::uint32_t>(returned_.size()), ring_.depth);
}

void linked_receives::check_limit() noexcept
{
    if (limit_ == 0 || waiting() >= limit_)
        return;
    limit_ = 0;
    limit_reached.add(1);
}

} // namespace weftio::nic::soft
