// Packets on their way from the engine that received them to the engine of their queue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nic/soft/receive/steering.hpp"

struct rte_mbuf;

namespace weftio::nic {

/// A packet that has been steered, and its rule's hit counted.
struct handed_packet {
    rte_mbuf* mbuf = nullptr;    ///< nullptr: it has been handed on
    std::uint64_t real_time = 0; ///< of its arrival, as in a completion
    decision where{};
};

/// From the engines of a port to one of them. Never blocks; the packets of each that puts some keep their order.
///
/// Not rte_ring: there an engine that has written waits for those whose places are before its own, and one of them may
/// have lost its core in the middle.
class inbox {
 public:
    static constexpr std::size_t capacity = 1024; ///< a power of two

    inbox() : cells_(new cell[capacity])
    {
        for (std::size_t at = 0; at < capacity; ++at)
            cells_[at].turn.store(at, std::memory_order_relaxed);
    }

    /// Any engine. Returns false when it is full.
    bool put(const handed_packet& packet) noexcept
    {
        std::size_t at = written_.load(std::memory_order_relaxed);
        for (;;) {
            // Acquire, pairs with take(): what lay there has been read.
            const std::size_t turn = cells_[at % capacity].turn.load(std::memory_order_acquire);
            if (turn == at) {
                if (written_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed))
                    break;
                continue; // another engine was first: `at` is the place behind now
            }
            const std::size_t now = written_.load(std::memory_order_relaxed);
            if (now == at) // nobody else has taken the place: it is not free
                return false;
            at = now;
        }
        cells_[at % capacity].packet = packet;
        cells_[at % capacity].turn.store(at + 1, std::memory_order_release);
        return true;
    }
    /// Any engine: whether there is room for one more, at this moment.
    bool has_room() const noexcept { return room() != 0; }
    /// As many as are free at this moment.
    std::size_t room() const noexcept
    {
        return capacity - (written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_relaxed));
    }

    /// The engine whose inbox it is: takes at most `most`, oldest first. Returns how many.
    std::size_t take(handed_packet* packets, std::size_t most) noexcept
    {
        const std::size_t first = read_.load(std::memory_order_relaxed);
        std::size_t at = first;
        for (; at != first + most; ++at) {
            cell& next = cells_[at % capacity];
            if (next.turn.load(std::memory_order_acquire) != at + 1)
                break;
            *packets++ = next.packet;
            next.turn.store(at + capacity, std::memory_order_release);
        }
        read_.store(at, std::memory_order_relaxed);
        return at - first;
    }
    /// As many as have been put in until now.
    std::size_t waiting() const noexcept
    {
        return written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_relaxed);
    }
    /// Shows each packet to `look`, oldest first. @pre every engine is between two turns
    template <class Look>
    void for_each(Look&& look)
    {
        for (std::size_t at = read_.load(std::memory_order_relaxed); at != written_.load(std::memory_order_relaxed);
             ++at)
            look(cells_[at % capacity].packet);
    }

 private:
    struct cell {
        std::atomic<std::size_t> turn; ///< at: free for the packet of that index; at + 1: it is there
        handed_packet packet;
    };

    std::unique_ptr<cell[]> cells_;
    alignas(64) std::atomic<std::size_t> written_{0};
    alignas(64) std::atomic<std::size_t> read_{0};
};

} // namespace weftio::nic
