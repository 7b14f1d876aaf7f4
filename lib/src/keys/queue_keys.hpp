// The keys that the entries of one queue may name.
#pragma once

#include <array>
#include <cstdint>

#include "keys/resolve.hpp"

namespace weftio::keys {

/// The keys of a NIC, as one queue sees them. The NIC must outlive it. One thread at a time uses it: it remembers the keys
/// that it was asked for last, because most entries name the same ones again.
class queue_keys {
 public:
    queue_keys(const nic_keys& nic, protection_domain domain) noexcept : nic_(nic), domain_(domain) {}

    /// Finds bytes that an entry names. @param needed  the right that the region must give  @return see resolve()
    refusal resolve(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access needed,
                    located& out) const noexcept
    {
        const named what{key, address, bytes, needed, domain_};
        for (const recent& each : recent_)
            if (each.key == key && nic_.still({key, each.region.generation}))
                return locate(each.region, what, out);
        recent& oldest = recent_[next_++ % recent_.size()];
        oldest.key = nic_.read(key, oldest.region) ? key : 0;
        return oldest.key != 0 ? locate(oldest.region, what, out) : refusal::unknown_key;
    }
    /// The same, of what the CPU must see. @return see resolve_for_cpu()
    refusal resolve_for_cpu(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access needed,
                            std::byte*& at) const noexcept
    {
        located found;
        if (const refusal why = resolve(key, address, bytes, needed, found); why != refusal::none)
            return why;
        if (found.cpu == nullptr)
            return refusal::out_of_reach;
        at = found.cpu;
        return refusal::none;
    }
    /// Reads the region of a key from which frames are sent without copying. Who names bytes of it checks their range.
    /// @return false: not for this queue, or not without copying
    bool read_lent(std::uint32_t key, key_view& region) const noexcept
    {
        return resolve_region(nic_, key, access::none, domain_, region) == refusal::none && region.lends;
    }
    /// Whether what was found by the key is as it was.
    bool still(const held_key& held) const noexcept { return nic_.still(held); }

 private:
    struct recent {
        std::uint32_t key = 0; ///< 0 is never one
        key_view region;
    };

    const nic_keys& nic_;
    const protection_domain domain_;
    mutable std::array<recent, 2> recent_{};
    mutable unsigned next_ = 0;
};

} // namespace weftio::keys
