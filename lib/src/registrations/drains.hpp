// Registrations of a GPU's memory that were withdrawn, and copies by them that are under way.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "devices/unfinished_copies.hpp"
#include "registrations/node.hpp"

namespace weftio::registrations {

/// Of one registration.
struct draining {
    explicit draining(const range& of) : bytes(of) {}

    const range bytes;
    devices::unfinished_copies copies;
    std::shared_ptr<draining> next{}; ///< in `drains`
};

/// Those that were withdrawn, until their copies have ended. Nothing here waits, and add() allocates nothing: memory is
/// being freed meanwhile.
///
/// - Threads: any.
class drains {
 public:
    void add(std::shared_ptr<draining> withdrawn) noexcept
    {
        drained({}); // lets go of what is over
        if (withdrawn->copies.ended())
            return;
        const std::scoped_lock lock(mutex_);
        withdrawn->next = std::move(first_);
        first_ = std::move(withdrawn);
    }
    /// Whether no copy is under way that touches these bytes.
    bool drained(const range& bytes) noexcept
    {
        std::shared_ptr<draining> over; // ends without the lock
        const std::scoped_lock lock(mutex_);
        bool touched = false;
        for (std::shared_ptr<draining>* at = &first_; *at;)
            if ((*at)->copies.ended()) {
                std::shared_ptr<draining> each = std::exchange(*at, (*at)->next);
                each->next = std::move(over);
                over = std::move(each);
            } else {
                touched = touched || (*at)->bytes.overlaps(bytes);
                at = &(*at)->next;
            }
        return !touched;
    }

 private:
    std::mutex mutex_;
    std::shared_ptr<draining> first_;
};

} // namespace weftio::registrations
