// The keys that a queue may name.
#pragma once

#include "memory/key_table.hpp"
#include "weftio/memory.hpp"

namespace weftio::nic {

/// A queue's look at those of its NIC, which must outlive it.
class queue_keys {
 public:
    queue_keys(const nic_keys& nic, protection_domain domain) noexcept : nic_(nic), domain_(domain) {}

    /// As nic_keys says of each.
    const key_entry* find(std::uint32_t key) const noexcept { return nic_.find(key); }
    bool lends(std::uint32_t key) const noexcept { return nic_.lends(key); }
    std::uint64_t removals() const noexcept { return nic_.removals(); }
    /// Whether the region is one of the queue's domain.
    bool may_use(const key_entry& region) const noexcept { return region.domain == domain_; }

 private:
    const nic_keys& nic_;
    const protection_domain domain_;
};

} // namespace weftio::nic
