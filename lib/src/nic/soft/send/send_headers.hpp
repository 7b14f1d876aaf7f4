// Mbuf headers for frames that lie in memory of a kernel: sending without copying.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "dpdk/bare_pool.hpp"
#include "dpdk/dma_mapping.hpp"
#include "dpdk/left_behind.hpp"
#include "nic/soft/send/entry.hpp"

namespace weftio::nic {

/// One header a slot of a send ring. It has two references while a driver has the mbuf: the driver's, and the engine's,
/// which is never given up. A driver that is done frees the mbuf, and the loss of its reference is the completion. From
/// any thread. So no mbuf goes through the operations of a mempool.
struct alignas(64) send_header {
    static constexpr std::size_t bounce_bytes = 128;

    rte_mbuf mbuf;
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
    /// No driver has it, or none any more. Release: its last read of the frame is over.
    void settle() noexcept { references().store(1, std::memory_order_release); }
    /// Whether no driver has it. Acquire, pairs with the release of the driver's reference.
    bool returned() const noexcept
    {
        return const_cast<send_header*>(this)->references().load(std::memory_order_acquire) == 1;
    }

 private:
    template <std::size_t Offset, class Word>
    void store(Word word) noexcept
    {
        std::memcpy(reinterpret_cast<std::byte*>(&mbuf) + Offset, &word, sizeof word);
    }
    std::atomic_ref<std::uint16_t> references() noexcept { return std::atomic_ref<std::uint16_t>(mbuf.refcnt); }
};

/// Tells headers of send queues, as they come back as received packets, from other mbufs.
class lent_headers {
 public:
    /// Gives back a frame that this program has sent and received, without a locked instruction: two references are the
    /// queue's and the caller's, and nobody else can make a third. Returns false for any other mbuf, which is to be
    /// freed.
    bool give_back(rte_mbuf& mbuf) const noexcept
    {
        if (mbuf.pool->pool_config != source_ || mbuf.nb_segs != 1 || rte_mbuf_refcnt_read(&mbuf) != 2)
            return false;
        reinterpret_cast<send_header&>(mbuf).settle(); // which the mbuf begins
        return true;
    }

 private:
    friend class send_pool;
    static mbuf_source* const source; ///< of every send pool, and of no other
    const void* const source_ = source;
};

/// Memory that frames lie in, as a port uses it.
struct frame_memory {
    std::shared_ptr<const detail::memory_block> block;
    std::unique_ptr<dma_mapping> mapping; ///< nullptr: the device has not been told of it; ends before the block
    bool lendable = true;                 ///< see key_table::grant
};

/// A list of one element, because keeping it must need no memory.
using memory_place = std::list<frame_memory>;

/// The pool that headers are said to be of. Drivers that put mbufs back without a look at their references find it too.
///
/// Must outlive the port's device, whose driver may hold mbufs to its end. What somebody holds even then is left
/// behind: the pool, headers, and kept memory that their frames lie in. Called between two turns of all engines of the
/// port.
class send_pool {
 public:
    /// @param port  its spec, for the log
    explicit send_pool(std::string port = "");
    send_pool(const send_pool&) = delete;
    send_pool& operator=(const send_pool&) = delete;
    ~send_pool();

    /// Headers for a ring of `depth` slots. Throws weftio::error errc::out_of_memory.
    std::unique_ptr<send_header[]> make(std::uint32_t depth);
    /// A queue has ended: keeps its headers if somebody still holds one. Needs no memory.
    void take(std::unique_ptr<send_header[]> headers, std::uint32_t depth) noexcept;
    /// Whether a frame of a queue that has ended lies in these bytes and has not come back. Between two turns of any
    /// engine.
    bool uses(const std::byte* begin, std::size_t bytes) const noexcept;

    /// Keeps memory that frames lie in which have not come back.
    void keep(memory_place memory) noexcept;
    /// Takes kept memory out for which `unused(block)`; the caller frees it.
    template <class Unused>
    memory_place take_out(Unused&& unused) noexcept
    {
        memory_place out;
        for (auto each = lent_->memory.begin(); each != lent_->memory.end();) {
            auto next = std::next(each);
            if (unused(*each->block))
                out.splice(out.end(), lent_->memory, each);
            each = next;
        }
        return out;
    }

 private:
    struct kept_headers {
        std::unique_ptr<send_header[]> headers;
        std::uint32_t depth;

        template <class Where>
        std::size_t lent(Where&& where) const noexcept
        {
            return static_cast<std::size_t>(
                std::count_if(headers.get(), headers.get() + depth, [&](const send_header& head) {
                    return !head.returned() && where(static_cast<const std::byte*>(head.mbuf.buf_addr));
                }));
        }
        std::size_t lent() const noexcept
        {
            return lent([](const std::byte*) { return true; });
        }
    };
    struct lent final : leftover {
        ~lent() override;
        bool returned() const noexcept override;

        rte_mempool* pool = nullptr;       ///< made with the first headers
        std::vector<kept_headers> headers; ///< has room for those of every queue there is
        memory_place memory;
    };
    void forget_returned() noexcept;

    std::string port_;
    leftover_place place_; ///< of one
    lent* lent_;           ///< that one
    std::size_t queues_ = 0;
};

} // namespace weftio::nic
