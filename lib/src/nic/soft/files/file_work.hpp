// The send queue of files: reads, writes and syncs, several of them under way at once.
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

/// Entries begin in order, and are executed side by side; they complete in order. Long ones go in parts, so that the
/// queue shares the way with its neighbors: it has a bounded number of parts and of bytes under way.
///
/// An entry that fails while others are under way behind it ends the queue: those are done all the same, and the result
/// words say what became of them; what had not begun is flushed.
class file_work final : public work_queue {
 public:
    /// Of one queue, under way at once; one part always.
    static constexpr std::uint32_t most_parts = 64, most_bytes = 2 * 1024 * 1024;
    /// The longest part in memory that the CPU sees. Parts end at multiples of a page in the file.
    static constexpr std::uint32_t part_bytes = 128 * 1024, page_bytes = 4096;
    /// A turn with budget N begins N parts and N times so many bytes at most, or one part.
    static constexpr std::uint64_t bytes_of_an_entry = 2048;

    /// @param results  a word for each slot, which kernels read
    /// @param unit     that drives it, and outlives it
    file_work(const tx_ring& ring, std::uint64_t* results, const keys::nic_keys& keys, const file_keys& files,
              file_unit& unit);
    ~file_work() override;

    unsigned turn(std::uint32_t most) override;
    /// What has not begun is flushed, also the rest of an entry that has. What is under way ends.
    void stop();
    /// Starts again in a ring that has been made anew. @pre stop(). Parts that are under way are disowned.
    void restart(const tx_ring& ring, std::uint64_t* results) noexcept;
    /// A part of the entry at `index` has ended.
    void landed(std::uint32_t index, const part_result& part);

    bool in_line = false; ///< the unit had no room for its next part

    /// enqueued = read + written + synced + skipped + failed + flushed; all of them entries.
    core::counter read, read_bytes, short_reads, written, written_bytes, synced, skipped;

 private:
    /// An entry that has begun.
    struct operation {
        storage::io::kind what = storage::io::kind::read;
        bool begun = false; ///< all of it, as far as it is to begin
        bool landed = false;
        bool event = false;
        bool read_now = false; ///< by the engine itself
        file_fall fall = file_fall::none;
        refusal reason = refusal::none;
        std::uint32_t parts = 0;  ///< under way
        std::uint64_t offset = 0; ///< in the file
        std::uint64_t bytes = 0;  ///< of the entry
        std::uint64_t end = 0;    ///< what was transferred without a gap
        std::uint64_t failed = 0; ///< begin of the first part that failed
        int error = 0;            ///< of that
        storage::measured how{};
    };
    /// What is left of a turn.
    struct budget {
        std::uint32_t parts;
        std::uint64_t bytes;
    };

    bool returned(std::uint32_t index) const noexcept override { return operation_of(index).landed; }
    void settle(std::uint32_t index) noexcept override;
    void count_done(std::uint64_t, std::uint64_t) override {} // each is counted when it lands
    void give_up_wait() override;

    bool execute(budget& left);
    bool take_up();
    void skip();
    bool refuse_fall();
    bool still_may();
    bool begin_parts(budget& left);
    bool read_now(budget& left);
    std::uint32_t next_part_bytes(const file_lane* lane) const noexcept;
    file_part next_part(file_lane* lane, std::uint32_t bytes);
    void close_entry(refusal reason);
    void finish(std::uint32_t index);
    void finish_failed(std::uint32_t index);
    void count(const operation& done);
    void tell_engine(const operation& done) const noexcept;
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
    entry entry_; ///< the one at next_, while it begins
    file_entry request_;
    std::uint64_t begun_ = 0; ///< bytes of it
    bool under_way_ = false;
    std::uint32_t misses_ = 0; ///< reads that were tried at once, one behind the other, and were not in the page cache
    std::uint32_t passes_ = 0; ///< reads that are not to be tried
    std::uint32_t parts_ = 0;  ///< of all entries, under way
    std::uint64_t bytes_ = 0;  ///< of these
    std::uint32_t not_landed_ = 0; ///< entries that have begun
    std::uint32_t failed_at_ = 0;  ///< the first entry that failed, if any has
    bool any_failed_ = false;
    std::vector<operation> operations_; ///< by slot
};

} // namespace weftio::nic::soft
