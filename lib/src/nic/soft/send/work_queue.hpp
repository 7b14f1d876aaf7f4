// A send queue of any kind as the NIC sees it: a doorbell to notice, entries to execute in order, a completion to write.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/counter.hpp"
#include "nic/backend.hpp"
#include "nic/soft/send/entry.hpp"
#include "nic/soft/send/send_events.hpp"

namespace weftio::nic {

/// What the engine remembers of an entry until it completes, in one word.
struct alignas(8) executed_entry {
    std::uint8_t blocks = 1;
    bool event = false;  ///< the host wants to be told
    bool counts = false; ///< a frame, or what else the queue is for; not a wait
    refusal reason = refusal::none;
    std::uint32_t bytes = 0; ///< of what counts

    /// One block, it counts, it was done, and nobody wants to be told: nearly all are.
    bool is_plain() const noexcept
    {
        return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(*this)) == plain_word();
    }
    /// Becomes a plain one of `count` bytes.
    void be_plain(std::uint32_t count) noexcept
    {
        const std::uint64_t word = std::uint64_t{count} << 32 | plain_word(); // else GCC stores byte by byte
        std::memcpy(static_cast<void*>(this), &word, sizeof word);
    }

 private:
    static constexpr std::uint32_t plain_word() noexcept { return 1U | 1U << 16; }
};

/// Owned and driven by one engine. Counters and events may be read from anywhere.
///
/// submitted >= next >= handed >= completed: named by the record, executed, taken by whoever does the work (a driver, a
/// copy engine), done. What is executed at once is handed at once.
class work_queue {
 public:
    work_queue(const work_queue&) = delete;
    work_queue& operator=(const work_queue&) = delete;
    virtual ~work_queue() = default;

    /// Executes at most `most` of the entries that are due, completes what came back. Returns how much it moved.
    virtual unsigned turn(std::uint32_t most) = 0;
    /// Deadline of the wait that holds the queue, UTC; 0 when none does.
    virtual std::uint64_t deadline_ns() const noexcept { return 0; }
    /// The deadline that held the queue has come.
    virtual void let_go() noexcept {}
    /// Whether nothing is to be done before the doorbell is rung again.
    virtual bool idle() const noexcept { return next_ == submitted_ && completed_ == submitted_ && !record_refused_; }
    /// Whether nothing is to be done before the doorbell is rung again or the deadline comes.
    virtual bool only_waits() const noexcept { return false; }
    /// Whether somebody has not given back all that was handed over.
    bool waits_for_others() const noexcept { return completed_ != handed_; }
    /// Completes what came back, and does nothing else. Returns how much.
    unsigned collect() { return complete(); }
    /// What the doorbell said when it was last looked at.
    std::uint64_t doorbell_seen() const noexcept { return doorbell_; }
    const tx_ring& ring() const noexcept { return ring_; }
    bool failed() const noexcept { return failed_; }

    /// Entries. What holds the queue is enqueued, and nothing else yet. The blocks of an entry that was flushed, which
    /// nobody has read, count one by one.
    detail::counter enqueued, failed_entries, flushed;
    send_events& events() noexcept { return events_; }

 protected:
    explicit work_queue(const tx_ring& ring);

    /// Whether the entry at `index`, which was handed over, is done. Often called.
    virtual bool returned(std::uint32_t index) const noexcept = 0;
    /// Completes plain entries that are done, as far as that goes and at most to the end of the ring. Returns how many.
    virtual std::uint32_t complete_plain() { return 0; }
    /// So many entries that count, of so many bytes, are done.
    virtual void count_done(std::uint64_t entries, std::uint64_t bytes) = 0;
    /// Nobody works at the entry at `index`, nor will.
    virtual void settle(std::uint32_t) noexcept {}
    /// Whether all that has been executed is handed over.
    virtual bool all_handed() const noexcept { return true; }
    /// The wait that holds the queue, if any, will not come to its end.
    virtual void give_up_wait() {}

    void look();
    unsigned complete();
    void fail(std::uint32_t index, refusal reason, std::uint32_t detail = 0);
    void bury(std::uint32_t index, refusal reason);
    std::uint32_t flush(std::uint32_t from);
    void count_flushed(std::uint64_t entries) noexcept;
    void begin_again(const tx_ring& ring, std::uint32_t index) noexcept;
    executed_entry& executed(std::uint32_t index) noexcept { return executed_[index & (ring_.entries.depth - 1)]; }
    const executed_entry& executed(std::uint32_t index) const noexcept
    {
        return executed_[index & (ring_.entries.depth - 1)];
    }

    tx_ring ring_;
    std::vector<executed_entry> executed_;
    send_events events_;
    std::uint64_t doorbell_ = 0;  ///< as last seen
    std::uint32_t submitted_ = 0; ///< behind the last entry that the record has named
    std::uint32_t next_ = 0;      ///< the next entry to execute
    std::uint32_t handed_ = 0;    ///< behind the last entry that has been handed over
    std::uint32_t completed_ = 0; ///< behind the last entry that is done
    bool failed_ = false;
    bool record_refused_ = false; ///< and no completion has said so yet

 private:
    void refuse_record();
    void publish(std::uint32_t index, refusal reason, std::uint64_t now_ns);
};

} // namespace weftio::nic
