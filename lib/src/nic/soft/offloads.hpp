// The rules of a port that its driver executes.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dpdk/dpdk_port.hpp"
#include "dpdk/driver_rule.hpp"
#include "nic/soft/receive/steering.hpp"

namespace weftio::nic::soft {

/// Knows all rules of a port, and lets its driver execute those that it can.
///
/// The engines execute every rule, even if the driver executes it, too: they do not see what the driver drops, and
/// decide about the packets that the driver passes on. A driver may therefore recognize fewer packets than a rule
/// matches, and removing a rule from the driver is enough to move it to the engines.
///
/// The driver executes a rule only while no earlier rule can match the same packet. It therefore never decides about a
/// packet that an earlier rule matches, and the order of rules in the driver does not matter.
class offloads {
 public:
    /// @param device  must outlive this
    /// @param name    name of the port, for the log
    offloads(const dpdk::dpdk_port& device, std::string name) : device_(device), name_(std::move(name)) {}

    /// Adds all rules or none. First removes the driver's rules that would take their packets, then calls `install`,
    /// which adds the rules to the engines, then offers the rules to the driver. Throws what `install` throws.
    /// @throws weftio::error errc::device_error the driver does not remove such a rule; errc::out_of_memory
    template <class Install>
    void add(std::span<const std::shared_ptr<steering_rule>> rules, Install&& install)
    {
        std::scoped_lock lock(mutex_);
        std::size_t entered = 0;
        try {
            for (; entered < rules.size(); ++entered)
                enter(rules[entered]);
            for (const auto& rule : rules)
                make_way_for(*rule);
            install();
        } catch (...) {
            while (entered != 0)
                leave(rules[--entered].get());
            offer_all();
            throw;
        }
        offer_all();
    }
    /// Removes a rule. `take_out` removes it from the engines. Then offers the driver the rules that could not be in
    /// the driver because of this one.
    template <class TakeOut>
    void remove(const steering_rule* rule, TakeOut&& take_out) noexcept
    {
        std::scoped_lock lock(mutex_);
        end_in_driver(rule);
        take_out();
        leave(rule);
        offer_all();
    }
    /// Reads the driver's counters of `rule`, or of all rules when nullptr, and stores them in the rules. Any thread
    /// except one between two turns. Blocks as long as the driver takes, and while another thread adds or removes a
    /// rule.
    void ask_driver(const steering_rule* rule = nullptr) noexcept;

 private:
    struct entry {
        std::shared_ptr<steering_rule> rule;
        std::size_t before = 0; ///< number of earlier rules that may match the same packets
        bool refused = false;   ///< the driver has refused the rule
        dpdk::driver_rule driver{};
    };
    /// A removed rule that the driver still has.
    struct leftover {
        std::shared_ptr<steering_rule> rule;
        dpdk::driver_rule driver;
    };

    void enter(const std::shared_ptr<steering_rule>& rule);
    void leave(const steering_rule* rule) noexcept;
    void make_way_for(const steering_rule& rule);
    void end_in_driver(const steering_rule* rule) noexcept;
    void offer_all() noexcept;
    void offer(entry& each);
    std::string ask_to_execute(entry& each);
    const char* end(dpdk::driver_rule& driver) const noexcept;
    static void publish(const entry& each) noexcept;

    const dpdk::dpdk_port& device_;
    const std::string name_;
    std::mutex mutex_;           ///< taken before the engines stop between turns
    std::vector<entry> entries_; ///< in the order in which rules decide
    std::vector<leftover> leftovers_;
    std::set<std::string> logged_; ///< reasons that have been logged
};

} // namespace weftio::nic::soft
