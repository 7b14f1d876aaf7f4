// A driver with rte_flow, whose NIC the test is. The linker sends the library's calls of rte_flow here.
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

/// Whether a frame matches a pattern, by the words of rte_flow.h. Like a NIC, it takes the next header of IPv6 for the
/// protocol, and finds zeros where a later fragment has no L4 header.
bool matches(const rte_flow_item* items, const bytes& frame);

/// Takes the place of rte_flow of one DPDK port. Other ports keep their own.
class fake_driver {
 public:
    /// What the driver can do. Change it between calls only.
    struct abilities {
        std::set<rte_flow_item_type> unknown_items{};
        std::set<rte_flow_action_type> unknown_actions{};
        bool makes = true; ///< else a rule that is valid cannot be made
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
    unsigned made() const; ///< rules, since the beginning
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
