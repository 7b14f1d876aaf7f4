// The inbox of an engine: packets that other engines have received for its queues.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nic/soft/receive/steering.hpp"

struct rte_mbuf;

namespace weftio::nic::soft {

/// A packet that has been steered. The hit of its rule has been counted.
struct handed_packet {
    rte_mbuf* mbuf = nullptr;    ///< nullptr: the packet has moved to the inbox of another engine
    std::uint64_t real_time = 0; ///< receive time, in the format of a completion
    decision where{};
    net::packet_headers headers{}; ///< valid when where.parsed
};

/// A bounded queue from all engines of a port to one of them. Never blocks. Packets from one engine keep their order.
///
/// rte_ring is not used here: an engine that has written an element waits in it for the engines that reserved earlier
/// cells, and one of these may be suspended by the scheduler.
template <class Packet>
class inbox_of {
 public:
    static constexpr std::size_t capacity = 1024; ///< a power of two

    inbox_of() : cells_(new cell[capacity])
    {
        for (std::size_t at = 0; at < capacity; ++at)
            cells_[at].turn.store(at, std::memory_order_relaxed);
    }

    /// Adds a packet. Any engine may call it. Returns false when the inbox is full.
    bool put(const Packet& packet) noexcept
    {
        std::size_t at = written_.load(std::memory_order_relaxed);
        for (;;) {
            // Acquire, pairs with the release in take(): the packet that lay in this cell has been read.
            const std::size_t turn = cells_[at % capacity].turn.load(std::memory_order_acquire);
            if (turn == at) {
                if (written_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed))
                    break;
                continue; // another engine took this cell; `at` is now the next index
            }
            const std::size_t now = written_.load(std::memory_order_relaxed);
            if (now == at) // no engine has taken this index, so the cell is still occupied
                return false;
            at = now;
        }
        cells_[at % capacity].packet = packet;
        cells_[at % capacity].turn.store(at + 1, std::memory_order_release);
        return true;
    }
    /// Whether one more packet has room at this moment. Any engine may call it.
    bool has_room() const noexcept { return room() != 0; }
    /// The number of free cells at this moment.
    std::size_t room() const noexcept
    {
        return capacity - (written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_relaxed));
    }

    /// Takes at most `most` packets, oldest first. Only the engine that owns the inbox calls it. Returns how many it
    /// took.
    std::size_t take(Packet* packets, std::size_t most) noexcept
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
    /// The number of packets in the inbox at this moment.
    std::size_t waiting() const noexcept
    {
        return written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_relaxed);
    }
    /// Calls `visit` for each packet, oldest first. @pre every engine is between two turns
    template <class Visit>
    void for_each(Visit&& visit)
    {
        for (std::size_t at = read_.load(std::memory_order_relaxed); at != written_.load(std::memory_order_relaxed);
             ++at)
            visit(cells_[at % capacity].packet);
    }

 private:
    struct cell {
        /// `at`: the cell is free for the packet of index `at`; `at + 1`: that packet is in the cell.
        std::atomic<std::size_t> turn;
        Packet packet;
    };

    std::unique_ptr<cell[]> cells_;
    alignas(64) std::atomic<std::size_t> written_{0};
    alignas(64) std::atomic<std::size_t> read_{0};
};

using inbox = inbox_of<handed_packet>;

} // namespace weftio::nic::soft
