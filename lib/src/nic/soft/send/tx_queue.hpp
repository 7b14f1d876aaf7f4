// The Ethernet send queue: executes SEND entries and WAIT entries.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/counter.hpp"
#include "dpdk/port_queue.hpp"
#include "keys/queue_keys.hpp"
#include "nic/backend.hpp"
#include "nic/soft/send/ethernet_entry.hpp"
#include "nic/soft/send/pacing.hpp"
#include "nic/soft/send/pull_stream.hpp"
#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/work/work_queue.hpp"

namespace weftio::dpdk {
class capture_writer;
}

namespace weftio::nic::soft {

class tx_queue final : public work_queue {
 public:
    tx_queue(const tx_ring& ring, const dpdk::port_queue& port_queue, const pull_streams& pulls,
             const keys::nic_keys& keys, std::unique_ptr<send_header[]> headers);

    /// Send steps 3 to 6: executes at most `most` of the committed entries, hands frames to the driver, completes
    /// frames that came back. Returns how much it moved.
    unsigned turn(std::uint32_t most) override;
    bool waits_for_time() const noexcept override { return pacing_.holding(); }
    std::uint64_t deadline_ns() const noexcept override { return pacing_.holding() ? pacing_.deadline_ns() : 0; }
    void let_go() noexcept override { end_wait(); }
    bool idle() const noexcept override { return work_queue::idle() && staged_end_ == 0 && !pacing_.holding(); }
    bool only_waits() const noexcept override
    {
        return pacing_.holding() && (prepared_ || next_ == submitted_) && completed_ == handed_ && staged_first_ == 0 &&
               !has_failure_to_publish();
    }
    /// Whether these bytes contain a frame that is staged or that the driver has not returned.
    bool uses(const std::byte* begin, std::size_t bytes) noexcept;
    /// Stops the queue: flushes all entries that have not been handed over. Called when the queue is closed or reset.
    void stop();
    /// Stops the queue because it can send nothing any more. The first entry that was not handed over fails with
    /// `reason`; the others are flushed.
    void end(refusal reason, std::uint32_t detail = 0);
    /// Reads the doorbell record. Returns whether the queue has something to send.
    bool has_more();
    /// The port is gone: ends the queue, and also flushes the frames that the driver took and has not given back.
    void lose_port();
    /// Starts again in a fresh ring of the same depth. @pre stop(), and the driver holds no frame
    /// @param index  index of the first entry; tests pass one near the end of the range, so that indices wrap
    void restart(const tx_ring& ring, std::uint32_t index = 0) noexcept;
    /// Whether every submitted entry is done and the driver holds no frame.
    bool all_returned() const noexcept;
    /// Whether the driver has returned all frames that it took, and no burst is handed over partly.
    bool driver_holds_none() const noexcept
    {
        return completed_ == handed_ && (staged_end_ == 0 || (staged_first_ == 0 && pacing_.holding()));
    }
    /// Sets the port queue to which frames are handed, and the copy engines of its sender. @pre driver_holds_none()
    void go_through(const dpdk::port_queue& port_queue, const pull_streams& pulls) noexcept;
    std::unique_ptr<send_header[]> take_headers() noexcept { return std::move(headers_); }
    /// Number of frames prepared for the end of the wait that holds the queue.
    unsigned prepared() const noexcept { return pacing_.holding() ? staged_end_ : 0u; }

    /// Counters of entries: enqueued = sent + waited + failed + flushed, once the queue is idle.
    core::counter sent, sent_bytes, waited, copied_bytes;
    const pacing& schedule() const noexcept { return pacing_; }

 private:
    static constexpr std::uint16_t burst = 64;
    static constexpr std::uint32_t shortest_frame = 60; ///< without FCS; the NIC pads shorter frames
    /// Frames that wait for a deadline use at most this many copy mbufs or slots per queue, and at most half of the
    /// pool in total, so that other queues can send meanwhile.
    static constexpr unsigned most_waiting_copies = 16;
    static constexpr unsigned most_held_keys = 8; ///< a frame that needs more keys is not prepared before its deadline

    bool returned(std::uint32_t index) const noexcept override { return header(index).returned() || port_lost_; }
    std::uint32_t complete_plain() override;
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    void mark_done(std::uint32_t index) noexcept override;
    bool all_handed() const noexcept override { return staged_end_ == 0; }
    void give_up_wait() override;

    bool held();
    void end_wait() noexcept;
    void flush_wait();
    void prepare();
    void prefetch() const noexcept;
    void unprepare();
    bool hold_keys() noexcept;
    bool still_prepared() const noexcept;
    unsigned execute(std::uint32_t most);
    std::uint32_t execute_plain(std::uint32_t most);
    /// Send step 4 for any entry. Returns false when the entry must be tried again later.
    bool execute_one(std::uint32_t index);
    /// Returns none on success, and also when the entry must be tried again later; `sent` is false then.
    refusal send(const entry& entry, std::uint32_t index, bool& sent);
    rte_mbuf* pulled(const entry& entry, const frame_pieces& pieces, send_header& header, refusal& failed);
    bool may_wait(std::uint32_t free, std::uint32_t all) const noexcept;
    std::uint16_t whole_frames() noexcept;
    void check_stream();
    rte_mbuf* copied(const entry& entry, const frame_pieces& pieces, send_header& header, refusal& failed);
    rte_mbuf* new_copy();
    refusal begin_wait();
    void stamp(rte_mbuf& mbuf);
    void stage(rte_mbuf* mbuf);
    bool hand_over();
    void finish(std::uint32_t index, const entry& entry, bool frame, std::uint32_t bytes);
    std::uint32_t first_not_handed();
    std::uint64_t let_go_of_all();
    send_header& header(std::uint32_t index) const noexcept { return headers_[index & (ring_.entries.depth - 1)]; }

    dpdk::port_queue port_queue_;
    const pull_streams* pulls_;
    pull_stream* pulling_ = nullptr; ///< copies some of the staged frames to host memory; nullptr: all are complete
    const keys::queue_keys keys_;
    std::unique_ptr<send_header[]> headers_;
    pacing pacing_;

    bool port_lost_ = false;
    bool prepared_ = false;       ///< no more frames can be prepared before the wait ends
    unsigned waiting_copies_ = 0; ///< copy mbufs and pull_stream slots used by prepared frames
    /// Keys of the frames prepared for the end of the wait, without duplicates.
    std::array<keys::held_key, most_held_keys> held_keys_{};
    unsigned held_count_ = 0;
    std::uint64_t stamp_ns_ = 0; ///< hardware pacing: UTC time at which the next frame leaves; 0: at once

    std::array<rte_mbuf*, burst> staged_{}; ///< frames staged_first_ .. staged_end_ - 1 are to be handed over
    std::uint16_t staged_first_ = 0, staged_end_ = 0;
    entry entry_;
    frame_pieces pieces_;
};

} // namespace weftio::nic::soft
