#include "nic/soft/work/completion_ring.hpp"

#include <algorithm>
#include <bit>

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t solicited_only = 1u << 24; // command of an arming word
constexpr std::uint32_t arming_word = 1;           // index of the arming word in the record

/// The last 64 bytes of the first entry.
std::byte* entries_of(const completion_memory& ring) noexcept
{
    return ring.entries.cpu<std::byte>() + ring.entry_bytes - sizeof(weftio_cqe);
}

std::uint32_t log_of(std::uint32_t depth) noexcept
{
    return static_cast<std::uint32_t>(std::countr_zero(depth));
}

} // namespace

std::uint32_t write_completion(weftio_cqe& to, const completion& what, std::uint32_t pass) noexcept
{
    const bool good = what.reason == refusal::none;
    to.flags_rqpn_be = weftio_swap32(what.source);
    to.user_index_be = weftio_swap32(what.user_index);
    to.immediate_be = weftio_swap32(what.immediate_or_key);
    to.byte_count_be = weftio_swap32(what.bytes);
    to.timestamp_be = weftio_swap64(good ? weftio_real_time_from_ns(what.time_ns) : core::error_word_of(what.reason));
    to.sop_drop_qpn_be = weftio_swap32(std::uint32_t{what.entry_opcode} << 24 | what.queue);
    const std::uint32_t solicited = what.solicited && good ? std::uint32_t{WEFTIO_CQE_SOLICITED} << 24 : 0;
    return weftio_cqe_publication(what.index, what.opcode, pass) | solicited;
}

completion_ring::completion_ring(const completion_memory& ring, std::uint32_t number,
                                 std::vector<completion_ring*>& news)
    : entries_(entries_of(ring)), record_(ring.record.cpu<std::uint32_t>()), depth_(ring.depth),
      stride_bytes_(ring.entry_bytes), log_depth_(log_of(ring.depth)), policy_(ring.overrun), number_(number),
      event_(ring.event), armed_(weftio_load_acquire_sys_u32(record_ + arming_word)), news_(news)
{}

/// Reads the consumer index of the record.
bool completion_ring::read_record() noexcept
{
    // Acquire, pairs with the release of the consumer: it has read the completions before.
    record_seen_ = weftio_load_acquire_sys_u32(record_);
    consumed_ = weftio_swap32(record_seen_) & index_mask;
    return in_use() < depth_;
}

bool completion_ring::has_room() noexcept
{
    if (policy_ == completion_overrun::ignore || in_use() < depth_ || read_record())
        return true;
    if (policy_ == completion_overrun::fail)
        overrun_.store(true, std::memory_order_relaxed);
    return overrun();
}

bool completion_ring::reserve() noexcept
{
    if (overrun() || (policy_ == completion_overrun::hold && !has_room()))
        return false;
    ++reserved_;
    return true;
}

weftio_cqe& completion_ring::next() const noexcept
{
    return *reinterpret_cast<weftio_cqe*>(entries_ + std::size_t{produced_ & (depth_ - 1)} * stride_bytes_);
}

void completion_ring::put(const completion& what) noexcept
{
    if (overrun())
        return;
    weftio_cqe& to = next();
    const std::uint32_t publication = write_completion(to, what, produced_ >> log_depth_);
    ++produced_;
    if (what.solicited || what.reason != refusal::none)
        solicited_end_ = produced_;
    // Release: a reader that sees this may read the rest and the received data, and reuse the entry and its buffer.
    weftio_store_release_sys_u32(&to.publication, publication);
    if (has_event() && !has_news_) {
        has_news_ = true;
        news_.push_back(this);
    }
}

completion_ring::resize_check completion_ring::check_resize(std::uint32_t depth) noexcept
{
    const bool has_room_for_end = read_record() || policy_ == completion_overrun::ignore;
    const bool fits = in_use() <= depth || policy_ == completion_overrun::ignore;
    return overrun()           ? resize_check::overrun
           : !has_room_for_end ? resize_check::no_end
           : !fits             ? resize_check::too_small
                               : resize_check::enough;
}

/// The completion that ends the old ring takes an index. The unread completions therefore move by one index, and so do
/// the record and an arming word that was written before.
ring_end completion_ring::resize(const completion_memory& to) noexcept
{
    read_record();
    std::uint32_t unread = (produced_ - consumed_) & index_mask;
    if (policy_ == completion_overrun::ignore)
        unread = std::min({unread, depth_ - 1, to.depth});
    const ring_end found{.first = produced_ - unread, .end = produced_};
    const completion end{.opcode = WEFTIO_CQE_OPCODE_RESIZE};
    weftio_cqe& last = next();
    weftio_store_release_sys_u32(&last.publication, write_completion(last, end, produced_ >> log_depth_));
    ++produced_;
    ++notified_end_;
    ++solicited_end_;
    consumed_ = (found.first + 1) & index_mask;
    weftio_store_release_sys_u32(record_, weftio_swap32(consumed_));
    const std::uint32_t word = weftio_load_acquire_sys_u32(record_ + arming_word);
    moved_by_ = word == moved_ ? moved_by_ + 1 : 1;
    moved_ = word;
    entries_ = entries_of(to);
    depth_ = to.depth;
    stride_bytes_ = to.entry_bytes;
    log_depth_ = log_of(to.depth);
    return found;
}

/// An arming word is `sequence number << 28 | command | consumer index`. The sequence number changes with each event,
/// so an answered word asks for nothing more. Unread completions of an earlier notification do not count: many programs
/// arm the queue before they read it.
void completion_ring::poll_arming() noexcept
{
    has_news_ = false;
    const std::uint32_t word = weftio_load_acquire_sys_u32(record_ + arming_word);
    if (word == armed_)
        return;
    const std::uint32_t command = weftio_swap32(word), asked = command + (word == moved_ ? moved_by_ : 0);
    const std::uint32_t end = command & solicited_only ? solicited_end_ : produced_;
    const auto is_ahead = [](std::uint32_t of, std::uint32_t other) {
        const std::uint32_t news = (of - other) & index_mask;
        return news != 0 && news <= index_mask / 2;
    };
    const std::uint32_t first = is_ahead(asked, notified_end_) ? asked : notified_end_; // that an event may be about
    const bool tells = is_ahead(end, first);
    if (!tells && !overrun())
        return;
    armed_ = word;
    // Of one completion: a program may read only one for each event, and arm the queue before it does.
    notified_end_ = tells && (command & solicited_only) == 0 ? first + 1 : end;
    event_();
}

} // namespace weftio::nic::soft
