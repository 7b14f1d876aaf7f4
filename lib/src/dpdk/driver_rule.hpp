// A rule that the driver of a port executes, through rte_flow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpdk/flow_pattern.hpp"
#include "weftio/counters.hpp"
#include "weftio/flow_match.hpp"

namespace weftio::dpdk {

/// Drops packets in the driver, and counts them. One thread at a time. The destructor calls no driver: end() does, and
/// so the owner learns what the driver refuses to end.
class driver_rule {
 public:
    /// Asks the driver to drop and count the packets of `match`: all patterns, or none. Blocks as long as the driver
    /// takes. Returns why the driver does not, or an empty text. Throws std::bad_alloc; call end() then too.
    /// @pre !executes()
    std::string begin(std::uint16_t port, const flow_match& match);
    /// Whether the driver executes patterns of the rule; after a refusal only if the driver failed to end them.
    bool executes() const noexcept { return !parts_.empty(); }
    /// Asks the driver for its counts. Those that it does not give stay as they were.
    void ask() noexcept;
    /// What the driver had dropped at the last ask() or end(). Never decreases.
    flow_hits hits() const noexcept;
    /// Has the driver end the rule. Returns nullptr, or why the driver does not; what it has not ended stays.
    const char* end() noexcept;
    /// The device has gone, and its rules with it.
    void forget() noexcept;

 private:
    struct part {
        rte_flow* flow = nullptr;
        flow_hits seen{};
    };

    std::string add(const flow_pattern& pattern);
    bool ask(part& part) const noexcept;

    std::uint16_t port_ = 0;
    std::vector<part> parts_; ///< one for each pattern
    flow_hits ended_{};       ///< of parts that have ended
};

} // namespace weftio::dpdk
