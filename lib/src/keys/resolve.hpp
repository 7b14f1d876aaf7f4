// From a key and an address to memory, by the same rules for frames, copies and both ends of RDMA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "keys/key_table.hpp"
#include "weftio/access.hpp"
#include "weftio/refusal.hpp"

namespace weftio::keys {

/// Bytes that an entry or a peer names.
struct named {
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    access rights = access::none; ///< that the region must give; at most one
    protection_domain domain{};   ///< of the queue
    std::uint64_t peers_of = 0;   ///< a peer names them: window_user::number of its queue pair here; 0: an entry does
};

/// Where they lie.
struct located {
    std::byte* cpu = nullptr; ///< nullptr: the CPU does not see them
    const devices::device_backend* device = nullptr;
    std::uint64_t device_address = 0;
    held_key by{};      ///< for who uses them later, and asks nic_keys::still() before
    bool lends = false; ///< the device of the NIC reads them where they lie
};

/// What a region lacks that does not give this right.
constexpr refusal lack_of(access right) noexcept
{
    switch (right) {
        case access::remote_write: return refusal::no_remote_write;
        case access::remote_read: return refusal::no_remote_read;
        case access::remote_atomic: return refusal::no_remote_atomic;
        default: return refusal::no_local_write;
    }
}

/// The rules that all bytes of a region or window have in common: key, domain and rights. What is left is range and
/// reach. Windows have a domain of their own in the table, so that regions pay nothing for them.
[[gnu::always_inline]] inline refusal resolve_region(const nic_keys& keys, std::uint32_t key, access rights,
                                                     const window_user& by, key_view& region) noexcept
{
    if (!keys.read(key, region))
        return keys.why_unknown(key);
    if (region.entry.domain != by.domain)
        if (const refusal why = keys.check_window(key, by, rights, region.generation); why != refusal::none)
            return why;
    return (region.entry.rights & rights) == rights ? refusal::none : lack_of(rights);
}

/// What a region has at these bytes. @pre they are in it
inline void locate(const key_view& region, std::uint32_t key, std::uint64_t address, located& out) noexcept
{
    const key_entry& entry = region.entry;
    out = {.cpu = entry.cpu ? entry.at(address) : nullptr,
           .device = entry.device,
           .device_address = address + entry.to_device,
           .by = {key, region.generation},
           .lends = region.lends};
}

/// The rest of resolve() for a key that is marked as stale, or a window of such a region: the judge is asked last.
[[gnu::cold]] refusal resolve_stale(const nic_keys& keys, const named& what, const key_view& region,
                                    located& out) noexcept;

/// Finds the bytes. In the order of what a reason tells: a key of another domain says nothing of its rights, nor of its
/// range. `out` changes on success only. Inlined everywhere: as a call it costs a frame 3 ns.
[[gnu::always_inline]] inline refusal resolve(const nic_keys& keys, const named& what, located& out) noexcept
{
    key_view region;
    if (const refusal why = resolve_region(keys, what.key, what.rights, {what.peers_of, what.domain}, region);
        why != refusal::none) [[unlikely]]
        return why == refusal::memory_gone ? resolve_stale(keys, what, region, out) : why;
    if (!region.entry.holds(what.address, what.bytes))
        return refusal::outside_region;
    locate(region, what.key, what.address, out);
    return refusal::none;
}

/// The same for who has nobody that brings bytes from a device: those that the CPU does not see are refused, last.
inline refusal resolve_for_cpu(const nic_keys& keys, const named& what, std::byte*& at) noexcept
{
    located found;
    if (const refusal why = resolve(keys, what, found); why != refusal::none)
        return why;
    if (found.cpu == nullptr)
        return refusal::out_of_reach;
    at = found.cpu;
    return refusal::none;
}

} // namespace weftio::keys
