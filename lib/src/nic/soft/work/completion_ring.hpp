// The ring of a completion queue, as the engine writes it (docs/formats.md, "Completions").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/refusal.hpp"
#include "nic/completion_backend.hpp"

namespace weftio::nic::soft {

/// The content of a completion.
struct completion {
    std::uint32_t queue = 0, user_index = 0;
    std::uint32_t opcode = WEFTIO_CQE_OPCODE_REQUESTER; ///< of the completion; an error has its side's error opcode
    std::uint8_t entry_opcode = 0;                      ///< opcode of the entry; 0 for a receive
    std::uint32_t index = 0;                            ///< index of the entry's first block, or of the receive entry
    std::uint32_t bytes = 0;
    std::uint32_t immediate_or_key = 0;
    std::uint32_t source = 0; ///< of a datagram: weftio_cqe::flags_rqpn_be, in host byte order
    bool solicited = false;
    refusal reason = refusal::none;
    std::uint64_t time_ns = 0; ///< UTC
};

/// Writes a completion except its last four bytes, and returns those. @param pass  its lowest bit is the owner bit
std::uint32_t write_completion(weftio_cqe& to, const completion& what, std::uint32_t pass) noexcept;

/// One engine owns it and writes; the program consumes. A queue completes only when the ring has room, unless the ring
/// ignores overruns. A full ring therefore holds its queues, or fails them.
class completion_ring {
 public:
    /// @param ring  its memory stays valid until this ends; the CPU can access it
    /// @param news  list to which a ring with an event is added when it has a new completion; has capacity for all
    ///   rings
    completion_ring(const completion_memory& ring, std::uint32_t number, std::vector<completion_ring*>& news);

    std::uint32_t number() const noexcept { return number_; }
    /// Whether put() may be called. Without room and with completion_overrun::fail, the ring overruns, and put() then
    /// does nothing.
    bool has_room() noexcept;
    /// Reserves room for a later completion. Returns whether there was room. Unless the policy is hold, there is always
    /// room until the ring has overrun: work in flight is not a completion yet.
    bool reserve() noexcept;
    /// Cancels one reserve().
    void release() noexcept { --reserved_; }
    /// Whether resize() to another depth is possible.
    enum class resize_check : std::uint8_t {
        enough,
        no_end,    ///< the present ring is full: the completion that ends it does not fit
        too_small, ///< more completions are unread or reserved than fit
        overrun
    };
    resize_check check_resize(std::uint32_t depth) noexcept;
    /// See nic::completion_queue::resize(). @param to  the new entries
    /// @pre check_resize() has returned enough in this turn
    ring_end resize(const completion_memory& to) noexcept;
    /// @pre has_room()
    void put(const completion& what) noexcept;
    /// Whether the ring was full when a completion was due, and has failed its queues: nothing more is written. Any
    /// thread.
    bool overrun() const noexcept { return overrun_.load(std::memory_order_relaxed); }
    /// Notifies the program if it has armed the queue, and a completion has come since or none will come any more.
    void poll_arming() noexcept;
    /// The consumer index in the record, and its value when last read, in memory order.
    const std::uint32_t* record() const noexcept { return record_; }
    std::uint32_t record_seen() const noexcept { return record_seen_; }
    /// Whether it has an event to notify the program by.
    bool has_event() const noexcept { return event_ != nullptr; }

 private:
    static constexpr std::uint32_t index_mask = 0xffffff; ///< indices in a record have 24 bits

    std::uint32_t in_use() const noexcept
    {
        return ((produced_ - consumed_) & index_mask) + (policy_ == completion_overrun::hold ? reserved_ : 0);
    }
    bool read_record() noexcept;
    weftio_cqe& next() const noexcept;

    std::byte* entries_; ///< address of the last 64 bytes of the first entry
    std::uint32_t* const record_;
    std::uint32_t depth_, stride_bytes_;
    std::uint32_t log_depth_;
    const completion_overrun policy_;
    const std::uint32_t number_;
    const std::function<void()> event_;
    std::uint32_t produced_ = 0; ///< index of the next completion
    std::uint32_t consumed_ = 0; ///< as last read
    std::uint32_t record_seen_ = 0;
    std::uint32_t reserved_ = 0;
    std::uint32_t notified_end_ = 0;  ///< index after the last completion that a notification was about
    std::uint32_t solicited_end_ = 0; ///< index after the last completion that is solicited or an error
    /// The arming word of the last notification, in memory order. The word found at the start asks for nothing.
    std::uint32_t armed_;
    /// The arming word at the last resize(), and by how much resizes have moved the index in it.
    std::uint32_t moved_ = 0, moved_by_ = 0;
    std::atomic<bool> overrun_{false};
    std::vector<completion_ring*>& news_;
    bool has_news_ = false; ///< it is in news_
};

} // namespace weftio::nic::soft
