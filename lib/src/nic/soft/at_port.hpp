// Where a queue of a port runs: one of the engines of the port.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

/// Keeps the port alive, and knows the engine of the queue. @see soft_queue
class at_port {
 protected:
    explicit at_port(std::shared_ptr<soft_port> port) noexcept : port_(std::move(port)) {}

    bool may_end() const noexcept { return port_->may_end(); }
    bool is_inline() const noexcept { return port_->is_inline(); }
    std::string where() const { return " on " + port_->spec(); }
    doorbell_pages& doorbells() const noexcept { return port_->doorbells(); }
    /// Runs `change` between two turns of the engine that the queue is at.
    template <class Change>
    void between_turns(Change&& change) const
    {
        port_->engines().between_turns_at(home_, change);
    }
    /// Runs `change` while every engine of the port is between two turns.
    template <class Change>
    void between_all_turns(Change&& change) const
    {
        port_->engines().between_all_turns(change);
    }

    const std::shared_ptr<soft_port> port_;
    home home_{0};
};

} // namespace weftio::nic::soft
