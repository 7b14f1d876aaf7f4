// The only unit of an engine of file queues: the queues, the I/O way (storage::way) that they share, and the parts in
// flight.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "nic/soft/engine/unit.hpp"
#include "nic/soft/files/file_part.hpp"
#include "nic/soft/files/staging_stream.hpp"
#include "nic/soft/work/work_list.hpp"
#include "storage/way.hpp"

namespace weftio::nic::soft {

/// Belongs to one engine. Queues share the way: each has a bounded number of parts in flight. While there is no room
/// for a part, queues have turns in the order in which they asked.
class file_unit final : public unit {
 public:
    /// For each queue.
    static constexpr std::uint32_t entries_of_a_turn = 64;
    /// For all queues together.
    static constexpr std::uint32_t most_parts = 256;

    /// @param reads_now  see read_now()
    explicit file_unit(std::unique_ptr<storage::way> way, bool reads_now = false);

    unsigned turn(const turn_budget& budget) override;
    bool rest(std::chrono::nanoseconds longest) noexcept override;

    /// Begins a part. Returns false when there is no room: the queue then asks again in its next turn, ahead of queues
    /// that ask later. @param part  without phase, slot address and results
    bool begin(file_part&& part);
    /// The longest read that read_now() tries.
    static constexpr std::uint32_t most_now = 16 * 1024;
    /// Reads all bytes of the part now, if they are in the page cache: submitting it takes longer than a short copy.
    /// Never blocks. @pre not with O_DIRECT  @return false: not all were in the cache, and nothing has changed
    bool read_now(const file_part& part) const noexcept;
    /// The queue has no more parts to begin.
    void leave_line(const file_work& queue) noexcept;
    /// The queue is removed: results of its parts are discarded.
    void disown(const file_work& queue) noexcept;
    /// Processes parts that have ended, and continues them. Returns how much it moved.
    unsigned collect();
    /// Sets the name by which the way may register the memory of that key; 0: clears it. Any thread.
    void name_memory(std::uint32_t key, std::uint64_t name) noexcept;
    /// Whether a part in flight uses the memory of that key.
    bool uses(std::uint32_t key) const noexcept;
    /// Parts in flight copy nothing more to the device memory of that key, which NICs refuse by now: they end with
    /// EFAULT.
    void abandon(std::uint32_t key) noexcept;

    work_list& queues() noexcept { return queues_; }
    staging_streams& streams() noexcept { return streams_; }
    file_way way() const { return way_->name(); }

 private:
    bool may_begin(file_work& queue) const noexcept;
    bool refuse(file_work& queue);
    void go_on(std::uint32_t number);
    bool give_to_way(std::uint32_t number);
    void took(std::uint32_t number, std::int64_t result);
    void go_on_later(std::uint32_t number);
    std::uint64_t memory_of(const file_part& part) const noexcept;
    void copy(file_part& part, bool to_device);
    void end(std::uint32_t number, int error, bool device_failed = false);

    staging_streams streams_;
    std::vector<file_part> parts_;
    std::vector<std::uint32_t> free_;    ///< numbers of parts
    std::vector<std::uint32_t> waiting_; ///< numbers of parts that wait for room in the way, or for a copy engine
    std::deque<file_work*> line_;        ///< queues that found no room, oldest first
    mutable std::mutex memories_mutex_;
    std::unordered_map<std::uint32_t, std::uint64_t> memories_; ///< names, by key
    std::uint32_t in_way_ = 0;
    const bool reads_now_;
    std::unique_ptr<storage::way> way_; ///< its destructor waits for the parts submitted to it
    work_list queues_;                  ///< declared last: queues know the unit until they end
};

} // namespace weftio::nic::soft
