// A ring of entries of any kind as the NIC sees it: its doorbell record, what is in flight, its completions.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/work/entry.hpp"
#include "nic/soft/work/rings.hpp"
#include "nic/soft/work/send_events.hpp"
#include "nic/soft/work/turn_taker.hpp"

namespace weftio::nic::soft {

/// What the engine remembers of an executed entry until it completes, in one 64-bit word.
struct alignas(8) executed_entry {
    std::uint8_t blocks = 1;
    bool event : 1 = false;  ///< the host wants a notification
    bool counts : 1 = false; ///< it counts as done work: a frame or a copy, not a wait or a NOP
    bool asked : 1 = false;  ///< it asks for a completion of its own
    bool quiet : 1 = false;  ///< when it fails, it has a completion only if it has asked for one
    std::uint8_t spare : 4 = 0;
    std::uint8_t opcode = 0; ///< for its completion; 0 where all entries share one completion
    refusal reason = refusal::none;
    std::uint32_t bytes = 0; ///< length of the frame or copy

    /// Whether the entry is plain: one block, counts, succeeded, wants no notification. Nearly all entries are.
    bool is_plain() const noexcept
    {
        return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(*this)) == plain_word();
    }
    /// Makes this a plain entry of `count` bytes.
    void be_plain(std::uint32_t count) noexcept
    {
        // One store; assigning the members makes GCC store byte by byte.
        const std::uint64_t word = std::uint64_t{count} << 32 | plain_word();
        std::memcpy(static_cast<void*>(this), &word, sizeof word);
    }

 private:
    static constexpr std::uint32_t plain_word() noexcept { return 1U | 2U << 8; }
};

/// One engine owns and drives the ring. Any thread may read counters; one thread at a time may take events.
///
/// Indices: submitted >= next >= handed >= completed. The doorbell record has named the entries before `submitted`; the
/// engine has executed those before `next`; a driver or a copy engine has taken those before `handed`; those before
/// `completed` are done. An entry that the engine does itself is handed over when it is executed.
class work_ring {
 public:
    work_ring(const work_ring&) = delete;
    work_ring& operator=(const work_ring&) = delete;
    virtual ~work_ring() = default;

    /// Whether the ring has no work before its doorbell record moves.
    bool idle() const noexcept { return next_ == submitted_ && completed_ == submitted_ && !has_failure_to_publish(); }
    /// Whether a driver or a copy engine still holds an entry that was handed over.
    bool waits_for_others() const noexcept { return completed_ != handed_; }
    /// Completes the entries that came back. Returns how much it moved.
    unsigned collect() { return complete(); }
    /// Whether only a full completion queue keeps the ring from being idle.
    bool is_held() const noexcept { return held_ && next_ == submitted_; }
    /// The word that moves when a sleeping queue gets work: its doorbell record, or the consumer index of the
    /// completion queue that holds it.
    watched_word wakes_by() const noexcept;
    const tx_ring& ring() const noexcept { return ring_; }
    /// Any thread.
    bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

    /// Counters of entries. A wait that holds the queue counts only as enqueued until it ends. A flushed entry that the
    /// engine has never read counts once for each of its blocks.
    core::counter enqueued, failed_entries, flushed;
    send_events& events() noexcept { return events_; }
    const send_events& events() const noexcept { return events_; }

 protected:
    explicit work_ring(const tx_ring& ring);

    /// Whether the entry at `index`, which was handed over, is done. Called often.
    virtual bool returned(std::uint32_t index) const noexcept = 0;
    /// Completes plain entries that are done, at most to the end of the ring. Stops at the first other entry. Returns
    /// how many.
    virtual std::uint32_t complete_plain() { return 0; }
    /// Counts `entries` entries and `bytes` bytes as done.
    virtual void count_done(std::uint64_t entries, std::uint64_t bytes) = 0;
    /// Marks the entry at `index` as done: no driver holds it, and none will get it.
    virtual void mark_done(std::uint32_t) noexcept {}
    /// Whether all executed entries have been handed over.
    virtual bool all_handed() const noexcept { return true; }
    /// Gives up the wait that holds the queue, if there is one: it will not come to its end.
    virtual void give_up_wait() {}

    void read_doorbell_record();
    unsigned complete();
    /// Whether entries complete one by one, in a completion queue.
    bool completes_each() const noexcept { return ring_.completions.ring != nullptr; }
    void fail(std::uint32_t index, refusal reason, std::uint32_t detail = 0);
    std::uint32_t bury(std::uint32_t index, refusal reason);
    std::uint32_t flush(std::uint32_t from);
    void count_flushed(std::uint64_t entries) noexcept;
    /// Whether its completion queue has overrun.
    bool overran() const noexcept;
    void overrun();
    /// Reports nothing in a completion queue until begin_again().
    void be_silent() noexcept { silent_ = true; }
    void begin_again(const tx_ring& ring, std::uint32_t index) noexcept;
    bool has_failure_to_publish() const noexcept { return failure_to_publish_ != refusal::none; }
    executed_entry& executed(std::uint32_t index) noexcept { return executed_[index & (ring_.entries.depth - 1)]; }

    tx_ring ring_;
    std::vector<executed_entry> executed_;
    send_events events_;
    std::uint32_t record_ = 0;    ///< doorbell record when last read, in memory order
    std::uint32_t submitted_ = 0; ///< index after the last entry committed by the doorbell record
    std::uint32_t next_ = 0;      ///< index of the next entry to execute
    std::uint32_t handed_ = 0;    ///< index after the last entry that was handed over
    std::uint32_t completed_ = 0; ///< index after the last entry that is done
    std::atomic<bool> failed_{false};
    bool held_ = false;                          ///< its completion queue is full
    refusal failure_to_publish_ = refusal::none; ///< reason of a failure without a failed entry; none once published
    bool silent_ = false;

 private:
    void refuse_record();
    unsigned complete_collapsed();
    unsigned complete_each(completion_ring& to);
    void read_head(std::uint32_t index, executed_entry& out) const;
    void publish(std::uint32_t index, refusal reason, std::uint64_t now_ns);
};

} // namespace weftio::nic::soft
