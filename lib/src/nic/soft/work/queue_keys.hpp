// The keys that the entries of one queue may name.
#pragma once

#include "keys/key_table.hpp"
#include "weftio/access.hpp"

namespace weftio::nic::soft {

/// The keys of a NIC, as one queue sees them. The NIC must outlive it.
class queue_keys {
 public:
    queue_keys(const keys::nic_keys& nic, protection_domain domain) noexcept : nic_(nic), domain_(domain) {}

    /// find(), lends() and removals() do what nic_keys says of them.
    const keys::key_entry* find(std::uint32_t key) const noexcept { return nic_.find(key); }
    bool lends(std::uint32_t key) const noexcept { return nic_.lends(key); }
    std::uint64_t removals() const noexcept { return nic_.removals(); }
    /// Whether the region belongs to the protection domain of the queue.
    bool may_use(const keys::key_entry& region) const noexcept { return region.domain == domain_; }

 private:
    const keys::nic_keys& nic_;
    const protection_domain domain_;
};

} // namespace weftio::nic::soft
