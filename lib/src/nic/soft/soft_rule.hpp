// A rule of the software NIC: every engine of the port applies it, and the driver of the port if it can.
#pragma once

#include <memory>
#include <vector>

#include "nic/soft/receive/steering.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic {

class soft_rule final : public rule {
 public:
    soft_rule(std::shared_ptr<soft_port> port, const rule_request& wanted);
    soft_rule(const soft_rule&) = delete;
    soft_rule& operator=(const soft_rule&) = delete;
    ~soft_rule() override;

    flow_hits hits() const override;
    flow_place where() const noexcept override;

 private:
    void install();
    void remove() noexcept; ///< @pre every engine is between two turns

    std::shared_ptr<soft_port> port_;
    std::vector<std::shared_ptr<steering_rule>> rules_; ///< one copy for each engine, with the hits of that engine
};

} // namespace weftio::nic
