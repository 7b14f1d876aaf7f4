// Mbuf headers for frames in a kernel's memory: these frames are sent without a copy.
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

#include "devices/backend.hpp"
#include "dpdk/dma_mapping.hpp"
#include "dpdk/leftover.hpp"
#include "dpdk/objectless_pool.hpp"
#include "nic/soft/send/ethernet_entry.hpp"

namespace weftio::nic::soft {

/// The mbuf header of one slot of a send ring. A driver that holds the mbuf has its only reference. When it is done, it
/// frees the mbuf, from any thread: send_pool gets it, and sets the count to 0. So a driver needs no locked
/// instruction, which a second reference of the engine would cost it.
struct alignas(64) send_header {
    static constexpr std::size_t bounce_bytes = 128;

    rte_mbuf mbuf;
    std::array<std::byte, bounce_bytes> bounce{}; ///< a small frame that had to be copied, with its padding

    /// Send step 4, zero copy: points the mbuf to a frame of `count` bytes, and makes the driver's reference.
    void attach(const std::byte* frame, std::uint32_t count) noexcept
    {
        mbuf.buf_addr = const_cast<std::byte*>(frame);
        mbuf.buf_iova = reinterpret_cast<rte_iova_t>(frame);
        mbuf.buf_len = static_cast<std::uint16_t>(count);
        mbuf.ol_flags = 0;
        // Stores are the main cost of an entry, so neighboring fields share one store.
        static_assert(std::endian::native == std::endian::little &&
                      offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                      offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, pkt_len) + 4);
        store<offsetof(rte_mbuf, data_off)>(std::uint32_t{1} << 16);
        // `pkt_len` and `data_len` share one store; `vlan_tci` becomes 0.
        store<offsetof(rte_mbuf, pkt_len)>(std::uint64_t{count} << 32 | count);
    }
    /// No driver holds the mbuf. Release: the frame is not read any more.
    void detach() noexcept { references().store(0, std::memory_order_release); }
    /// Whether no driver holds the mbuf. Acquire, pairs with the release in detach().
    bool returned() const noexcept
    {
        return const_cast<send_header*>(this)->references().load(std::memory_order_acquire) == 0;
    }

 private:
    template <std::size_t Offset, class Word>
    void store(Word word) noexcept
    {
        std::memcpy(reinterpret_cast<std::byte*>(&mbuf) + Offset, &word, sizeof word);
    }
    std::atomic_ref<std::uint16_t> references() noexcept { return std::atomic_ref<std::uint16_t>(mbuf.refcnt); }
};

/// Recognizes frames that this program has sent to itself, by their headers, among received mbufs.
class own_frames {
 public:
    /// Gives back a frame that this program has sent and received, without a way through its pool. Returns false for
    /// any other mbuf, which the caller must free.
    bool give_back(rte_mbuf& mbuf) const noexcept
    {
        if (mbuf.pool->pool_config != source_ || mbuf.nb_segs != 1 || rte_mbuf_refcnt_read(&mbuf) != 1)
            return false;
        reinterpret_cast<send_header&>(mbuf).detach(); // the mbuf is the first member of its header
        return true;
    }

 private:
    friend class send_pool;
    static dpdk::mbuf_source* const source; ///< the source of every send pool, and of no other pool
    const void* const source_ = source;
};

/// Memory that frames are sent from, as one port uses it.
struct frame_memory {
    std::shared_ptr<const devices::memory_block> block;
    std::unique_ptr<dpdk::dma_mapping> mapping; ///< mapping for the device; nullptr: none. Destroyed before the block.
    bool zero_copy = true;                      ///< frames are sent from here without copying; see key_table::grant()
};

/// A list of one element: moving it to another list needs no memory.
using frame_memory_list = std::list<frame_memory>;

/// The mempool of these mbufs, according to their headers, to which drivers return them.
///
/// It must outlive the device of the port, whose driver may hold mbufs until the device is closed. If mbufs are held
/// even after that, the pool, the headers and the memory of their frames become leftovers. Call it while every engine
/// of the port is between two turns.
class send_pool {
 public:
    /// @param port  spec of the port, for the log
    explicit send_pool(std::string port = "");
    send_pool(const send_pool&) = delete;
    send_pool& operator=(const send_pool&) = delete;
    ~send_pool();

    /// Makes the headers for a ring of `depth` slots. Throws weftio::error errc::out_of_memory.
    std::unique_ptr<send_header[]> make(std::uint32_t depth);
    /// Takes the headers of a queue that was removed, and keeps them while a driver or receiver holds one. Needs no
    /// memory.
    void take(std::unique_ptr<send_header[]> headers, std::uint32_t depth) noexcept;
    /// Whether these bytes contain a frame of a removed queue that has not come back.
    /// @pre an engine of the port is between two turns
    bool uses(const std::byte* begin, std::size_t bytes) const noexcept;

    /// Keeps memory whose frames have not come back.
    void keep(frame_memory_list memory) noexcept;
    /// Removes the kept memory for which `unused(block)` is true, and returns it; the caller frees it.
    template <class Unused>
    frame_memory_list take_out(Unused&& unused) noexcept
    {
        frame_memory_list out;
        for (auto each = contents_->memory.begin(); each != contents_->memory.end();) {
            auto next = std::next(each);
            if (unused(*each->block))
                out.splice(out.end(), contents_->memory, each);
            each = next;
        }
        return out;
    }

 private:
    struct kept_headers {
        std::unique_ptr<send_header[]> headers;
        std::uint32_t depth;

        /// Number of headers attached to a frame for which `where` is true, and not returned.
        template <class Where>
        std::size_t attached(Where&& where) const noexcept
        {
            return static_cast<std::size_t>(
                std::count_if(headers.get(), headers.get() + depth, [&](const send_header& head) {
                    return !head.returned() && where(static_cast<const std::byte*>(head.mbuf.buf_addr));
                }));
        }
        std::size_t attached() const noexcept
        {
            return attached([](const std::byte*) { return true; });
        }
    };
    /// What becomes a leftover when mbufs are still held.
    struct contents final : dpdk::leftover {
        ~contents() override;
        bool returned() const noexcept override;

        rte_mempool* pool = nullptr;       ///< made when the first headers are made
        std::vector<kept_headers> headers; ///< has room for the headers of all queues, so that take() needs no memory
        frame_memory_list memory;
    };
    void forget_returned() noexcept;

    std::string port_;
    dpdk::leftover_list leftover_; ///< list whose one element is *contents_
    contents* contents_;           ///< the element of leftover_
    std::size_t queues_ = 0;
};

} // namespace weftio::nic::soft
