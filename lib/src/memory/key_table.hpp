// Memory keys: what entries name memory by, whichever NIC reads them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/undying.hpp"
#include "weftio/memory.hpp"

namespace weftio::detail {
class device_backend;
}

namespace weftio::nic {

/// What a key stands for. Does not change while there is such a key.
struct key_entry {
    std::byte* cpu = nullptr;                       ///< where the CPU finds the bytes; nullptr: nowhere
    const detail::device_backend* device = nullptr; ///< whose they are
    std::uint64_t device_base = 0;                  ///< the address that entries use
    std::uint64_t bytes = 0;
    protection_domain domain{}; ///< whose queues may name it
    access rights = access::local_write;

    /// Whether all of `count` bytes at device address `address` are inside.
    bool holds(std::uint64_t address, std::uint64_t count) const noexcept
    {
        std::uint64_t offset = address - device_base; // below the base: more than any region has
        return offset <= bytes && count <= bytes - offset;
    }
    /// CPU address of these bytes; nullptr when any of them is outside. @pre the CPU finds them
    std::byte* at(std::uint64_t address, std::uint64_t count) const noexcept
    {
        return holds(address, count) ? cpu + (address - device_base) : nullptr;
    }
};

/// mlx5-style keys: index in the upper 24 bits, a variant below that changes whenever an index is used again, so that
/// the key of a region that is gone is refused. A NIC, which has a number here, finds the keys that it was granted.
///
/// - Threads: any. Who finds takes no lock, and who adds or grants stops nobody.
/// - A key goes in three steps: withdraw(), and nobody finds it any more; forget() by each NIC that it was granted,
///   while that NIC uses nothing that it has found; release(), and its index may be used again.
class key_table {
 public:
    static constexpr std::uint32_t all_indices = 1u << 24, first_index = 16; ///< below: mlx5 reserves key 0x100
    static constexpr unsigned most_nics = 64;
    /// So many indices are free before one is used again, if there are others: a dead key has come round when 256 times
    /// as many regions have ended.
    static constexpr std::uint32_t rest_before_reuse = 1u << 16;

    /// @param end   behind the last index; fewer than all in tests
    /// @param rest  in place of rest_before_reuse
    explicit key_table(std::uint32_t end = all_indices, std::uint32_t rest = rest_before_reuse) noexcept
        : end_(end), rest_(rest)
    {}
    key_table(const key_table&) = delete;
    key_table& operator=(const key_table&) = delete;
    ~key_table();

    /// Throws weftio::error errc::out_of_memory when all indices are taken.
    std::uint32_t add(const key_entry& entry);
    /// Returns whether there was such a key.
    bool withdraw(std::uint32_t key) noexcept;
    /// @pre the key was withdrawn, and every NIC has forgotten it
    void release(std::uint32_t key) noexcept;
    /// How many indices are taken.
    std::uint32_t in_use() const noexcept;

    /// A number for a NIC, until it is given back; none when all are taken.
    std::optional<unsigned> take_nic() noexcept;
    void give_back_nic(unsigned nic) noexcept;
    /// @param lendable  the NIC's device reads these bytes at the addresses that the CPU finds them at
    /// @pre the key is in use
    void grant(std::uint32_t key, unsigned nic, bool lendable) noexcept;
    void forget(std::uint32_t key, unsigned nic) noexcept;

    /// What `key` stands for, or nullptr when the NIC has no such key. Stays until the NIC forgets it.
    const key_entry* find(std::uint32_t key, unsigned nic) const noexcept
    {
        const slot* at = place(key);
        // First whether it was granted: until this NIC forgets it the slot has no other key. Acquire, pairs with grant().
        if (!at || (at->nics.load(std::memory_order_acquire) >> nic & 1) == 0 ||
            at->key.load(std::memory_order_acquire) != key)
            return nullptr;
        return &at->entry;
    }
    /// Whether the NIC may send these bytes from where they lie. @pre it has found the key
    bool lends(std::uint32_t key, unsigned nic) const noexcept
    {
        return (place(key)->lends.load(std::memory_order_relaxed) >> nic & 1) != 0;
    }

 private:
    static constexpr std::uint32_t chunk_slots = 1024;
    static constexpr std::uint32_t none_ = 0; ///< an index that is never handed out, and so no key either

    struct slot {
        std::atomic<std::uint64_t> nics{0};  ///< that the key was granted, a bit for each
        std::atomic<std::uint64_t> lends{0}; ///< of these, those whose device reads the bytes itself
        std::atomic<std::uint32_t> key{none_};
        std::uint32_t next_free = none_; ///< freed after this one
        key_entry entry;
        std::uint8_t variant = 0;
    };

    /// nullptr: the index was never in use.
    slot* place(std::uint32_t key) const noexcept
    {
        const std::uint32_t index = key >> 8;
        slot* chunk = chunks_[index / chunk_slots].load(std::memory_order_acquire);
        return chunk ? &chunk[index % chunk_slots] : nullptr;
    }
    std::uint32_t take_index();

    std::array<std::atomic<slot*>, all_indices / chunk_slots> chunks_{}; ///< stay where they are
    const std::uint32_t end_, rest_;
    mutable std::mutex changing_; ///< guards what follows, and slots that have no key
    std::uint32_t next_ = first_index;
    std::uint32_t in_use_ = 0, free_ = 0;
    std::uint32_t first_free_ = none_, last_free_ = none_; ///< oldest first: a variant comes round as late as possible
    std::uint64_t nics_ = 0;                               ///< numbers that are taken
};

/// The keys that one NIC finds.
class nic_keys {
 public:
    /// @param who  "port null", for the error
    /// @throws weftio::error errc::out_of_memory there are 64 NICs already
    explicit nic_keys(std::string_view who, key_table& table = detail::undying<key_table>());
    nic_keys(const nic_keys&) = delete;
    nic_keys& operator=(const nic_keys&) = delete;
    ~nic_keys() { table_.give_back_nic(number_); }

    /// As key_table says of each.
    void grant(std::uint32_t key, bool lendable) noexcept { table_.grant(key, number_, lendable); }
    const key_entry* find(std::uint32_t key) const noexcept { return table_.find(key, number_); }
    bool lends(std::uint32_t key) const noexcept { return table_.lends(key, number_); }
    /// While the NIC uses nothing that it has found.
    void forget(std::uint32_t key) noexcept
    {
        table_.forget(key, number_);
        removals_.fetch_add(1, std::memory_order_release);
    }
    /// How many keys have been forgotten so far: while it stays the same, an address that was found stays good.
    std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_acquire); }

 private:
    key_table& table_;
    const unsigned number_;
    std::atomic<std::uint64_t> removals_{0};
};

} // namespace weftio::nic
