#include "nic/soft/send/tx_queue.hpp"

#include <rte_ether.h>
#include <rte_mbuf_dyn.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/guarded.hpp"
#include "net/checksum.hpp"

namespace weftio::nic::soft {

namespace {

bool asks_for_checksums(const entry& entry)
{
    return (entry.cs_flags & (WEFTIO_ETH_L3_CHECKSUM | WEFTIO_ETH_L4_CHECKSUM)) != 0;
}

} // namespace

tx_queue::tx_queue(const tx_ring& ring, const dpdk::port_queue& port_queue, const pull_streams& pulls,
                   const keys::nic_keys& keys, std::unique_ptr<send_header[]> headers)
    : work_queue(ring), port_queue_(port_queue), pulls_(&pulls), keys_(keys, ring.domain), headers_(std::move(headers)),
      pacing_(ring.horizon_ns)
{}

unsigned tx_queue::turn(std::uint32_t most)
{
    read_doorbell_record();
    check_stream();
    unsigned moved = 0;
    // A wait must end even when no entry follows it.
    if (next_ != submitted_ || staged_first_ != staged_end_ || pacing_.holding())
        moved = execute(most);
    if (completed_ != handed_ || has_failure_to_publish())
        moved += complete();
    return moved;
}

unsigned tx_queue::execute(std::uint32_t most)
{
    std::uint32_t before = next_;
    if (pacing_.holding())
        prepare();
    if (held() || !hand_over())
        return next_ - before;
    if (failed())
        count_flushed(flush(next_));
    while (most != 0 && next_ != submitted_ && !pacing_.holding()) {
        std::uint32_t plain = execute_plain(most);
        if (plain == 0 && !execute_one(next_))
            break;
        most -= std::max(plain, 1u);
    }
    if (pacing_.holding()) {
        prepare();
        prefetch();
    } else {
        hand_over();
    }
    return next_ - before;
}

/// While a wait holds the queue: fetches the next wait and frame, which follow the prepared frames, into the cache. The
/// core of the kernel has them, and after the deadline the engine would wait for that.
void tx_queue::prefetch() const noexcept
{
    const std::uint32_t entries = std::min(submitted_ - next_, 2U);
    for (std::uint32_t index = next_; index != next_ + entries; ++index) {
        const std::uint32_t slot = index & (ring_.entries.depth - 1);
        rte_prefetch0(&ring_.entries.words[std::size_t{slot} * 16]);
        rte_prefetch0(&executed_[slot]);
        rte_prefetch0(&headers_[slot]);
        rte_prefetch0(&headers_[slot].mbuf.next);
    }
}

/// Send step 4, zero copy: executes plain entries (read_plain_send()) that name one piece of memory each, all with the
/// same key. Each mbuf points to its frame in that memory. Stops at the first entry that needs execute_one(), and at
/// the end of the ring. Returns how many it has executed. Nearly all entries are plain.
std::uint32_t tx_queue::execute_plain(std::uint32_t most)
{
    if (stamp_ns_ != 0 || (staged_end_ == burst && !hand_over()))
        return 0;
    const entry_ring ring = ring_.entries;
    const std::uint32_t slot = next_ & (ring.depth - 1), span = port_queue_.mtu + RTE_ETHER_HDR_LEN - shortest_frame;
    const std::uint32_t first = next_, available = submitted_ - first;
    const std::uint32_t wanted = std::min({most, available, std::uint32_t{burst} - staged_end_, ring.depth - slot});
    const std::uint32_t* block = &ring.words[std::size_t{slot} * 16];
    const std::uint32_t key = weftio_swap32(weftio_load_relaxed_u32(block + 9));
    keys::key_view lent;
    if (!keys_.read_lent(key, lent))
        return 0;
    // Copies of the ring and the region: the compiler must assume that the stores below may change the originals.
    const keys::key_entry region = lent.entry;
    for (std::uint32_t at = 0; port_queue_.apart && at < wanted; ++at) // all at once, not one after the other
        rte_prefetch0(block + std::size_t{at} * 16);
    std::uint64_t start = plain_start(ring, first);
    send_header* head = &headers_[slot];
    executed_entry* const done_as = &executed_[slot];
    rte_mbuf** const staged = &staged_[staged_end_];
    std::uint32_t done = 0;
    for (plain_send frame; done < wanted; ++done, ++head, block += 16, start += next_plain_start) {
        if (!read_plain_send(block, start, frame) || frame.bytes - shortest_frame > span || frame.key != key ||
            !region.holds(frame.address, frame.bytes))
            break;
        head->attach(region.at(frame.address), frame.bytes);
        done_as[done].be_plain(frame.bytes);
        staged[done] = &head->mbuf;
    }
    staged_end_ = static_cast<std::uint16_t>(staged_end_ + done);
    next_ = first + done;
    return done;
}

/// Whether a wait holds the queue. Ends the wait when its deadline has come, never early: the clock is not read late.
bool tx_queue::held()
{
    if (pacing_.holding() && core::utc_stamp_ns() >= pacing_.deadline_ns())
        end_wait();
    return pacing_.holding();
}

void tx_queue::end_wait() noexcept
{
    if (!pacing_.holding())
        return;
    if (!still_prepared())
        unprepare();
    pacing_.end();
    waited.add(1);
}

/// Prepares frames while a wait holds the queue, so that they only need to be handed over when it ends. A refused entry
/// is ignored here: it fails when it is executed.
void tx_queue::prepare()
{
    if (!still_prepared())
        unprepare();
    for (bool sent = false; !prepared_ && next_ != submitted_;)
        prepared_ = staged_end_ == burst || fetch(ring_.entries, next_, submitted_ - next_, entry_) != refusal::none ||
                    entry_.opcode != WEFTIO_OPCODE_SEND ||
                    gather(entry_, keys_, port_queue_.mtu, pieces_) != refusal::none || !hold_keys() ||
                    send(entry_, next_, sent) != refusal::none || !sent;
}

/// Records the keys of the frame to be prepared. Returns whether there was room for all.
bool tx_queue::hold_keys() noexcept
{
    for (std::uint32_t piece = 0; piece < pieces_.count; ++piece) {
        const keys::held_key by = pieces_.pieces[piece].by;
        const auto end = held_keys_.begin() + held_count_;
        if (by.key == 0 || std::find(held_keys_.begin(), end, by) != end)
            continue;
        if (held_count_ == most_held_keys)
            return false;
        held_keys_[held_count_++] = by;
    }
    return true;
}

/// Whether the memory of all prepared frames is still registered under the same keys.
bool tx_queue::still_prepared() const noexcept
{
    return std::all_of(held_keys_.begin(), held_keys_.begin() + held_count_,
                       [this](const keys::held_key& held) { return keys_.still(held); });
}

/// Undoes prepare(). @pre the staged frames, if any, follow the wait that holds the queue
void tx_queue::unprepare()
{
    if (staged_end_ != 0) {
        rte_pktmbuf_free_bulk(staged_.data(), staged_end_);
        staged_end_ = 0;
        pulling_ = nullptr;
        next_ = handed_;
    }
    prepared_ = false;
    waiting_copies_ = 0;
    held_count_ = 0;
}

/// Send step 4: executes any entry: fetch() copies it, then gather() and send(), or begin_wait(). An entry that is
/// refused fails.
bool tx_queue::execute_one(std::uint32_t index)
{
    refusal reason = fetch(ring_.entries, index, submitted_ - index, entry_);
    if (reason == refusal::none && entry_.opcode == WEFTIO_OPCODE_SEND) {
        bool sent = false;
        reason = gather(entry_, keys_, port_queue_.mtu, pieces_);
        if (reason == refusal::none)
            reason = send(entry_, index, sent);
        if (reason == refusal::none)
            return sent;
    } else if (reason == refusal::none && entry_.opcode != WEFTIO_OPCODE_NOP) {
        if (!hand_over()) // the frames before the wait go first
            return false;
        reason = begin_wait();
    }
    if (reason != refusal::none)
        fail(index, reason, reason == refusal::frame_too_long ? pieces_.bytes : 0);
    else
        finish(index, entry_, false, 0);
    return reason == refusal::none;
}

/// Send step 4 for a wait (docs/formats.md, "Waiting"): holds the queue until the deadline, or leaves the deadline to
/// hardware pacing.
refusal tx_queue::begin_wait()
{
    std::uint64_t deadline_ns = 0;
    if (refusal reason = read_wait(entry_, deadline_ns); reason != refusal::none)
        return reason;
    if (!pacing_.begin(deadline_ns, core::utc_stamp_ns()))
        return refusal::too_far_ahead;
    unprepare();
    if (port_queue_.timestamp_flag != 0 && pacing_.holding()) {
        stamp_ns_ = std::max(stamp_ns_, deadline_ns);
        pacing_.leave();
    }
    return refusal::none;
}

/// Hardware pacing: writes the deadline of the wait into the first frame after it. Later frames cannot overtake that
/// frame.
void tx_queue::stamp(rte_mbuf& mbuf)
{
    if (stamp_ns_ == 0)
        return;
    *RTE_MBUF_DYNFIELD(&mbuf, port_queue_.timestamp_offset, rte_mbuf_timestamp_t*) = stamp_ns_;
    mbuf.ol_flags |= port_queue_.timestamp_flag;
    stamp_ns_ = 0;
}

/// Send step 4: stages the frame. Zero copy when the frame is one piece of memory and nothing must be written to it;
/// otherwise the frame is copied.
refusal tx_queue::send(const entry& entry, std::uint32_t index, bool& sent)
{
    send_header& head = header(index);
    sent = false;
    if (staged_end_ == burst && !hand_over())
        return refusal::none;
    refusal failed = refusal::none;
    bool plain = pieces_.count == 1 && !asks_for_checksums(entry);
    rte_mbuf* mbuf = &head.mbuf;
    if (pieces_.device)
        mbuf = pulled(entry, pieces_, head, failed);
    else if (plain && !pieces_.must_be_copied && pieces_.bytes >= shortest_frame)
        head.attach(pieces_.pieces[0].bytes, pieces_.bytes);
    else
        mbuf = copied(entry, pieces_, head, failed);
    if (!mbuf)
        return failed; // none: no copy mbuf or slot is free, because drivers hold them
    stamp(*mbuf);
    finish(index, entry, true, pieces_.bytes);
    stage(mbuf);
    sent = true;
    return refusal::none;
}

/// Whether one more waiting frame may use a buffer, of which `free` out of `all` are free.
bool tx_queue::may_wait(std::uint32_t free, std::uint32_t all) const noexcept
{
    return waiting_copies_ != most_waiting_copies && free > all / 2;
}

/// Takes an mbuf for a copy; nullptr when none is free now.
rte_mbuf* tx_queue::new_copy()
{
    if (pacing_.holding() && !may_wait(rte_mempool_avail_count(port_queue_.copies), port_queue_.copies->size))
        return nullptr;
    rte_mbuf* mbuf = rte_pktmbuf_alloc(port_queue_.copies);
    if (mbuf && port_queue_.file) // no driver needs the headroom, and a frame may be as long as the mbuf
        mbuf->data_off = 0;
    waiting_copies_ += mbuf && pacing_.holding();
    return mbuf;
}

/// Copies a frame into memory of its own: the bounce buffer of the entry's header for a small frame, else an mbuf of
/// the copy pool. Pads the frame and fills in its checksums (docs/formats.md, "Entries"). Returns nullptr when no mbuf
/// is free now, or the entry has `failed`.
rte_mbuf* tx_queue::copied(const entry& entry, const frame_pieces& pieces, send_header& head, refusal& failed)
{
    std::uint32_t bytes = std::max(pieces.bytes, shortest_frame);
    bool small = port_queue_.bounces && bytes <= send_header::bounce_bytes;
    if (small)
        head.attach(head.bounce.data(), bytes);
    rte_mbuf* mbuf = small ? &head.mbuf : new_copy();
    if (!mbuf)
        return nullptr;
    auto* to = small ? reinterpret_cast<std::uint8_t*>(head.bounce.data())
                     : reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes)));
    if (!to) {
        rte_pktmbuf_free(mbuf);
        return nullptr;
    }
    const bool whole = core::guarded([&](core::touched& there) {
        std::uint8_t* end = to;
        for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
            there.only(pieces.pieces[piece].bytes, pieces.pieces[piece].count);
            std::memcpy(end, pieces.pieces[piece].bytes, pieces.pieces[piece].count);
            end += pieces.pieces[piece].count;
        }
    });
    if (!whole) {
        rte_pktmbuf_free(mbuf);
        waiting_copies_ -= !small && pacing_.holding();
        failed = refusal::memory_gone;
        return nullptr;
    }
    std::memset(to + pieces.bytes, 0, bytes - pieces.bytes);
    if (asks_for_checksums(entry))
        net::fill_checksums({to, pieces.bytes}, (entry.cs_flags & WEFTIO_ETH_L3_CHECKSUM) != 0,
                            (entry.cs_flags & WEFTIO_ETH_L4_CHECKSUM) != 0);
    if (!small)
        head.detach(); // the copy leaves the kernel's buffer free, so the entry is done
    copied_bytes.add(pieces.bytes);
    return mbuf;
}

/// Records that the entry was executed. A frame is done when the driver gives it back; any other entry is done at once.
void tx_queue::finish(std::uint32_t index, const entry& entry, bool frame, std::uint32_t bytes)
{
    executed(index) = {
        .blocks = static_cast<std::uint8_t>(entry.blocks()), .event = entry.event, .counts = frame, .bytes = bytes};
    next_ = index + entry.blocks();
    if (frame)
        return;
    header(index).detach();
    if (staged_end_ == 0)
        handed_ = next_;
    enqueued.add(1);
    if (!pacing_.holding()) // a wait that holds the queue is counted when it ends
        waited.add(1);
}

void tx_queue::stage(rte_mbuf* mbuf)
{
    staged_[staged_end_++] = mbuf;
}

/// Send step 5: hands the staged frames over. Returns whether all were taken; the rest is tried again next turn.
bool tx_queue::hand_over()
{
    if (staged_first_ == staged_end_)
        return true;
    const std::uint16_t end = pulling_ ? whole_frames() : staged_end_;
    if (end == staged_first_)
        return false;
    // Reads the clock only for the first frames after a wait: reading it costs as much as a packet.
    const bool first_behind_a_wait = pacing_.wants_hand_over();
    std::uint64_t now_ns = first_behind_a_wait ? core::utc_stamp_ns() : 0;
    const std::uint16_t taken =
        port_queue_.give(&staged_[staged_first_], static_cast<std::uint16_t>(end - staged_first_));
    if (taken != 0 && first_behind_a_wait)
        pacing_.handed_over(now_ns);
    enqueued.add(taken);
    staged_first_ = static_cast<std::uint16_t>(staged_first_ + taken);
    if (staged_first_ != staged_end_)
        return false;
    staged_first_ = staged_end_ = 0;
    pulling_ = nullptr;
    handed_ = next_;
    return true;
}

/// Send step 6 for plain entries: a frame is done when the driver has given its mbuf back.
std::uint32_t tx_queue::complete_plain()
{
    const std::uint32_t depth = ring_.entries.depth, slot = completed_ & (depth - 1);
    send_header* const first = &headers_[slot];
    send_header* const end = first + std::min(handed_ - completed_, depth - slot);
    std::uint64_t bytes = 0;
    const executed_entry* entry = &executed_[slot];
    send_header* head = first;
    for (; head != end; ++head, ++entry) {
        if (!head->returned() || !entry->is_plain())
            break;
        bytes += entry->bytes;
    }
    const auto done = static_cast<std::uint32_t>(head - first);
    completed_ += done;
    sent_bytes.add(bytes);
    return done;
}

void tx_queue::count_done(std::uint64_t entries, std::uint64_t bytes)
{
    sent.add(entries);
    sent_bytes.add(bytes);
}

} // namespace weftio::nic::soft
