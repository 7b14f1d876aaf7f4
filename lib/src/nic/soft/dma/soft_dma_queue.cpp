#include "nic/soft/dma/soft_dma_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace weftio::nic::soft {

soft_dma_queue::soft_dma_queue(std::shared_ptr<soft_dma> dma, const send_ring& ring)
    : soft_executed_queue("dma_queue", std::move(dma), ring)
{
    tx_ring first = cpu_ring(ring);
    between_turns([&] {
        work_list& queues = dma_->queues();
        number_ = 1;
        while (queues.find(number_))
            ++number_;
        queues.reserve(number_, first); // first, because it may throw
        first.entries.queue = number_;
        auto made = std::make_unique<copy_work>(first, dma_->keys(), dma_->streams());
        queue_ = made.get();
        queues.put(number_, std::move(made));
    });
}

bool soft_dma_queue::drain()
{
    stop_sending();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    auto drained = [&] {
        return dma_->engine().between_turns([&] {
            queue_->collect();
            return !queue_->waits_for_others();
        });
    };
    while (!drained()) {
        if (std::chrono::steady_clock::now() >= end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

void soft_dma_queue::restart(const send_ring& ring)
{
    const std::scoped_lock one_at_a_time(changing_);
    const tx_ring next = cpu_ring(ring);
    drain();
    between_turns([&] {
        dma_->queues().rouse(number_);
        queue_->restart(next);
        ring_ = ring;
        ++ring_number_;
    });
}

void soft_dma_queue::run_turn() const
{
    dma_->engine().send_turn([&] { dma_->queues().wake(number_); });
}

std::string soft_dma_queue::progress() const
{
    return fmt::format("{} enqueued, {} copied, {} failed, {} flushed{}", queue_->enqueued.value(),
                       queue_->copied.value(), queue_->failed_entries.value(), queue_->flushed.value(),
                       queue_->failed() ? ", in error" : "");
}

dma_counters soft_dma_queue::counters() const
{
    return {.enqueued = queue_->enqueued.value(),
            .copied = queue_->copied.value(),
            .copied_bytes = queue_->copied_bytes.value(),
            .skipped = queue_->skipped.value(),
            .failed = queue_->failed_entries.value(),
            .flushed = queue_->flushed.value(),
            .lost_events = queue_->events().lost.value()};
}

} // namespace weftio::nic::soft
