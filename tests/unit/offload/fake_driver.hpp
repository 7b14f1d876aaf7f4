// A fake driver with rte_flow; the test acts as its NIC. The linker redirects the library's calls of rte_flow to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <rte_flow.h>

#include "unit/steering/frames.hpp"

namespace weftio::test {

using frames::bytes;

/// Whether a frame matches a pattern, as rte_flow.h specifies. Like a NIC, it takes the first next-header field of IPv6
/// as the protocol, and reads zeros for the L4 header of a later fragment.
bool matches(const rte_flow_item* items, const bytes& frame);

/// Replaces rte_flow of one DPDK port. Other ports keep their own.
class fake_driver {
 public:
    /// Capabilities of the driver. Change them between calls only.
    struct abilities {
        std::set<rte_flow_item_type> unknown_items{};
        std::set<rte_flow_action_type> unknown_actions{};
        bool makes = true; ///< false: creating a valid rule fails
        bool answers = true;
        bool tells_packets = true;
        bool tells_bytes = true;
        bool ends = true;
    };

    explicit fake_driver(std::uint16_t port);
    fake_driver(const fake_driver&) = delete;
    fake_driver& operator=(const fake_driver&) = delete;
    ~fake_driver();

    /// A frame arrives. Returns whether a rule drops it.
    bool drops(const bytes& frame);
    std::size_t rules() const;
    std::uint64_t dropped() const;
    unsigned made() const; ///< number of rules made so far
    void forget_counts();

    abilities can{};

    int validate(const rte_flow_item* items, const rte_flow_action* actions, rte_flow_error* error);
    rte_flow* create(const rte_flow_item* items, const rte_flow_action* actions, rte_flow_error* error);
    int query(rte_flow* flow, rte_flow_query_count& count, rte_flow_error* error);
    int destroy(rte_flow* flow, rte_flow_error* error);

 private:
    const std::uint16_t port_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<rte_flow>> rules_;
    std::uint64_t dropped_ = 0;
    unsigned made_ = 0;
};

} // namespace weftio::test
