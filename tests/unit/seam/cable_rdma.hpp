// RDMA of the cable NIC: completion queues, and queue pairs whose peers are at the same port. Implements
// docs/formats.md and shares no code with the software NIC.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"

namespace weftio::test {

class cable_completions;
class cable_pair;
class cable_window;

/// Bytes of a message whose completion is there already.
struct late_bytes {
    std::uint8_t* to;
    std::vector<std::uint8_t> bytes;
};

/// The data of a cable port that its queue pairs share.
struct cable_tables {
    /// Bytes that are under way to this memory arrive: it is read by the NIC, or no longer used.
    void push_ahead(const devices::memory_block& memory);

    std::mutex mutex; ///< protects the members below, and the data of queues, rules and regions
    std::map<std::uint32_t, const nic::region_request*> keys;
    std::set<std::uint32_t> ending;                 ///< keys of regions to which no window may be bound any more
    std::map<std::uint32_t, cable_window*> windows; ///< by index
    std::map<std::uint32_t, cable_pair*> pairs;
    std::set<cable_completions*> completions;
    std::map<std::array<std::uint8_t, 16>, std::array<std::uint8_t, 6>> addresses;
    std::uint32_t last_number = 0x123450; ///< this NIC assigns the numbers
    std::uint32_t last_key = 0xc0000000;  ///< and the keys
    std::uint32_t last_window = 0xd0000000;
    bool late = false; ///< payload arrives when the NIC reads the same memory, and not before
    std::vector<late_bytes> under_way;
};

/// Functions of nic::backend. @param tables  lives as long as `port`
std::shared_ptr<nic::completion_queue> make_cable_completions(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                              const nic::completion_memory& memory);
std::shared_ptr<nic::rdma_queue> make_cable_pair(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                 const nic::rdma_rings& rings, rdma_service service);
std::unique_ptr<nic::window> make_cable_window(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                               window_type type, protection_domain domain);
/// Frees the windows of a region for good. Returns their number.
std::uint32_t free_cable_windows(cable_tables& tables, std::uint32_t region);
std::unique_ptr<nic::held_rdma_address> hold_cable_address(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                           const nic::rdma_own_address& own);
/// Executes the entries of the queues whose doorbell was rung. Returns their number. @pre the caller holds the mutex
unsigned execute_pairs(cable_tables& tables);

} // namespace weftio::test
