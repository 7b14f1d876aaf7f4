// The keys that the entries of one queue may name.
#pragma once

#include <cstdint>

#include "keys/resolve.hpp"

namespace weftio::keys {

/// The keys of a NIC, as one queue sees them. The NIC must outlive it.
class queue_keys {
 public:
    queue_keys(const nic_keys& nic, protection_domain domain) noexcept : nic_(nic), domain_(domain) {}

    /// Finds bytes that an entry names. @param needed  the right that the region must give  @return see resolve()
    refusal resolve(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access needed,
                    located& out) const noexcept
    {
        return keys::resolve(nic_, {key, address, bytes, needed, domain_}, out);
    }
    /// The same, of what the CPU must see. @return see resolve_for_cpu()
    refusal resolve_for_cpu(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access needed,
                            std::byte*& at) const noexcept
    {
        return keys::resolve_for_cpu(nic_, {key, address, bytes, needed, domain_}, at);
    }
    /// Reads the region of a key from which frames are sent without copying. Who names bytes of it checks their range.
    /// @return false: not for this queue, or not without copying
    bool read_lent(std::uint32_t key, key_view& region) const noexcept
    {
        return resolve_region(nic_, key, access::none, {.domain = domain_}, region) == refusal::none && region.lends;
    }
    /// Whether what was found by the key is as it was.
    bool still(const held_key& held) const noexcept { return nic_.still(held); }

 private:
    const nic_keys& nic_;
    const protection_domain domain_;
};

} // namespace weftio::keys
