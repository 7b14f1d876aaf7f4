// How an Ethernet send queue sends frames from memory that the CPU cannot access.
#include <algorithm>
#include <cstring>

#include "core/guarded.hpp"
#include "nic/soft/send/tx_queue.hpp"

namespace weftio::nic::soft {

/// Send step 4 for a frame with pieces that the CPU cannot access: the copy engine of their device copies them to a
/// slot of host memory. The entry is done when the driver has the frame. Returns nullptr when no slot is free now, or
/// when the entry has `failed`.
rte_mbuf* tx_queue::pulled(const entry& entry, const frame_pieces& pieces, send_header& head, refusal& failed)
{
    const std::uint32_t bytes = std::max(pieces.bytes, shortest_frame);
    pull_stream* const stream = pulls_->find(pieces.device);
    if (pulling_ && pulling_ != stream)
        return nullptr; // the frames of the other device go first
    if (pacing_.holding() && !may_wait(stream->free_slots(), pull_stream::slots))
        return nullptr;
    rte_mbuf* const mbuf = stream->begin(bytes);
    if (!mbuf)
        return nullptr;
    std::byte* end = pull_stream::bytes_of(*mbuf);
    bool whole = true;
    for (const frame_piece *piece = &pieces.pieces[0], *last = piece + pieces.count; piece != last; ++piece) {
        if (piece->device_only)
            stream->bring(end, piece->bytes, piece->count);
        else
            whole = whole && core::guarded_copy(end, piece->bytes, piece->count);
        end += piece->count;
    }
    std::memset(end, 0, bytes - pieces.bytes);
    stream->end(*mbuf, pieces.bytes, entry.cs_flags);
    if (!whole) { // the slot is free again once the copies to it are complete
        rte_pktmbuf_free(mbuf);
        failed = refusal::memory_gone;
        return nullptr;
    }
    pulling_ = stream;
    waiting_copies_ += pacing_.holding();
    head.detach(); // by the time the driver gets the frame, it has been copied out of the kernel's memory
    copied_bytes.add(pieces.bytes);
    return mbuf;
}

/// The end of the staged frames that can be given to the driver, because all their bytes have arrived.
std::uint16_t tx_queue::whole_frames() noexcept
{
    std::uint16_t at = staged_first_;
    for (rte_mbuf* whole; at != staged_end_ && (whole = pulling_->whole(staged_[at], port_queue_)) != nullptr; ++at)
        staged_[at] = whole;
    return at;
}

/// If the copy engine has failed, ends the queue: its frames never become complete.
void tx_queue::check_stream()
{
    if (!pulling_ || !pulling_->failed())
        return;
    if (failed())
        stop(); // end() ignores a queue in error; only stop() releases its frames
    else
        end(refusal::device_failed);
}

void tx_queue::go_through(const dpdk::port_queue& port_queue, const pull_streams& pulls) noexcept
{
    if (pulls_ != &pulls && pulling_)
        unprepare(); // copy engines belong to one sender
    port_queue_ = port_queue;
    pulls_ = &pulls;
}

} // namespace weftio::nic::soft
