// Memory of devices that the CPU cannot access, as the queue pairs of one engine reach it: by the copy engine of each
// device, through host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "devices/backend.hpp"
#include "nic/soft/rdma/staging_blocks.hpp"
#include "nic/soft/work/by_device.hpp"
#include "weftio/refusal.hpp"

namespace weftio::nic::soft {

/// Why a copy of a queue pair was not made, and who has asked for it.
struct failed_copy {
    refusal why = refusal::none;
    std::uint64_t ticket = 0; ///< of the copy: those before it were made
    bool by_peer = false;     ///< a request of the peer has asked for it
    std::uint32_t psn = 0;    ///< of that request: the first that was not executed
    bool reads = false;       ///< it is a READ
    bool has_psn = false;     ///< of a READ: see roce_sender::note_unsent()
};

/// A copy that a queue pair asks for.
struct wanted_copy {
    staging_block block{}; ///< of `host`
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    std::size_t bytes = 0;
    devices::copy_queue::direction which = devices::copy_queue::direction::to_host;
    bool by_peer = false;
    std::uint32_t psn = 0; ///< see failed_copy

    bool goes_up() const noexcept { return which == devices::copy_queue::direction::to_device; }
};

class staged_stream;

/// Payload that a queue pair has received, and that one copy will carry to the device. Nothing waits for it yet.
struct collected_bytes {
    staged_stream* by = nullptr; ///< nullptr: there are none
    wanted_copy copy{};
    std::uint64_t since = 0; ///< the turn of the first
};

/// What the copies of one queue pair have in common. Copies keep it, because they may outlive the queue pair.
struct copies_of_pair {
    std::uint64_t last = 0;      ///< ticket of the last copy; 0: there was none
    std::uint32_t held = 0;      ///< packets that wait for copies
    failed_copy failed{};        ///< the first that has failed
    collected_bytes collected{}; ///< see staged_copies::collect()
};

/// The copy engine of one device, and host memory for what it copies.
class staged_stream {
 public:
    /// Host memory for each direction.
    static constexpr std::size_t bytes_each_way = std::size_t{8} << 20;

    /// @param memory  2 x bytes_each_way, which the device reads and writes
    staged_stream(std::shared_ptr<devices::copy_queue> copies, std::shared_ptr<const devices::memory_block> memory);
    staged_stream(const staged_stream&) = delete;
    staged_stream& operator=(const staged_stream&) = delete;

    staging_blocks to_device, to_host;

    /// Begins a copy. One that continues the copy before it, for the same queue pair, becomes a part of it.
    void add(const wanted_copy& more, const std::shared_ptr<copies_of_pair>& of, std::uint64_t ticket);
    /// The copies that were begun since the last call become a batch. @return its number, or 0: there are none
    std::uint32_t end_batch() noexcept;
    bool completed(std::uint32_t batch) const noexcept
    {
        return static_cast<std::int32_t>(copies_->completed() - batch) >= 0;
    }
    bool failed() const noexcept { return copies_->failed(); }
    /// The last batch that has ended. Between two turns only.
    std::uint32_t ended() const noexcept { return ended_; }
    /// Whether a batch that has ended is complete, or never will be. Any thread.
    bool is_over(std::uint32_t batch) const noexcept { return completed(batch) || failed(); }

 private:
    void start() noexcept;

    const std::shared_ptr<const devices::memory_block> memory_;
    wanted_copy next_{}; ///< not started yet; 0 bytes: there is none
    std::shared_ptr<copies_of_pair> of_;
    std::uint64_t ticket_ = 0;
    bool begun_ = false; ///< the current batch has copies
    std::uint32_t ended_ = 0;
    const std::shared_ptr<devices::copy_queue> copies_; ///< destroyed first: its copies end before the memory goes
};

/// Of one engine. The copies of a turn are one batch: a *ticket* stands for them. What depends on a copy waits until
/// its ticket is over. Tickets count up from 1 and are over in order.
///
/// A copy costs much more than its bytes. Payload that arrives is therefore collected, also over several turns, until
/// something waits for it: see collect().
///
/// Called by the engine's thread, in a turn or between two turns.
class staged_copies {
 public:
    /// Turns in which a queue pair may collect what nothing waits for.
    static constexpr std::uint64_t most_turns_collected = 128;
    /// Up to so many bytes may be a value for which a kernel waits: they do not join bytes of earlier turns.
    static constexpr std::size_t bytes_of_a_value = 8;

    bool any() const noexcept { return streams_.count() != 0; }
    staged_stream* find(const devices::device_backend* device) const noexcept { return streams_.find(device); }
    void add(std::shared_ptr<devices::device_backend> device, std::unique_ptr<staged_stream> stream)
    {
        streams_.add(std::move(device), std::move(stream));
    }

    /// The ticket of copies that begin now.
    std::uint64_t ticket() const noexcept { return ended_ + 1; }
    /// The ticket of the copies that were begun last.
    std::uint64_t last() const noexcept { return begun_by_.empty() ? ended_ : ticket(); }
    /// Tickets up to this one are over: the copies are made, or have failed.
    std::uint64_t over() const noexcept { return over_; }
    /// Whether copies are under way, or are to begin.
    bool pending() const noexcept { return !batches_.empty() || !collecting_.empty(); }
    /// Turns so far.
    std::uint64_t turns() const noexcept { return turns_; }
    /// Begins a copy for a queue pair, behind what it has collected.
    void begin(staged_stream& by, const wanted_copy& what, const std::shared_ptr<copies_of_pair>& of);
    /// Collects payload for a queue pair. The copy begins when something asks for its ticket (submit()), when the
    /// queue pair begins another one, when its block is full, or after `most_turns_collected` turns.
    /// @param to  without `host` and `block`  @return false: there is no room, and nothing has changed
    bool collect(staged_stream& by, wanted_copy to, const std::uint8_t* bytes,
                 const std::shared_ptr<copies_of_pair>& of);
    /// Begins the copy of what a queue pair has collected.
    void submit(const std::shared_ptr<copies_of_pair>& of);
    void submit_all();
    /// Learns which copies are complete.
    void take_up() noexcept;
    /// The end of a turn: the copies that were begun in it become batches.
    /// @param round  of turn_rounds; a new one submits all: windows may have changed
    void end_turn(std::uint64_t round);
    /// Begins all copies, also between two turns: afterwards staged_stream::ended() counts them all.
    void end_all()
    {
        submit_all();
        end_batches();
    }
    /// The block of these bytes, if copies from devices go there; else none.
    staging_block holder(const std::uint8_t* at) const noexcept;

 private:
    struct batch {
        std::uint64_t ticket;
        staged_stream* stream;
        std::uint32_t number;
        std::vector<std::shared_ptr<copies_of_pair>> of;
        std::vector<staging_block> blocks; ///< which the copies read and write
    };
    static void lose(const batch& lost) noexcept;
    static bool append(const wanted_copy& more, const std::uint8_t* bytes, collected_bytes& to,
                       bool this_turn) noexcept;
    void end_batches();

    by_device<staged_stream> streams_;
    std::deque<batch> batches_;
    std::vector<std::shared_ptr<copies_of_pair>> begun_by_;   ///< in this turn
    std::vector<staging_block> blocks_;                       ///< of copies that were begun in this turn
    std::vector<std::shared_ptr<copies_of_pair>> collecting_; ///< who has collected bytes, the oldest first
    std::uint64_t ended_ = 0, over_ = 0, turns_ = 0, round_ = 0;
};

} // namespace weftio::nic::soft
