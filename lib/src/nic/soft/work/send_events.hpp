// Events that the engine reports to the host about entries: failures, and notifications that entries request. Step 7 of
// the path of an entry in docs/architecture.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "core/counter.hpp"
#include "nic/soft/work/entry.hpp"

namespace weftio::nic::soft {

/// Memory as an entry names it.
struct named_bytes {
    std::uint32_t key = 0;
    std::uint64_t address = 0, bytes = 0;
};

struct send_event {
    std::uint32_t position = 0; ///< free-running index of the entry
    refusal reason = refusal::none;
    std::uint64_t time_ns = 0; ///< UTC time at which the entry was done, or its failure was found
    std::uint32_t detail = 0;  ///< frame_too_long: bytes of the frame; file_failed: errno
    named_bytes memory{};      ///< queue pairs: the memory that was refused; 0 bytes: the reason is not about memory
};

/// A bounded queue of events from the engine's thread to one reader. Never blocks. An event that finds the queue full,
/// or no memory, is lost and counted. Notifications leave one eighth of the queue free for failures; a send queue has
/// at most one failure until it is reset. Most send queues have no events, so each part of the queue is allocated for
/// its first event.
class send_events {
 public:
    /// @param capacity  power of two
    explicit send_events(std::uint32_t capacity)
        : parts_(new part[std::max(capacity / events_of_a_part, 1u)]), mask_(capacity - 1)
    {}

    void put(const send_event& event) noexcept
    {
        if (event.reason != refusal::none)
            last_failure_ = event;
        std::uint32_t at = written_.load(std::memory_order_relaxed);
        std::uint32_t spare = event.reason == refusal::none ? (mask_ + 1) / 8 : 0;
        if (at - read_.load(std::memory_order_acquire) + spare > mask_ || !has_memory(at)) {
            lost.add(1);
            return;
        }
        event_at(at) = event;
        written_.store(at + 1, std::memory_order_release);
    }
    bool get(send_event& event) noexcept
    {
        std::uint32_t at = read_.load(std::memory_order_relaxed);
        if (at == written_.load(std::memory_order_acquire))
            return false;
        event = event_at(at);
        read_.store(at + 1, std::memory_order_release);
        return true;
    }

    /// The last failure that was put, whether it was read or not; `reason` none: there was none. Writer's thread only.
    const send_event& last_failure() const noexcept { return last_failure_; }

    core::counter lost;

 private:
    static constexpr std::uint32_t events_of_a_part = 64;
    using part = std::unique_ptr<send_event[]>;

    part& part_of(std::uint32_t at) const noexcept { return parts_[(at & mask_) / events_of_a_part]; }
    send_event& event_at(std::uint32_t at) const noexcept { return part_of(at)[(at & mask_) % events_of_a_part]; }
    /// The reader sees the part: it is set before `written_` moves.
    bool has_memory(std::uint32_t at) noexcept
    {
        part& wanted = part_of(at);
        if (!wanted)
            wanted.reset(new (std::nothrow) send_event[events_of_a_part]);
        return wanted != nullptr;
    }

    send_event last_failure_;
    const std::unique_ptr<part[]> parts_;
    std::uint32_t mask_;
    alignas(64) std::atomic<std::uint32_t> written_{0};
    alignas(64) std::atomic<std::uint32_t> read_{0};
};

} // namespace weftio::nic::soft
