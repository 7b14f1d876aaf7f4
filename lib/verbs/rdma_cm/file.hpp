// An open /dev/infiniband/rdma_cm: an event channel of librdmacm, and the commands that a program writes to it.
#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/open_file.hpp"

namespace weftio::verbs::rdma_cm {

class service;

/// An event that the program has not read.
struct waiting_event {
    rdma_ucm_event_resp says{};
    std::uint32_t about = 0;          ///< the identifier or membership whose events_reported counts it
    bool of_group = false;            ///< it is a membership
    std::uint32_t new_identifier = 0; ///< of a connect request; 0: none
};

/// The descriptor is readable when there are events. Any thread; events are guarded by the mutex of the service.
class file final : public open_file {
 public:
    file(service& of, int flags);
    ~file() override;

    ssize_t execute(int number, const void* command, std::size_t bytes) noexcept override;

    void push(const waiting_event& next);
    /// Takes unread events away: those for which `unwanted` returns true.
    template <class Unwanted>
    std::vector<waiting_event> take_if(int number, Unwanted unwanted)
    {
        std::vector<waiting_event> taken;
        std::deque<waiting_event> kept;
        for (waiting_event& each : events_)
            if (unwanted(each))
                taken.push_back(each);
            else
                kept.push_back(each);
        events_.swap(kept);
        withdraw(number, taken.size());
        return taken;
    }
    std::deque<waiting_event>& events() noexcept { return events_; }

 private:
    ssize_t get_event(int number, std::uint64_t to, std::size_t room);
    bool deliver(std::uint64_t to, std::size_t room);
    void withdraw(int number, std::size_t count) noexcept;
    void signal() noexcept;

    service& service_;
    std::deque<waiting_event> events_;
    std::size_t owed_ = 0; ///< records that found no room: the program gets one for each event
};

} // namespace weftio::verbs::rdma_cm
