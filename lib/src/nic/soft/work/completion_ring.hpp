// The ring of a completion queue, as the engine fills it (docs/formats.md, "Completions").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/refusal.hpp"
#include "nic/completion_backend.hpp"

namespace weftio::nic::soft {

/// What a completion says.
struct completion {
    std::uint32_t queue = 0, user_index = 0;
    std::uint32_t opcode = WEFTIO_CQE_OPCODE_REQUESTER; ///< of the completion; an error has that of its side
    std::uint8_t entry_opcode = 0;                      ///< of the entry; 0 of a receive
    std::uint32_t index = 0;                            ///< of the first block of the entry, or of the receive
    std::uint32_t bytes = 0;
    std::uint32_t immediate_or_key = 0;
    bool solicited = false;
    refusal reason = refusal::none;
    std::uint64_t time_ns = 0; ///< UTC
};

/// Writes one but for its last four bytes, and returns those. @param pass  owner bit
std::uint32_t write_completion(weftio_cqe& to, const completion& what, std::uint32_t pass) noexcept;

/// One engine owns it and writes; the program consumes. A queue puts a completion only where the ring has room, unless
/// the ring ignores overruns: so a ring that is full holds its queues, or fails them.
class completion_ring {
 public:
    /// @param ring  its memory stays until this ends; the CPU sees it
    /// @param news  where a ring that can tell the program puts itself when something has come; has room for all rings
    completion_ring(const completion_memory& ring, std::uint32_t number, std::vector<completion_ring*>& news);

    std::uint32_t number() const noexcept { return number_; }
    /// Whether one more has room. A ring that fails its queues overruns when it is asked in vain.
    bool has_room() noexcept;
    /// Keeps room for one that comes later, if there is any. Returns whether there was. A ring that holds nothing has
    /// always some, until it has overrun: what is under way is no completion yet.
    bool reserve() noexcept;
    /// Gives up the room of one reserve().
    void release() noexcept { --reserved_; }
    /// Whether the ring can be left for one of another depth.
    enum class room : std::uint8_t {
        enough,
        no_end,    ///< the present ring is full: the completion that ends it has no place
        too_small, ///< more completions are not consumed, or have their room kept
        overrun
    };
    room room_in(std::uint32_t depth) noexcept;
    /// See nic::completion_queue::resize(). @param to  the new entries  @pre room_in() was enough in this turn
    ring_end resize(const completion_memory& to) noexcept;
    /// @pre has_room()
    void put(const completion& what) noexcept;
    /// The ring was full when a completion was due, and fails its queues: nothing is written any more. Any thread.
    bool overrun() const noexcept { return overrun_.load(std::memory_order_relaxed); }
    /// Tells the program, if it has asked to be told, and something has come since or nothing will (arming).
    void look_at_arming() noexcept;
    /// The word that moves when the program consumes, and its value as last read, as it lies in memory.
    const std::uint32_t* record() const noexcept { return record_; }
    std::uint32_t record_seen() const noexcept { return record_seen_; }
    /// Whether it can tell the program at all.
    bool has_event() const noexcept { return event_ >= 0; }

 private:
    static constexpr std::uint32_t index_mask = 0xffffff; ///< indices in a record have 24 bits

    std::uint32_t in_use() const noexcept
    {
        return ((produced_ - consumed_) & index_mask) + (policy_ == completion_overrun::hold ? reserved_ : 0);
    }
    bool find_room() noexcept;
    weftio_cqe& next() const noexcept;

    std::byte* entries_; ///< the last 64 bytes of the first entry
    std::uint32_t* const record_;
    std::uint32_t depth_, stride_bytes_;
    std::uint32_t log_depth_;
    const completion_overrun policy_;
    const std::uint32_t number_;
    const int event_;
    std::uint32_t produced_ = 0; ///< index of the next completion
    std::uint32_t consumed_ = 0; ///< as last read
    std::uint32_t record_seen_ = 0;
    std::uint32_t reserved_ = 0;
    std::uint32_t told_end_ = 0;      ///< index behind the last one that was there when the program was told
    std::uint32_t solicited_end_ = 0; ///< index behind the last one that is solicited or an error
    /// Arming word that was answered last, as it lies in memory; that which was there at first asks for nothing.
    std::uint32_t armed_;
    /// Arming word that was there at the last resize(), and by how much the index in it has moved since it was written.
    std::uint32_t moved_ = 0, moved_by_ = 0;
    std::atomic<bool> overrun_{false};
    std::vector<completion_ring*>& news_;
    bool has_news_ = false; ///< it is in news_
};

} // namespace weftio::nic::soft
