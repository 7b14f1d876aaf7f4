// Mbuf headers for frames that lie in memory of a kernel: sending without copying.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "nic/soft/entry.hpp"

namespace weftio::nic {

/// What the engine remembers of an entry until it completes. Four bytes that are compared as one word.
struct alignas(4) sent_entry {
    std::uint8_t blocks = 1;
    bool event = false; ///< the host wants to be told
    bool frame = false; ///< a frame, not a wait
    refusal reason = refusal::none;

    bool operator==(const sent_entry& other) const noexcept
    {
        return std::bit_cast<std::uint32_t>(*this) == std::bit_cast<std::uint32_t>(other);
    }
};
/// Nearly all are.
inline constexpr sent_entry plain_frame{.blocks = 1, .event = false, .frame = true, .reason = refusal::none};

/// One header a slot of a send ring. It has two references while a driver has the mbuf: the driver's, and the engine's, which
/// is never given up. A driver that is done frees the mbuf, and the loss of its reference is the completion. From any thread.
/// So no mbuf goes through the operations of a mempool.
struct alignas(64) send_header {
    static constexpr std::size_t bounce_bytes = 128;

    rte_mbuf mbuf;
    sent_entry entry; ///< that uses the slot
    std::uint32_t bytes = 0;
    std::array<std::byte, bounce_bytes> bounce{}; ///< bytes that came inside the entry, and padding

    /// Makes the mbuf that of a frame of `count` bytes that lies there. The driver gets it next.
    void lend(const std::byte* frame, std::uint32_t count) noexcept
    {
        mbuf.buf_addr = const_cast<std::byte*>(frame);
        mbuf.buf_iova = reinterpret_cast<rte_iova_t>(frame);
        mbuf.buf_len = static_cast<std::uint16_t>(count);
        mbuf.ol_flags = 0;
        // Stores are what an entry costs most: fields side by side share one.
        static_assert(std::endian::native == std::endian::little &&
                      offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                      offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, pkt_len) + 4);
        store<offsetof(rte_mbuf, data_off)>(std::uint32_t{2} << 16);
        store<offsetof(rte_mbuf, pkt_len)>(std::uint64_t{count} << 32 | count); // vlan_tci too
    }
    /// The entry is a plain_frame of `count` bytes.
    void remember_plain(std::uint32_t count) noexcept
    {
        constexpr auto word = std::bit_cast<std::uint32_t>(plain_frame); // else GCC stores byte by byte
        std::memcpy(static_cast<void*>(&entry), &word, sizeof entry);
        bytes = count;
    }
    /// No driver has it, or none any more. Release: its last read of the frame is over.
    void settle() noexcept { references().store(1, std::memory_order_release); }
    /// Whether no driver has it. Acquire, pairs with the release of the driver's reference.
    bool returned() const noexcept { return const_cast<send_header*>(this)->references().load(std::memory_order_acquire) == 1; }

 private:
    template <std::size_t Offset, class Word>
    void store(Word word) noexcept
    {
        std::memcpy(reinterpret_cast<std::byte*>(&mbuf) + Offset, &word, sizeof word);
    }
    std::atomic_ref<std::uint16_t> references() noexcept { return std::atomic_ref<std::uint16_t>(mbuf.refcnt); }
};

/// The pool that headers are said to be of. Drivers that put mbufs back without a look at their references find it too. Must
/// outlive the port's device, whose driver may hold mbufs to its end.
class send_pool {
 public:
    send_pool() = default;
    send_pool(const send_pool&) = delete;
    send_pool& operator=(const send_pool&) = delete;
    ~send_pool();

    /// Headers for a ring of `depth` slots. Throws weftio::error errc::out_of_memory.
    std::unique_ptr<send_header[]> make(std::uint32_t depth);
    /// A queue has ended: takes headers that the driver still holds, or lets them go. Needs no memory.
    void take(std::unique_ptr<send_header[]> headers, bool driver_holds_some) noexcept;

 private:
    rte_mempool* pool_ = nullptr;                      ///< made with the first headers
    std::vector<std::unique_ptr<send_header[]>> kept_; ///< has room for those of every queue there is
    std::size_t queues_ = 0;
};

} // namespace weftio::nic
