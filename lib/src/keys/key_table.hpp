// Memory keys: entries name memory by them, whichever NIC reads the entries (docs/formats.md, "Keys").
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/undying.hpp"
#include "weftio/access.hpp"
#include "weftio/refusal.hpp"

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

/// A queue pair, as windows know it.
struct window_user {
    /// In the number of a queue pair whose windows of type 2 are of type 2A.
    static constexpr std::uint64_t type_2a = std::uint64_t{1} << 63;

    std::uint64_t number = 0; ///< of no other queue pair of the process, past or future; 0: none
    protection_domain domain{};

    /// @param queue  the number by which peers know the queue pair: the lower 24 bits of what is returned
    /// @param is_2a  its windows of type 2 are of type 2A
    static std::uint64_t next_number(std::uint32_t queue = 0, bool is_2a = false) noexcept;
    bool is_2a() const noexcept { return (number & type_2a) != 0; }
};

/// An access by a key that key_table::mark_stale() was called for. Key, domain, rights and range permit it.
struct stale_access {
    std::uint32_t key = 0; ///< as it is named: of the region, or of a window of it
    std::uint64_t address = 0, bytes = 0;
    std::byte* at = nullptr; ///< where the CPU would find the bytes; nullptr: it does not see them
    access rights = access::none;
    std::uint64_t peers_of = 0; ///< window_user::number of the queue pair whose peer accesses; 0: an entry does
    std::uint64_t mark = 0;     ///< what mark_stale() was given
};

/// Says whether such an access is refused: the reason, or none. Called by engines in their turns: it does not wait.
using stale_judge = refusal (*)(const stale_access&) noexcept;

/// What a queue pair asks of a window. A type 1 window that is to have 0 bytes is freed.
struct window_bind {
    window_type type = window_type::type_2;
    std::uint32_t window = 0;  ///< its present key; of a free window, the index counts only
    std::uint8_t variant = 0;  ///< of its next key
    std::uint32_t region = 0;  ///< key of the region
    std::uint64_t address = 0; ///< first byte, as entries name it in the region
    std::uint64_t bytes = 0;
    access rights = access::none; ///< those of a peer; others are ignored
    /// As the InfiniBand specification has it: bytes outside the region are refused, and peers may have
    /// access::remote_atomic. Else as a ConnectX does it: each access to such a byte, and each atomic, is refused.
    bool strict = true;
};

/// What is known of a window.
struct window_view {
    std::uint32_t key = 0; ///< of a free window: the last one, which is refused
    window_type type = window_type::type_2;
    bool valid = false;
    std::uint32_t region = 0; ///< key of the region that it is bound to
    std::uint64_t user = 0;   ///< queue pair that bound it; 0: free, or type 1
    protection_domain domain{};
};

/// All keys of the process, in the format of mlx5: an index in the upper 24 bits and a variant in the lower 8. The
/// variant changes whenever an index is used again, so that the key of a removed region is refused. Each NIC has a
/// number in the table, and finds the keys that it was granted.
///
/// - Threads: any thread may call it. read() takes no lock and allocates nothing; add() and grant() do not block it. An
///   entry changes under a sequence of its own, as change() does it: read() repeats itself while that is under way.
/// - What has been found stays right while still() says so: it is asked for a key's own generation, so that other keys
///   that change or go cost nothing.
/// - A key stands for a region or for a window: a part of a region that a queue pair lends to peers, and frees again
///   (docs/formats.md, "Windows"). An index of one is never used for the other, because the variants of windows are
///   chosen by programs.
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

    /// From now on the judge is asked about each access by the key of a region, or by those of its windows, until the
    /// key is changed or renewed. What was found before stays right. Other keys pay nothing. Neither waits nor
    /// allocates. @param mark  for the judge
    /// @pre set_judge(); nobody changes or withdraws the key meanwhile
    void mark_stale(std::uint32_t key, std::uint64_t mark) noexcept;
    void set_judge(stale_judge judge) noexcept { judge_.store(judge, std::memory_order_release); }
    /// Asks the judge; `of.mark` is set here. @pre check_window() has said memory_gone of the key
    refusal judge(stale_access of) const noexcept;

    /// Adds a free window, which the NIC is granted. Throws as add().
    std::uint32_t add_window(window_type type, protection_domain domain, unsigned nic);
    /// Binds a window, or frees one of type 1. Takes no lock and allocates nothing; waits for another change of the
    /// same window. The regions of valid windows are not changed: see close_to_windows().
    /// @return why the window is as it was, or none
    refusal bind(const window_bind& what, const window_user& by, unsigned nic) noexcept;
    /// Whether invalidate() would do it: none, or why not.
    refusal may_invalidate(std::uint32_t key, const window_user& by, unsigned nic) const noexcept;
    /// Frees a window of type 2, which takes the whole key. As bind() otherwise.
    refusal invalidate(std::uint32_t key, const window_user& by, unsigned nic) noexcept;
    /// Frees the window, whoever has bound it, and lets nobody bind it again.
    /// @return whether an engine may be in the midst of an access by its key: not if it was never bound, or the engine
    /// that alone uses it has freed it
    bool withdraw_window(std::uint32_t key) noexcept;
    /// @pre withdraw_window(); no NIC uses an address that it has found by the key
    void release_window(std::uint32_t key) noexcept;
    window_view window(std::uint32_t key) const noexcept;
    /// From now on, each window of type 2A of this queue pair that others free than itself and its peer lowers `count`.
    /// nullptr: no longer.
    void count_for(std::uint64_t user, std::atomic<std::uint32_t>* count);
    /// Windows that are bound to the region. @pre the key is that of a region
    std::uint32_t windows_of(std::uint32_t region) const noexcept;
    /// Counts one window more or less, as bind() and invalidate() do: a NIC with windows of its own calls them.
    /// @return hold(): whether one may be bound to it
    bool hold(std::uint32_t region) noexcept;
    void let_go(std::uint32_t region) noexcept;
    /// If no window is bound to the region, refuses binds until open_to_windows(). @return windows_of()
    std::uint32_t close_to_windows(std::uint32_t region) noexcept;
    void open_to_windows(std::uint32_t region) noexcept;
    /// Frees all windows of the region, and refuses binds from now on. @return how many there were
    std::uint32_t free_windows_of(std::uint32_t region) noexcept;

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
    /// Why read() has not found the key: window_free or unknown_key.
    refusal why_unknown(std::uint32_t key, unsigned nic) const noexcept;
    /// The rules of windows, for a key that read() has found and whose domain is none of a queue's.
    /// @param needed  the right that it must give
    /// @return why `by` may not use it, or none; memory_gone: that is for judge() to say
    refusal check_window(std::uint32_t key, unsigned nic, const window_user& by, access needed,
                         std::uint32_t generation) const noexcept;
    /// Whether what read() has found is as it was.
    bool still(std::uint32_t key, unsigned nic, std::uint32_t generation) const noexcept
    {
        const slot* at = place(key);
        return at && (at->nics.load(std::memory_order_acquire) >> nic & 1) != 0 &&
               at->key.load(std::memory_order_acquire) == key &&
               at->sequence.load(std::memory_order_acquire) == generation;
    }
    /// Whether read() would find the same again. still() may say so of a key whose accesses the judge decides.
    bool would_find(std::uint32_t key, unsigned nic, const key_view& found) const noexcept
    {
        return still(key, nic, found.generation) &&
               existing(key).domain.load(std::memory_order_acquire) == found.entry.domain;
    }

 private:
    static constexpr std::uint32_t chunk_slots = 1024;
    static constexpr std::uint32_t none_ = 0;            ///< an index that is never handed out, so 0 is no key either
    static constexpr std::uint32_t closed_ = UINT32_MAX; ///< as a number of windows: none may be bound
    static constexpr std::uint64_t maybe_in_use_ = 1;    ///< as a queue pair: none has this number

    enum class kind : std::uint8_t { region, type_1, type_2 };
    static constexpr kind kind_of(window_type type) noexcept
    {
        return type == window_type::type_1 ? kind::type_1 : kind::type_2;
    }

    struct slot {
        std::atomic<std::uint64_t> nics{0};  ///< NICs that the key was granted, one bit for each
        std::atomic<std::uint64_t> lends{0}; ///< those of them whose device reads the bytes itself
        std::atomic<std::uint32_t> key{none_};
        std::atomic<std::uint32_t> sequence{0}; ///< of the entry below; odd while it changes
        std::atomic<std::uint8_t> variant{0}; ///< of the present or next key; changed under begin_change() or the mutex
        std::atomic<kind> what{kind::region};
        std::atomic<access> rights{access::none};
        /// A region: windows that are bound to it. A window: key of its region.
        std::atomic<std::uint32_t> windows_or_region{0};
        std::atomic<std::byte*> cpu{nullptr};
        std::atomic<const devices::device_backend*> device{nullptr};
        std::atomic<std::uint64_t> base{0}, to_device{0}, bytes{0};
        std::atomic<protection_domain>
            domain{}; ///< of a window: windows_, of a stale region: stale_; no queue has them
        /// Window of type 2: the queue pair that bound it. Free window: maybe_in_use_ if others than the engine that
        /// used it have freed it, else 0. Stale region: its mark. Of a free index: the one that was freed after it.
        std::atomic<std::uint64_t> user_or_next{0};
        std::atomic<protection_domain> window_domain{}; ///< of the window, or of a stale region

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
    /// The same. @pre its index was in use
    slot& existing(std::uint32_t key) const noexcept
    {
        const std::uint32_t index = key >> 8;
        return chunks_[index / chunk_slots].load(std::memory_order_acquire)[index % chunk_slots];
    }
    /// The slot of a window that the NIC was granted, whatever the variant of the key; nullptr: there is none.
    slot* window_at(std::uint32_t key, unsigned nic) const noexcept;
    refusal bind_at(slot& window, const window_bind& what, const window_user& by, unsigned nic) noexcept;
    protection_domain domain_of(const slot& region, protection_domain read) const noexcept;
    std::uint64_t free(slot& window) noexcept;
    void count_freed(std::uint64_t user) noexcept;
    static bool may_use_domain(const slot& window, const window_user& by) noexcept;

    /// Indices that are free, oldest first, so that a variant repeats as late as possible.
    struct free_list {
        std::uint32_t first = none_, last = none_, count = 0;
    };
    std::uint32_t take_index(free_list& from, std::string_view who);
    void give_back(std::uint32_t index, free_list& to) noexcept;
    template <class Each>
    void for_each_window(Each&& each) const;

    static_assert(sizeof(slot) == 96, "with its object at the host a window takes 128 bytes");

    /// A chunk never moves, so that readers need no lock.
    std::array<std::atomic<slot*>, all_indices / chunk_slots> chunks_{};
    const std::uint32_t end_, rest_;
    const protection_domain windows_ = protection_domain::make(), stale_ = protection_domain::make();
    std::atomic<stale_judge> judge_{nullptr};
    mutable std::mutex changing_; ///< guards the members below, and slots that hold no key
    std::uint32_t next_ = first_index;
    std::uint32_t in_use_ = 0;
    free_list free_regions_, free_windows_;
    std::map<std::uint64_t, std::atomic<std::uint32_t>*> counts_; ///< of windows, by queue pair: see count_for()
    std::uint64_t nics_ = 0;                                      ///< numbers of NICs that are taken, one bit for each
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

    /// grant(), read(), still(), would_find() and forget() do what key_table says of them.
    void grant(std::uint32_t key, bool lendable) noexcept { table_.grant(key, number_, lendable); }
    bool read(std::uint32_t key, key_view& out) const noexcept { return table_.read(key, number_, out); }
    bool still(const held_key& held) const noexcept { return table_.still(held.key, number_, held.generation); }
    bool would_find(std::uint32_t key, const key_view& found) const noexcept
    {
        return table_.would_find(key, number_, found);
    }
    /// The same as read(), for who looks once.
    std::optional<key_view> find(std::uint32_t key) const noexcept
    {
        key_view view;
        return read(key, view) ? std::optional(view) : std::nullopt;
    }
    /// Why read() has not found the key.
    refusal why_unknown(std::uint32_t key) const noexcept { return table_.why_unknown(key, number_); }
    refusal check_window(std::uint32_t key, const window_user& by, access needed,
                         std::uint32_t generation) const noexcept
    {
        return table_.check_window(key, number_, by, needed, generation);
    }
    /// These do what key_table says of them.
    refusal judge(const stale_access& of) const noexcept { return table_.judge(of); }
    std::uint32_t add_window(window_type type, protection_domain domain)
    {
        return table_.add_window(type, domain, number_);
    }
    refusal bind(const window_bind& what, const window_user& by) const noexcept
    {
        return table_.bind(what, by, number_);
    }
    refusal may_invalidate(std::uint32_t key, const window_user& by) const noexcept
    {
        return table_.may_invalidate(key, by, number_);
    }
    refusal invalidate(std::uint32_t key, const window_user& by) const noexcept
    {
        return table_.invalidate(key, by, number_);
    }
    key_table& table() const noexcept { return table_; }
    /// @pre the NIC uses no address at this moment that it has found by a key
    void forget(std::uint32_t key) noexcept { table_.forget(key, number_); }

 private:
    key_table& table_;
    const unsigned number_;
};

} // namespace weftio::keys
