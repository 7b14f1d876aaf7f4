// A queue at its NIC with the life of its present ring.
#pragma once

#include <memory>
#include <utility>

namespace weftio::queues {

/// Owns the queue and closes it in the destructor. @tparam Life  with begin() and belong_to(): see ring_life
template <class Life, class Queue>
class live_queue {
 public:
    /// @param make  makes the queue of what `first->begin()` returns
    template <class Make>
    live_queue(std::shared_ptr<Life> first, Make&& make) : life_(std::move(first)), queue_(make(life_->begin()))
    {
        try {
            life_->belong_to(queue_, queue_->ring_number());
        } catch (...) {
            queue_->close();
            throw;
        }
    }
    live_queue(const live_queue&) = delete;
    live_queue& operator=(const live_queue&) = delete;
    ~live_queue() { close(); }

    /// Closes the queue now. Does nothing when called again.
    void close() noexcept
    {
        if (std::exchange(open_, false))
            queue_->close();
    }
    /// Gives the queue the ring of `next`. Returns the life that ends with that. Throws what belong_to() and restart()
    /// throw; the queue has its ring then, and this life.
    std::shared_ptr<Life> reset(std::shared_ptr<Life> next)
    {
        // Belong_to() may throw, so it comes before anything changes.
        next->belong_to(queue_, queue_->ring_number() + 1);
        queue_->restart(next->begin());
        return std::exchange(life_, std::move(next));
    }

    Queue* operator->() const noexcept { return queue_.get(); }
    Queue& operator*() const noexcept { return *queue_; }
    const std::shared_ptr<Queue>& share() const noexcept { return queue_; }
    const std::shared_ptr<Life>& life() const noexcept { return life_; }

 private:
    std::shared_ptr<Life> life_;
    const std::shared_ptr<Queue> queue_;
    bool open_ = true;
};

} // namespace weftio::queues
