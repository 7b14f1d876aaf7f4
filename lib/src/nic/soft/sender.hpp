// The send side of an engine: its send queues, side by side, none waiting for another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/key_table.hpp"
#include "nic/soft/send_headers.hpp"
#include "nic/soft/tx_queue.hpp"

namespace weftio::nic {

/// Everything belongs to the engine: called by its thread, or between two of its turns.
class sender {
 public:
    sender(const wire& wire, const key_table& keys, send_pool& pool) : wire_(wire), keys_(keys), pool_(pool) {}

    /// One turn of every queue, `most` entries each, so that none keeps another from its deadline. Returns how much moved.
    unsigned turn(std::uint32_t most);
    /// The earliest deadline that holds a queue; 0 when none does.
    std::uint64_t deadline_ns() const noexcept;

    /// Takes the lowest free number, starting at 1. The ring's memory must stay until remove(). Throws weftio::error
    /// errc::out_of_memory.
    std::uint32_t add(tx_ring ring);
    tx_queue& queue(std::uint32_t number) noexcept { return *queues_[number - 1]; }
    /// Numbers in use are 1 .. this; find() says which of them are.
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(queues_.size()); }
    tx_queue* find(std::uint32_t number) noexcept { return queues_[number - 1].get(); }
    /// Flushes what the driver has not taken and lets the queue go. Headers that the driver still holds go to the pool, which
    /// keeps them.
    void remove(std::uint32_t number);
    /// Asks the driver for what it has finished with. Returns whether it holds nothing of the queue any more.
    bool drained(std::uint32_t number);
    /// Asks the driver likewise. Returns whether a frame of any queue that is on its way out lies in these bytes.
    bool uses(const std::byte* begin, std::size_t bytes) const;

 private:
    wire wire_;
    const key_table& keys_;
    send_pool& pool_;
    std::vector<std::unique_ptr<tx_queue>> queues_;
};

} // namespace weftio::nic
