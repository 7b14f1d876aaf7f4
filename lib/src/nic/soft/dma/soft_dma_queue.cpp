#include "nic/soft/dma/soft_dma_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace weftio::nic::soft {

soft_dma_queue::soft_dma_queue(std::shared_ptr<soft_dma> dma, const tx_ring& ring) : dma_(std::move(dma))
{
    dma_->engine().between_turns([&] {
        work_list& queues = dma_->queues();
        number_ = 1;
        while (queues.find(number_))
            ++number_;
        queues.reserve(number_); // allocates, so it comes before anything changes
        tx_ring numbered = ring;
        numbered.entries.queue = number_;
        auto made = std::make_unique<copy_work>(numbered, dma_->keys(), dma_->lanes());
        queue_ = made.get();
        queues.put(number_, std::move(made));
    });
}

void soft_dma_queue::close() noexcept
{
    if (!dma_->may_end())
        return;
    stop_sending();
    drain();
    dma_->engine().between_turns([&] {
        dma_->queues().take(number_);
        queue_ = nullptr;
        ++ring_number_;
    });
}

void soft_dma_queue::stop_sending()
{
    dma_->engine().between_turns([&] { queue_->stop(); });
}

/// Waits for what copy engines have begun, a second at most.
void soft_dma_queue::drain()
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    auto drained = [&] {
        return dma_->engine().between_turns([&] {
            queue_->collect();
            return !queue_->waits_for_others();
        });
    };
    while (!drained() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void soft_dma_queue::restart(const tx_ring& ring)
{
    const std::scoped_lock one_at_a_time(changing_);
    stop_sending();
    drain();
    dma_->engine().between_turns([&] {
        dma_->queues().rouse(number_);
        queue_->restart(ring);
        ++ring_number_;
    });
}

inline_turn soft_dma_queue::turn() noexcept
{
    if (!dma_->is_inline())
        return {};
    return {.turn =
                [](void* context) {
                    auto* queue = static_cast<soft_dma_queue*>(context);
                    queue->dma_->engine().send_turn([&] { queue->dma_->queues().wake(queue->number_); });
                },
            .context = this};
}

void soft_dma_queue::stop(std::uint32_t ring)
{
    dma_->engine().between_turns([&] {
        if (ring == ring_number_)
            queue_->stop();
    });
}

std::string soft_dma_queue::describe(std::uint32_t ring) const
{
    std::string text = fmt::format("dma_queue {}", number_);
    dma_->engine().between_turns([&] {
        if (ring == ring_number_)
            text += fmt::format(": {} enqueued, {} copied, {} failed, {} flushed{}", queue_->enqueued.value(),
                                queue_->copied.value(), queue_->failed_entries.value(), queue_->flushed.value(),
                                queue_->failed() ? ", in error" : "");
        else
            text += ": reset or closed since";
    });
    return text;
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

bool soft_dma_queue::failed() const
{
    bool failed = false;
    dma_->engine().between_turns([&] { failed = queue_->failed(); });
    return failed;
}

bool soft_dma_queue::next(send_outcome& outcome)
{
    return next_outcome(queue_->events(), "dma_queue", number_, outcome,
                        [](const send_event& event) { return to_string(event.reason); });
}

} // namespace weftio::nic::soft
