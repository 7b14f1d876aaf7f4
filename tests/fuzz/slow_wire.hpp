// A driver that accepts a given number of frames and keeps them until they are released: DPDK callbacks in front of
// net_null.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "expect.hpp"

namespace weftio::fuzz {

/// One object for each port; it must live as long as the port. One thread.
class slow_wire {
 public:
    explicit slow_wire(std::uint16_t port)
    {
        expect(rte_eth_add_tx_callback(port, 0, take, this) != nullptr, "DPDK has callbacks for sending");
    }
    slow_wire(const slow_wire&) = delete;
    slow_wire& operator=(const slow_wire&) = delete;

    /// Accepts the next `frames` frames and then no more. `keep`: keeps them until release(); false: frees them at
    /// once.
    void set(std::uint64_t frames, bool keep)
    {
        room_ = frames;
        keep_ = keep;
    }
    /// Frees the oldest `frames` frames that are kept.
    void release(std::size_t frames)
    {
        auto end = kept_.begin() + static_cast<std::ptrdiff_t>(std::min(frames, kept_.size()));
        std::for_each(kept_.begin(), end, rte_pktmbuf_free);
        kept_.erase(kept_.begin(), end);
    }
    void release_all() { release(kept_.size()); }
    /// Whether a kept frame begins within these bytes.
    bool keeps(const std::byte* begin, std::size_t bytes) const
    {
        return std::any_of(kept_.begin(), kept_.end(), [&](const rte_mbuf* frame) {
            auto* at = static_cast<const std::byte*>(frame->buf_addr);
            return at >= begin && at < begin + bytes;
        });
    }
    std::uint64_t taken() const noexcept { return taken_; }

 private:
    static std::uint16_t take(std::uint16_t, std::uint16_t, rte_mbuf** frames, std::uint16_t count, void* self)
    {
        return static_cast<slow_wire*>(self)->take(frames, count);
    }
    std::uint16_t take(rte_mbuf** frames, std::uint16_t count)
    {
        auto some = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, room_));
        room_ -= some;
        taken_ += some;
        for (std::uint16_t at = 0; at < some; ++at) {
            read(*frames[at]);
            if (keep_) {
                rte_mbuf_refcnt_update(frames[at], 1); // so that net_null's free does not free the frame
                kept_.push_back(frames[at]);
            }
        }
        return some;
    }
    /// Reads a frame as hardware would. With guard pages around it, the first byte, the last and one between are
    /// enough.
    void read(const rte_mbuf& frame)
    {
        constexpr std::uint32_t shortest = 60, longest = RTE_ETHER_MTU + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
        expect(frame.nb_segs == 1 && frame.data_len == frame.pkt_len, "a frame is in one piece");
        expect(frame.pkt_len >= shortest && frame.pkt_len <= longest, "a frame is as long as the wire takes");
        auto* bytes = rte_pktmbuf_mtod(&frame, const volatile std::uint8_t*);
        for (std::uint32_t at : {0u, frame.pkt_len / 2, frame.pkt_len - 1u})
            seen_ = static_cast<std::uint8_t>(seen_ + bytes[at]);
    }

    std::uint64_t room_ = 0, taken_ = 0;
    bool keep_ = false;
    std::uint8_t seen_ = 0;
    std::vector<rte_mbuf*> kept_;
};

} // namespace weftio::fuzz
