// Which sleeping queues of an engine were rung, by the words of their doorbell pages.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/work/doorbell_pages.hpp"
#include "nic/soft/work/rings.hpp"
#include "nic/soft/work/turn_taker.hpp"
#include "weftio/device/platform.h"

namespace weftio::nic::soft {

/// Resets a doorbell word. Returns whether it was rung. Afterwards the caller sees the record of each queue that rang.
inline bool take_ring(std::uint64_t& word) noexcept
{
    if (std::atomic_ref(word).load(std::memory_order_relaxed) == 0)
        return false;
    // Acquire, pairs with the fence between record and doorbell: the records have moved already.
    return std::atomic_ref(word).exchange(0, std::memory_order_acq_rel) != 0;
}

/// Polls only cache lines that have words of sleeping queues. A push leaves a value other than 0 in the word of its
/// queue, because no queue has number 0. One thread at a time.
///
/// Engines of a port share its pages, and a word may be shared by queues of two engines. The engine that takes the ring
/// does not know the other queue, which then wakes when its record is polled.
class doorbell_watch {
 public:
    /// In a busy turn of the engine, 1/8 of the lines are polled.
    static constexpr std::uint32_t busy_turns_of_a_round = 8;

    /// Makes room for a queue with that word, so that add(), watch() and unwatch() allocate nothing.
    /// @param slot  any number that tells the queue from the others, counted from 0  @throws std::bad_alloc
    void reserve(std::uint32_t slot, const page_word& word);
    /// From now on the queue has this word. @pre reserve(slot, word)
    void add(const page_word& word) noexcept;
    /// The queue has ended, or has moved away. @pre it is not watched
    void remove(const page_word& word) noexcept;
    /// The queue sleeps. The caller looks at its record afterwards: what was rung before may not be reported.
    void watch(std::uint32_t slot, const page_word& word, const watched_word& record) noexcept;
    /// The queue is awake.
    void unwatch(std::uint32_t slot, const page_word& word) noexcept;
    /// Calls `rung` with the slot of each watched queue whose word was rung since the last poll, and whose record has
    /// moved. The call unwatches that queue, and no other.
    /// @param all  poll all lines, as an idle engine does; false: those of one busy turn
    template <class Rung>
    void poll(bool all, Rung&& rung) noexcept
    {
        const std::size_t lines = lines_.size();
        std::size_t left = all ? lines : (lines + busy_turns_of_a_round - 1) / busy_turns_of_a_round;
        for (; left != 0 && !lines_.empty(); --left) {
            at_ = at_ < lines_.size() ? at_ : 0;
            const line polled = lines_[at_];
            if (is_rung(polled.words))
                poll(polled, rung);
            if (at_ < lines_.size() && lines_[at_].words == polled.words) // else it has been replaced by the last one
                ++at_;
        }
    }

 private:
    static constexpr std::uint32_t nobody = UINT32_MAX;

    struct page {
        std::uint64_t* words;
        std::uint32_t users = 0;                                   ///< queues
        std::array<std::uint32_t, doorbell_page::words> first;     ///< slot of its first watched queue, or nobody
        std::array<std::uint32_t, doorbell_page::lines> watched{}; ///< number of watched queues
        std::array<std::uint32_t, doorbell_page::lines> where;     ///< index in lines_, if it has watched queues
    };
    struct line {
        std::uint64_t* words;
        page* of;
    };
    /// A watched queue, among those of its word.
    struct link {
        watched_word record{};
        std::uint32_t before = nobody, next = nobody;
    };

    page* find(const page_word& word) const noexcept;
    void drop(const page& of, std::uint32_t line) noexcept;
    static std::uint32_t number_of(const line& line) noexcept
    {
        return static_cast<std::uint32_t>(line.words - line.of->words) / doorbell_page::words_of_a_line;
    }
    static bool is_rung(const std::uint64_t* words) noexcept
    {
        std::uint64_t any = 0;
#pragma GCC unroll 8
        for (std::uint32_t word = 0; word < doorbell_page::words_of_a_line; ++word)
            any |= weftio_load_acquire_sys_u64(words + word);
        return any != 0;
    }
    template <class Rung>
    void poll(const line& at, Rung&& rung) noexcept
    {
        const auto* const first = &at.of->first[static_cast<std::size_t>(at.words - at.of->words)];
        for (std::uint32_t word = 0; word < doorbell_page::words_of_a_line; ++word) {
            if (first[word] == nobody || !take_ring(at.words[word]))
                continue;
            for (std::uint32_t slot = first[word], next; slot != nobody; slot = next) {
                const link& queue = links_[slot];
                next = queue.next;
                if (weftio_load_acquire_sys_u32(queue.record.word) != queue.record.seen)
                    rung(slot);
            }
        }
    }

    std::vector<std::unique_ptr<page>> pages_;
    std::vector<line> lines_; ///< lines with watched queues
    std::size_t at_ = 0;      ///< index of the line that is polled next
    std::vector<link> links_; ///< by slot
};

} // namespace weftio::nic::soft
