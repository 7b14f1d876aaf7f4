#include "nic/soft/send/sender.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <utility>

#include "dpdk/capture_writer.hpp"

namespace weftio::nic::soft {

/// Send step 2: wakes the queues whose record has moved or whose deadline has come, and gives each queue its turn.
unsigned sender::turn(const turn_budget& budget)
{
    if (!link_.up)
        return turn_without_link();
    queues_.poll_for_work(budget.busy);
    queues_.keep_deadlines(budget.busy);
    const work_list::outcome all = queues_.turn(budget.entries);
    pulls_.end_batches();
    if (port_queue_.file && port_queue_.file->failure() != 0)
        refuse(refusal::file_failed, static_cast<std::uint32_t>(port_queue_.file->failure()));
    // A driver with its own ring frees sent frames when it gets new ones. If there are none to give, the engine asks
    // it.
    if (all.moved == 0 && all.waits_for_others)
        ask_driver();
    return all.moved;
}

unsigned sender::turn_without_link()
{
    if (link_.given_up)
        refuse(refusal::link_down, 0);
    unsigned moved = 0;
    for_each([&](tx_queue& queue) { moved += queue.failed() ? queue.turn(0) : queue.collect(); });
    return moved;
}

/// Ends all queues that have something to send, because sending is impossible.
void sender::refuse(refusal reason, std::uint32_t detail)
{
    for_each([&](tx_queue& queue) {
        if (!queue.failed() && queue.has_more())
            queue.end(reason, detail);
    });
}

void sender::link_changed(const link_state& now) noexcept
{
    const bool other_mtu = std::exchange(link_, now).mtu != now.mtu;
    if (!other_mtu || now.mtu == 0)
        return;
    port_queue_.mtu = std::min(now.mtu, port_queue_.most_mtu);
    // The port queue stays the same, so the driver may hold frames of these queues.
    for_each([&](tx_queue& queue) { queue.go_through(port_queue_, pulls_); });
}

/// Asks the driver to free the frames that it has sent. Drivers that free at once lack such a function and need none.
void sender::ask_driver() const noexcept
{
    if (port_lost_)
        return;
    if (port_queue_.empty_bursts)
        rte_eth_tx_burst(port_queue_.port, port_queue_.queue, nullptr, 0);
    else
        rte_eth_tx_done_cleanup(port_queue_.port, port_queue_.queue, 0);
}

void sender::add(std::uint32_t number, tx_ring ring)
{
    reserve(number, ring);
    ring.entries.queue = number;
    take_up(number, std::make_unique<tx_queue>(ring, port_queue_, pulls_, keys_, pool_.make(ring.entries.depth)));
}

void sender::take_up(std::uint32_t number, std::unique_ptr<tx_queue> queue) noexcept
{
    queue->go_through(port_queue_, pulls_);
    queues_.put(number, std::move(queue));
    if (port_lost_)
        this->queue(number).lose_port();
}

std::unique_ptr<tx_queue> sender::give_up(std::uint32_t number) noexcept
{
    return std::unique_ptr<tx_queue>(static_cast<tx_queue*>(queues_.take(number).release()));
}

void sender::port_lost()
{
    port_lost_ = true;
    for_each([](tx_queue& queue) { queue.lose_port(); });
}

void sender::restart(std::uint32_t number, const tx_ring& ring) noexcept
{
    queues_.rouse(number);
    queue(number).restart(ring);
}

void sender::remove(std::uint32_t number)
{
    queue(number).stop();
    collect(number);
    const std::unique_ptr<tx_queue> gone = give_up(number);
    pool_.take(gone->take_headers(), gone->ring().entries.depth);
}

bool sender::drained(std::uint32_t number)
{
    collect(number);
    return queue(number).all_returned();
}

bool sender::driver_holds_none(std::uint32_t number)
{
    collect(number);
    return queue(number).driver_holds_none();
}

void sender::collect(std::uint32_t number)
{
    ask_driver();
    queue(number).collect();
}

bool sender::uses(const std::byte* begin, std::size_t bytes) const
{
    ask_driver();
    bool used = pool_.uses(begin, bytes);
    for_each([&](tx_queue& queue) { used = used || queue.uses(begin, bytes); });
    return used;
}

} // namespace weftio::nic::soft
