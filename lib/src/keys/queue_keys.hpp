// The keys that the entries of one queue may name.
#pragma once

#include <cstdint>

#include "keys/resolve.hpp"

namespace weftio::keys {

/// The keys of a NIC, as one queue sees them. The NIC must outlive it. One engine uses it.
///
/// It remembers the region that was found last: a queue names the same one many times, and to ask whether it is as it
/// was costs less than to read it.
class queue_keys {
 public:
    queue_keys(const nic_keys& nic, protection_domain domain) noexcept : nic_(nic), domain_(domain) {}

    /// Finds bytes that an entry names. @param needed  the right that the region must give  @return see resolve()
    [[gnu::always_inline]] refusal resolve(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access needed,
                                           located& out) const noexcept
    {
        if (const refusal why = find_region(key, needed); why != refusal::none) [[unlikely]]
            return why == refusal::memory_gone
                       ? resolve_stale(nic_, {key, address, bytes, needed, domain_}, region_, out)
                       : why;
        if (!region_.entry.holds(address, bytes))
            return refusal::outside_region;
        locate(region_, key, address, out);
        return refusal::none;
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
        if (find_region(key, access::none) != refusal::none || !region_.lends)
            return false;
        region = region_;
        return true;
    }
    /// Whether what was found by the key is as it was.
    bool still(const held_key& held) const noexcept { return nic_.still(held); }

 private:
    /// The rules of resolve() but range and reach; then region_ is the region.
    [[gnu::always_inline]] refusal find_region(std::uint32_t key, access needed) const noexcept
    {
        if (key == remembered_ && nic_.would_find(key, region_)) [[likely]]
            return (region_.entry.rights & needed) == needed ? refusal::none : lack_of(needed);
        return find_another(key, needed);
    }
    [[gnu::noinline]] refusal find_another(std::uint32_t key, access needed) const noexcept
    {
        remembered_ = 0;
        const refusal why = resolve_region(nic_, key, needed, {.domain = domain_}, region_);
        if (why == refusal::none &&
            region_.entry.domain == domain_) // not of a window or a stale region: each use of those is judged
            remembered_ = key;
        return why;
    }

    const nic_keys& nic_;
    const protection_domain domain_;
    mutable std::uint32_t remembered_ = 0; ///< key of region_; 0: none
    mutable key_view region_;
};

} // namespace weftio::keys
