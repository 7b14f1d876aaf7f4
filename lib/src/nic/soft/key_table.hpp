// Memory keys: what an entry may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weftio::nic {

/// What a key's holder may do with the region.
struct key_rights {
    bool local_write = true; ///< the NIC may write there (receive)
    bool remote_read = false;
    bool remote_write = false;
};

struct key_entry {
    std::byte* cpu = nullptr;      ///< where the engine finds the bytes
    std::uint64_t device_base = 0; ///< the address that entries use
    std::uint64_t bytes = 0;
    key_rights rights;
    std::uint64_t owner = 0; ///< protection domain: 0 for everybody at this NIC
    bool lendable = true;    ///< the port's device reads these bytes at the addresses that the engine finds them at

    /// Whether all of `count` bytes at device address `address` are inside.
    bool holds(std::uint64_t address, std::uint64_t count) const noexcept
    {
        std::uint64_t offset = address - device_base; // below the base: more than any region has
        return offset <= bytes && count <= bytes - offset;
    }
    /// CPU address of these bytes; nullptr when any of them is outside.
    std::byte* at(std::uint64_t address, std::uint64_t count) const noexcept
    {
        return holds(address, count) ? cpu + (address - device_base) : nullptr;
    }
};

/// mlx5-style keys: index in the upper 24 bits, a variant below that changes whenever an index is used again, so that
/// the key of a region that is gone is refused. The engine's thread reads it; changes are made between two turns.
class key_table {
 public:
    /// Throws weftio::error errc::out_of_memory when all 2^24 indices are taken.
    std::uint32_t add(const key_entry& entry);
    void remove(std::uint32_t key) noexcept;
    /// The region of `key`, or nullptr when there is none of that generation.
    const key_entry* find(std::uint32_t key) const noexcept
    {
        std::uint32_t index = key >> 8;
        if (index >= slots_.size() || !slots_[index].used || slots_[index].variant != (key & 0xff))
            return nullptr;
        return &slots_[index].entry;
    }
    /// CPU address of `bytes` bytes at device address `address` under `key`; nullptr when any of them is outside.
    std::byte* translate(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const noexcept
    {
        const key_entry* entry = find(key);
        return entry ? entry->at(address, bytes) : nullptr;
    }
    /// How many keys have been removed so far: while it stays the same, an address that was found stays good.
    std::uint64_t removals() const noexcept { return removals_; }

 private:
    static constexpr std::size_t first_index_ = 16;
    static constexpr std::uint32_t none_ = 0; ///< an index that is never handed out

    struct slot {
        key_entry entry;
        std::uint8_t variant = 0;
        bool used = false;
        std::uint32_t next_free = none_; ///< freed after this one
    };
    std::vector<slot> slots_{first_index_}; // indices below are never handed out: mlx5 reserves key 0x100
    std::uint32_t first_free_ = none_, last_free_ = none_; ///< oldest first: a variant comes round as late as possible
    std::uint64_t removals_ = 0;
};

} // namespace weftio::nic
