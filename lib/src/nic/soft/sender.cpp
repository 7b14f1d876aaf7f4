#include "nic/soft/sender.hpp"

#include <rte_ethdev.h>

#include <algorithm>

namespace weftio::nic {

unsigned sender::turn(std::uint32_t most)
{
    unsigned moved = 0;
    bool waits_for_driver = false;
    for (auto& queue : queues_)
        if (queue) {
            moved += queue->turn(most);
            waits_for_driver = waits_for_driver || queue->waits_for_driver();
        }
    // Drivers with a ring of their own look at what they have sent when they are given more: with nothing to give, they are asked.
    if (moved == 0 && waits_for_driver)
        rte_eth_tx_done_cleanup(wire_.port, 0, 0);
    return moved;
}

std::uint64_t sender::deadline_ns() const noexcept
{
    std::uint64_t earliest = 0;
    for (const auto& queue : queues_)
        if (queue)
            if (std::uint64_t deadline = queue->deadline_ns(); deadline != 0 && (earliest == 0 || deadline < earliest))
                earliest = deadline;
    return earliest;
}

std::uint32_t sender::add(tx_ring ring)
{
    auto place = std::find(queues_.begin(), queues_.end(), nullptr);
    if (place == queues_.end())
        place = queues_.emplace(queues_.end());
    ring.entries.queue = static_cast<std::uint32_t>(place - queues_.begin()) + 1;
    *place = std::make_unique<tx_queue>(ring, wire_, keys_, pool_.make(ring.entries.depth));
    return ring.entries.queue;
}

void sender::remove(std::uint32_t number)
{
    auto& place = queues_[number - 1];
    place->stop();
    if (!drained(number))
        pool_.keep(place->take_headers());
    place.reset();
}

bool sender::drained(std::uint32_t number)
{
    rte_eth_tx_done_cleanup(wire_.port, 0, 0); // drivers that free at once do not have it, and need it not
    queue(number).collect();
    return queue(number).all_returned();
}

bool sender::uses(const std::byte* begin, std::size_t bytes) const
{
    rte_eth_tx_done_cleanup(wire_.port, 0, 0);
    return std::any_of(queues_.begin(), queues_.end(), [&](const auto& queue) { return queue && queue->uses(begin, bytes); });
}

} // namespace weftio::nic
