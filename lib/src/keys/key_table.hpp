// Memory keys: entries name memory by them, whichever NIC reads the entries (docs/formats.md, "Keys").
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/undying.hpp"
#include "weftio/access.hpp"

namespace weftio::devices {
class device_backend;
}

namespace weftio::keys {

/// The memory that a key stands for.
struct key_entry {
    std::byte* cpu = nullptr;                        ///< CPU address of the bytes; nullptr: the CPU cannot access them
    const devices::device_backend* device = nullptr; ///< the device whose memory it is
    std::uint64_t base = 0;                          ///< by which entries and peers name the first byte
    std::uint64_t to_device = 0; ///< what an address lacks to the device address of the byte that it names
    std::uint64_t bytes = 0;
    protection_domain domain{}; ///< queues of this domain may name the memory
    access rights = access::local_write;

    friend bool operator==(const key_entry&, const key_entry&) = default;
    /// Whether all of the `count` bytes that `address` names lie inside.
    bool holds(std::uint64_t address, std::uint64_t count) const noexcept
    {
        std::uint64_t offset = address - base; // an address below the base gives more than any region has
        return offset <= bytes && count <= bytes - offset;
    }
    /// The CPU address of the byte that `address` names. @pre it lies inside, and the CPU can access it
    std::byte* at(std::uint64_t address) const noexcept { return cpu + (address - base); }
};

/// What a NIC sees of a key at one moment.
struct key_view {
    key_entry entry;
    bool lends = false; ///< the NIC may send these bytes from where they lie (zero copy)
    std::uint32_t generation = 0;

    friend bool operator==(const key_view&, const key_view&) = default;
};

/// A key by which something was found that is used later.
struct held_key {
    std::uint32_t key = 0;
    std::uint32_t generation = 0;

    friend bool operator==(const held_key&, const held_key&) = default;
};

/// All keys of the process, in the format of mlx5: an index in the upper 24 bits and a variant in the lower 8. The
/// variant changes whenever an index is used again, so that the key of a removed region is refused. Each NIC has a
/// number in the table, and finds the keys that it was granted.
///
/// - Threads: any thread may call it. read() takes no lock and allocates nothing; add() and grant() do not block it. An
///   entry changes under a sequence of its own, as change() does it: read() repeats itself while that is under way.
/// - What has been found stays right while still() says so: it is asked for a key's own generation, so that other keys
///   that change or go cost nothing.
/// - A key is removed in three steps. withdraw(): read() no longer finds it. forget(), for each NIC that it was
///   granted: that NIC uses no address at that moment that it has found by a key. release(): the index may be used
///   again.
class key_table {
 public:
    /// Lower indices stay free, because mlx5 reserves key 0x100.
    static constexpr std::uint32_t all_indices = 1u << 24, first_index = 16;
    static constexpr unsigned most_nics = 64;
    /// An index is used again when so many others are free, or no fresh one is left: a key of a removed region repeats
    /// only after 256 times as many regions have been removed.
    static constexpr std::uint32_t rest_before_reuse = 512; // half a chunk: a program with few regions needs no second

    /// @param end   index behind the last one; tests pass a small one
    /// @param rest  in place of rest_before_reuse
    explicit key_table(std::uint32_t end = all_indices, std::uint32_t rest = rest_before_reuse) noexcept
        : end_(end), rest_(rest)
    {}
    key_table(const key_table&) = delete;
    key_table& operator=(const key_table&) = delete;
    ~key_table();

    /// Adds a key for `entry` and returns it. Throws weftio::error errc::out_of_memory when all indices are taken.
    std::uint32_t add(const key_entry& entry);
    /// Puts another entry in the place of the present one, under the same key. Takes no lock and allocates nothing, so
    /// an engine may do it in its turn; waits for another change of the same key. Returns whether the key exists.
    /// @pre NICs that were granted the key reach the memory of the new entry as that of the old one
    bool change(std::uint32_t key, const key_entry& entry) noexcept;
    /// Gives the memory of a withdrawn key another key: the same index and the next variant. Those who were granted the
    /// index before are not. @pre every NIC has forgotten the key
    std::uint32_t renew(std::uint32_t key, const key_entry& entry) noexcept;
    /// Withdraws a key. Returns whether it existed.
    bool withdraw(std::uint32_t key) noexcept;
    /// Frees the index of a key. @pre the key was withdrawn, and every NIC has forgotten it
    void release(std::uint32_t key) noexcept;
    /// The number of indices that are taken.
    std::uint32_t in_use() const noexcept;

    /// Reserves a number for a NIC until give_back_nic(); std::nullopt when all are taken.
    std::optional<unsigned> take_nic() noexcept;
    void give_back_nic(unsigned nic) noexcept;
    /// Lets a NIC find the key.
    /// @param lendable  the device of the NIC reads the bytes at their CPU addresses, so frames are sent from there
    /// without copying
    /// @pre the key is in use
    void grant(std::uint32_t key, unsigned nic, bool lendable) noexcept;
    void forget(std::uint32_t key, unsigned nic) noexcept;

    /// Reads what `key` stands for. Returns whether the NIC was granted such a key; else `out` is undefined. The memory
    /// stays until the NIC forgets the key, or the key is changed.
    bool read(std::uint32_t key, unsigned nic, key_view& out) const noexcept
    {
        const slot* at = place(key);
        // Checks first whether the key was granted: until this NIC forgets it, the slot holds no other key. Acquire,
        // pairs with the release in grant().
        if (!at || (at->nics.load(std::memory_order_acquire) >> nic & 1) == 0)
            return false;
        // Acquire, each of them: the sequence is read first, and again after the others.
        do {
            out.generation = at->sequence.load(std::memory_order_acquire);
            if (at->key.load(std::memory_order_acquire) != key)
                return false;
            at->load(out.entry);
        } while ((out.generation & 1) != 0 || at->sequence.load(std::memory_order_relaxed) != out.generation);
        out.lends = (at->lends.load(std::memory_order_relaxed) >> nic & 1) != 0;
        return true;
    }
    /// Whether what read() has found is as it was.
    bool still(std::uint32_t key, unsigned nic, std::uint32_t generation) const noexcept
    {
        const slot* at = place(key);
        return at && (at->nics.load(std::memory_order_acquire) >> nic & 1) != 0 &&
               at->key.load(std::memory_order_acquire) == key &&
               at->sequence.load(std::memory_order_acquire) == generation;
    }

 private:
    static constexpr std::uint32_t chunk_slots = 1024;
    static constexpr std::uint32_t none_ = 0; ///< an index that is never handed out, so 0 is no key either

    struct slot {
        std::atomic<std::uint64_t> nics{0};  ///< NICs that the key was granted, one bit for each
        std::atomic<std::uint64_t> lends{0}; ///< those of them whose device reads the bytes itself
        std::atomic<std::uint32_t> key{none_};
        std::atomic<std::uint32_t> sequence{0}; ///< of the entry below; odd while it changes
        std::uint32_t next_free = none_;        ///< index that was freed after this one
        std::uint8_t variant = 0;
        std::atomic<access> rights{access::none};
        std::atomic<std::byte*> cpu{nullptr};
        std::atomic<const devices::device_backend*> device{nullptr};
        std::atomic<std::uint64_t> base{0}, to_device{0}, bytes{0};
        std::atomic<protection_domain> domain{};

        void load(key_entry& out) const noexcept;
        void begin_change() noexcept;
        void store(const key_entry& entry) noexcept;
        void end_change() noexcept;
    };

    /// The slot of a key; nullptr when its index was never in use.
    slot* place(std::uint32_t key) const noexcept
    {
        const std::uint32_t index = key >> 8;
        slot* chunk = chunks_[index / chunk_slots].load(std::memory_order_acquire);
        return chunk ? &chunk[index % chunk_slots] : nullptr;
    }
    std::uint32_t take_index();

    /// A chunk never moves, so that readers need no lock.
    std::array<std::atomic<slot*>, all_indices / chunk_slots> chunks_{};
    const std::uint32_t end_, rest_;
    mutable std::mutex changing_; ///< guards the members below, and slots that hold no key
    std::uint32_t next_ = first_index;
    std::uint32_t in_use_ = 0, free_ = 0;
    /// List of free indices, oldest first, so that a variant repeats as late as possible.
    std::uint32_t first_free_ = none_, last_free_ = none_;
    std::uint64_t nics_ = 0; ///< numbers of NICs that are taken, one bit for each
};

inline void key_table::slot::load(key_entry& out) const noexcept
{
    constexpr auto order = std::memory_order_acquire;
    out = {.cpu = cpu.load(order),
           .device = device.load(order),
           .base = base.load(order),
           .to_device = to_device.load(order),
           .bytes = bytes.load(order),
           .domain = domain.load(order),
           .rights = rights.load(order)};
}

/// The keys that one NIC was granted.
class nic_keys {
 public:
    /// @param who  owner of the NIC, for the error text: "port null"
    /// @throws weftio::error errc::out_of_memory the process has 64 NICs already
    explicit nic_keys(std::string_view who, key_table& table = core::undying<key_table>());
    nic_keys(const nic_keys&) = delete;
    nic_keys& operator=(const nic_keys&) = delete;
    ~nic_keys() { table_.give_back_nic(number_); }

    /// grant(), read(), still() and forget() do what key_table says of them.
    void grant(std::uint32_t key, bool lendable) noexcept { table_.grant(key, number_, lendable); }
    bool read(std::uint32_t key, key_view& out) const noexcept { return table_.read(key, number_, out); }
    bool still(const held_key& held) const noexcept { return table_.still(held.key, number_, held.generation); }
    /// The same as read(), for who looks once.
    std::optional<key_view> find(std::uint32_t key) const noexcept
    {
        key_view view;
        return read(key, view) ? std::optional(view) : std::nullopt;
    }
    /// @pre the NIC uses no address at this moment that it has found by a key
    void forget(std::uint32_t key) noexcept { table_.forget(key, number_); }

 private:
    key_table& table_;
    const unsigned number_;
};

} // namespace weftio::keys
