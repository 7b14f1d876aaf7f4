// A rule of the software NIC: every engine of the port applies it, and the port's driver if it can.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nic/soft/receive/steering.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_rule final : public rule {
 public:
    /// Makes rules and adds them to every engine in one step: all of them, or none. Throws what offloads::add() throws.
    static std::vector<std::unique_ptr<rule>> install(const std::shared_ptr<soft_port>& port,
                                                      std::span<const rule_request> wanted);
    soft_rule(const soft_rule&) = delete;
    soft_rule& operator=(const soft_rule&) = delete;
    ~soft_rule() override;

    flow_hits hits() const override;
    flow_place where() const noexcept override;

 private:
    soft_rule(soft_port& port, const rule_request& wanted);
    static void add_to_engines(soft_port& port, std::span<soft_rule* const> rules);
    void remove_from(soft_port& port) const noexcept; ///< @pre every engine is between two turns

    std::shared_ptr<soft_port> port_;                   ///< nullptr until the rule is installed
    std::vector<std::shared_ptr<steering_rule>> rules_; ///< one copy for each engine, with the hits of that engine
};

} // namespace weftio::nic::soft
