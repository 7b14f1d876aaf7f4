// The queues of a receiver: how they are added, moved and removed, and the counters.
#include <rte_mbuf.h>

#include <algorithm>

#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/receive/slot_pool.hpp"

namespace weftio::nic::soft {

/// Calls `visit` for each packet that other engines have handed over, oldest first.
/// @pre every engine is between two turns
template <class Visit>
void receiver::for_each_handed(Visit&& visit)
{
    if (!inbox_)
        return;
    std::for_each(handed_.begin() + static_cast<std::ptrdiff_t>(handed_next_),
                  handed_.begin() + static_cast<std::ptrdiff_t>(handed_count_), visit);
    inbox_->for_each(visit);
}

receiver::~receiver()
{
    while (next_ < count_)
        rte_pktmbuf_free(mbufs_[next_++]);
    for_each_handed([](handed_packet& packet) { rte_pktmbuf_free(packet.mbuf); });
}

void receiver::admit(packet_claimant& claimant)
{
    if (std::find(claimants_.begin(), claimants_.end(), &claimant) == claimants_.end())
        claimants_.push_back(&claimant);
}

void receiver::dismiss(packet_claimant& claimant) noexcept
{
    std::erase(claimants_, &claimant);
}

std::uint32_t receiver::free_number() const noexcept
{
    std::uint32_t number = 0;
    while ((number < queues_.size() && queues_[number]) || (number < elsewhere_.size() && elsewhere_[number].inbox))
        ++number;
    return number;
}

std::size_t receiver::in_use() const noexcept
{
    return queues_.size() - static_cast<std::size_t>(std::count(queues_.begin(), queues_.end(), nullptr));
}

void receiver::reserve(std::uint32_t number)
{
    if (number >= queues_.size())
        queues_.resize(number + 1);
    if (inbox_ && number >= elsewhere_.size())
        elsewhere_.resize(number + 1);
    landing_.reserve(queues_.size());
}

void receiver::add(std::uint32_t number, rx_ring ring)
{
    ring.number = number;
    take_up(number, std::make_unique<rx_queue>(ring));
}

void receiver::remove(std::uint32_t number) noexcept
{
    close_ways_to(number);
    abandon_staged(*queues_[number]);
    give_up(number);
}

/// Counts the packets in staging as dropped: their queue ends, so they are never delivered.
void receiver::abandon_staged(const rx_queue& queue) noexcept
{
    dropped_[static_cast<std::size_t>(drop_reason::queue_closed)].add(queue.staged());
}

void receiver::take_up(std::uint32_t number, std::unique_ptr<rx_queue> queue) noexcept
{
    queues_[number] = std::move(queue);
    if (inbox_)
        elsewhere_[number] = {};
    if (queues_[number]->is_staged())
        landing_.push_back(queues_[number].get());
    choose_lender();
}

std::unique_ptr<rx_queue> receiver::give_up(std::uint32_t number) noexcept
{
    move_out(*queues_[number]);
    std::erase(landing_, queues_[number].get());
    auto gone = std::move(queues_[number]);
    choose_lender();
    return gone;
}

bool receiver::hand_on(std::uint32_t number, receiver& target) noexcept
{
    std::size_t wanted = 0;
    for_each_handed([&](handed_packet& packet) { wanted += packet.mbuf && packet.where.target.queue == number; });
    if (wanted > target.inbox_->room())
        return false;
    for_each_handed([&](handed_packet& packet) {
        if (packet.mbuf && packet.where.target.queue == number && target.inbox_->put(packet))
            packet.mbuf = nullptr;
    });
    return true;
}

void receiver::forget(std::uint32_t number) noexcept
{
    close_ways_to(number);
    elsewhere_[number] = {};
}

/// Marks all packets for this queue that are still on their way to be dropped, even if another queue gets the number
/// soon.
void receiver::close_ways_to(std::uint32_t number) noexcept
{
    steering_.forget_queue(number);
    if (decided_ && decision_.target.queue == number)
        decision_.target.queue = rx_target::closed;
    for_each_handed([&](handed_packet& packet) {
        if (packet.where.target.queue == number)
            packet.where.target.queue = rx_target::closed;
    });
}

void receiver::restart(std::uint32_t number, const rx_ring& ring)
{
    rx_queue& queue = *queues_[number];
    std::unique_ptr<staging> staging = rx_queue::staging_for(ring); // first, because it may throw
    queue.stop();
    abandon_staged(queue);
    move_out(queue);
    queue.restart(ring, std::move(staging));
    choose_lender();
}

/// Chooses the lender: the first queue whose slots are long enough for the driver.
void receiver::choose_lender() noexcept
{
    if (!pool_)
        return;
    auto suits = [this](const auto& queue) {
        return queue && queue->ring().lendable && pool_->is_long_enough(queue->ring().slot_bytes);
    };
    auto found = std::find_if(queues_.begin(), queues_.end(), suits);
    rx_queue* lender = found != queues_.end() ? found->get() : nullptr;
    if (rx_queue* before = pool_->lender(); before && before != lender)
        move_out(*before);
    if (lender && !lender->make_mbufs(pool_->mempool()))
        lender = nullptr;
    pool_->set_lender(lender);
}

/// Copies packets of the current burst that are in lent slots of `queue` to the port's own memory, because the slots
/// are about to be freed.
void receiver::move_out(const rx_queue& queue) noexcept
{
    std::uint16_t kept = next_;
    for (std::uint16_t at = next_; at < count_; ++at) {
        rte_mbuf* mbuf = mbufs_[at];
        const bool lent = queue.lent().contains(mbuf);
        if (rte_mbuf* const stays = lent ? rte_pktmbuf_copy(mbuf, pool_->own(), 0, UINT32_MAX) : mbuf) {
            headers_[kept] = headers_[at];
            mbufs_[kept++] = stays;
            if (lent)
                rte_pktmbuf_free(mbuf);
        } else {
            drop(*mbuf, drop_reason::queue_closed);
            decided_ = decided_ && at != next_; // decision_ was about the dropped packet
        }
    }
    count_ = kept;
}

/// Counts the packets where they are instead of deriving the number from other counters. A lost packet then shows as a
/// difference.
std::uint64_t receiver::held()
{
    std::uint64_t held = static_cast<std::uint64_t>(count_ - next_);
    for_each_handed([&](const handed_packet& packet) { held += packet.mbuf != nullptr; });
    for (const rx_queue* queue : landing_)
        held += queue->staged();
    return held;
}

void receiver::count(port_counters& counters)
{
    counters.held += held();
    counters.delivered += delivered_.value();
    for (std::size_t reason = 0; reason < dropped_.size(); ++reason)
        counters.dropped[reason] += dropped_[reason].value();
    counters.received += received_.value();
    counters.received_bytes += received_bytes_.value();
    counters.copied_bytes += copied_bytes_.value();
    counters.capture_damaged += damaged_.value();
}

} // namespace weftio::nic::soft
