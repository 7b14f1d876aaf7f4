#include "nic/soft/files/soft_file_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace weftio::nic::soft {

soft_file_queue::soft_file_queue(std::shared_ptr<soft_files> files, const send_ring& ring)
    : soft_executed_queue("file_queue", std::move(files), ring)
{
    tx_ring first = cpu_ring(ring);
    between_turns([&] {
        work_list& queues = files_->unit().queues();
        number_ = 1;
        while (queues.find(number_))
            ++number_;
        queues.reserve(number_, first); // first, because it may throw
        first.entries.queue = number_;
        auto made = std::make_unique<file_work>(first, ring.results.cpu<std::uint64_t>(), files_->keys(),
                                                files_->files(), files_->unit());
        queue_ = made.get();
        queues.put(number_, std::move(made));
    });
}

bool soft_file_queue::drain()
{
    stop_sending();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    auto drained = [&] {
        return files_->engine().between_turns([&] {
            files_->unit().collect();
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

void soft_file_queue::restart(const send_ring& ring)
{
    const std::scoped_lock one_at_a_time(changing_);
    const tx_ring next = cpu_ring(ring);
    drain();
    between_turns([&] {
        files_->unit().queues().rouse(number_);
        queue_->restart(next, ring.results.cpu<std::uint64_t>());
        ring_ = ring;
        ++ring_number_;
    });
}

void soft_file_queue::run_turn() const
{
    files_->engine().send_turn([&] { files_->unit().queues().wake(number_); });
}

std::string soft_file_queue::progress() const
{
    return fmt::format("{} enqueued, {} read, {} written, {} synced, {} failed, {} flushed{}", queue_->enqueued.value(),
                       queue_->read.value(), queue_->written.value(), queue_->synced.value(),
                       queue_->failed_entries.value(), queue_->flushed.value(), queue_->failed() ? ", in error" : "");
}

std::string soft_file_queue::words_of(const send_event& event) const
{
    if (event.detail == 0)
        return explain(event.reason);
    const int number = static_cast<int>(event.detail);
    return fmt::format("{}: {} (errno {})", explain(event.reason), std::generic_category().message(number), number);
}

file_queue_counters soft_file_queue::counters() const
{
    return {.enqueued = queue_->enqueued.value(),
            .read = queue_->read.value(),
            .read_bytes = queue_->read_bytes.value(),
            .short_reads = queue_->short_reads.value(),
            .written = queue_->written.value(),
            .written_bytes = queue_->written_bytes.value(),
            .synced = queue_->synced.value(),
            .skipped = queue_->skipped.value(),
            .failed = queue_->failed_entries.value(),
            .flushed = queue_->flushed.value(),
            .lost_events = queue_->events().lost.value()};
}

} // namespace weftio::nic::soft
