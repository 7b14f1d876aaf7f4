// The send queue of files: reads, writes and syncs, several of them in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/files/file_entry.hpp"
#include "nic/soft/files/file_part.hpp"
#include "nic/soft/work/work_queue.hpp"

namespace weftio::nic::soft {

class file_unit;

/// Entries begin in order, are executed concurrently, and complete in order. Long ones are split into parts, so that
/// the queue shares the way with its neighbors: it has a bounded number of parts and bytes in flight.
///
/// When an entry fails while later ones are in flight, the queue ends: these later entries are still executed, and
/// their result words have their results; entries that have not begun are flushed.
class file_work final : public work_queue {
 public:
    /// Limits for one queue, in flight; one part is always allowed.
    static constexpr std::uint32_t most_parts = 64, most_bytes = 2 * 1024 * 1024;
    /// The longest part in memory that the CPU can access. Parts end at page boundaries of the file.
    static constexpr std::uint32_t part_bytes = 128 * 1024, page_bytes = 4096;
    /// A turn with budget N begins at most N parts and N times so many bytes, or one part.
    static constexpr std::uint64_t bytes_of_an_entry = 2048;

    /// @param results  one word for each slot, which kernels read
    /// @param unit     drives this, and must outlive it
    file_work(const tx_ring& ring, std::uint64_t* results, const keys::nic_keys& keys, const file_keys& files,
              file_unit& unit);
    ~file_work() override;

    unsigned turn(std::uint32_t most) override;
    /// Flushes what has not begun, including the rest of an entry that has. What is in flight is finished.
    void stop();
    /// Starts again with a fresh ring. @pre stop(). Results of parts in flight are discarded.
    void restart(const tx_ring& ring, std::uint64_t* results) noexcept;
    /// A part of the entry at `index` has ended.
    void completed(std::uint32_t index, const part_result& part);

    bool in_line = false; ///< the unit had no room for its next part

    /// In entries: enqueued = read + written + synced + skipped + failed + flushed.
    core::counter read, read_bytes, short_reads, written, written_bytes, synced, skipped;

 private:
    /// An entry that has begun.
    struct operation {
        storage::io::kind what = storage::io::kind::read;
        bool begun = false; ///< no more parts of it will begin
        bool completed = false;
        bool event = false;
        bool read_now = false; ///< by read_now()
        file_fall fall = file_fall::none;
        refusal reason = refusal::none;
        std::uint32_t parts = 0;  ///< parts in flight
        std::uint64_t offset = 0; ///< offset in the file
        std::uint64_t bytes = 0;  ///< length of the entry
        std::uint64_t end = 0;    ///< bytes transferred without a gap
        std::uint64_t failed = 0; ///< offset in the entry of the first failed part
        int error = 0;            ///< errno of that part
        storage::measured how{};
    };
    /// What may still begin in this turn.
    struct budget {
        std::uint32_t parts;
        std::uint64_t bytes;
    };

    bool returned(std::uint32_t index) const noexcept override { return operation_of(index).completed; }
    void mark_done(std::uint32_t index) noexcept override;
    void count_done(std::uint64_t, std::uint64_t) override {} // each entry is counted in finish()
    void give_up_wait() override;

    bool execute(budget& left);
    bool take_up();
    void skip();
    bool refuse_fall();
    bool still_may();
    bool begin_parts(budget& left);
    bool read_now(budget& left);
    std::uint32_t next_part_bytes(const staging_stream* stream) const noexcept;
    file_part next_part(staging_stream* stream, std::uint32_t bytes);
    void close_entry(refusal reason);
    void finish(std::uint32_t index);
    void finish_failed(std::uint32_t index);
    void count(const operation& done);
    void count_for_engine(const operation& done) const noexcept;
    void write_result(std::uint32_t index, std::int64_t result) noexcept;
    void mark_behind(std::uint32_t index) noexcept;
    bool behind_failure(std::uint32_t index) const noexcept;

    operation& operation_of(std::uint32_t index) noexcept { return operations_[index & (ring_.entries.depth - 1)]; }
    const operation& operation_of(std::uint32_t index) const noexcept
    {
        return operations_[index & (ring_.entries.depth - 1)];
    }

    std::uint64_t* results_;
    const keys::queue_keys keys_;
    const file_keys& files_;
    file_unit& unit_;
    entry entry_; ///< the entry at next_, while it begins
    file_entry request_;
    std::uint64_t begun_ = 0; ///< bytes of it that have begun
    bool under_way_ = false;
    std::uint32_t misses_ = 0;        ///< consecutive tries of read_now() that found no cached pages
    std::uint32_t passes_ = 0;        ///< reads for which read_now() is not tried
    std::uint32_t parts_ = 0;         ///< parts in flight, of all entries
    std::uint64_t bytes_ = 0;         ///< their bytes
    std::uint32_t not_completed_ = 0; ///< entries that have begun and not ended
    std::uint32_t failed_at_ = 0;     ///< index of the first failed entry, if any_failed_
    bool any_failed_ = false;
    std::vector<operation> operations_; ///< by slot
};

} // namespace weftio::nic::soft
