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
    sender(const wire& wire, const key_table& keys) : wire_(wire), keys_(keys), pool_(wire.port) {}

    /// One turn of every queue. Returns how much moved.
    unsigned turn();
    /// The earliest deadline that holds a queue; 0 when none does.
    std::uint64_t deadline_ns() const noexcept;

    /// Takes the lowest free number, starting at 1. The ring's memory must stay until remove().
    std::uint32_t add(tx_ring ring);
    tx_queue& queue(std::uint32_t number) noexcept { return *queues_[number - 1]; }
    /// Flushes what the driver has not taken and lets the queue go. Headers that the driver still holds are kept until the
    /// port is gone.
    void remove(std::uint32_t number);
    /// Asks the driver for what it has finished with. Returns whether it holds nothing of the queue any more.
    bool drained(std::uint32_t number);

 private:
    wire wire_;
    const key_table& keys_;
    send_pool pool_;
    std::vector<std::unique_ptr<tx_queue>> queues_;
    std::vector<std::unique_ptr<send_header[]>> with_the_driver_;
};

} // namespace weftio::nic
