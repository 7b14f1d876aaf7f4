// Received frames, in guarded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "expect.hpp"
#include "frame_memory.hpp"

namespace weftio::fuzz {

/// Puts frames of the input into mbufs that refer to guarded memory.
class frame_mbufs {
 public:
    frame_mbufs() : pool_(rte_pktmbuf_pool_create("hostile", mbufs, 0, 0, 0, SOCKET_ID_ANY))
    {
        expect(pool_ != nullptr, "a pool");
        shared_.free_cb = [](void*, void*) {};
    }
    /// @param first  bytes of the first segment; the others are in a second one. 0: there is one
    rte_mbuf* make(std::span<const std::uint8_t> frame, std::size_t first)
    {
        if (first == 0 || first >= frame.size())
            return segment(front_, frame);
        rte_mbuf *const begin = segment(front_, frame.first(first)), *const rest = segment(back_, frame.subspan(first));
        expect(rte_pktmbuf_chain(begin, rest) == 0, "two segments");
        return begin;
    }
    void free(rte_mbuf* mbuf)
    {
        rte_pktmbuf_free(mbuf);
        expect(rte_mempool_avail_count(pool_) == mbufs, "nobody keeps a frame");
    }

 private:
    static constexpr unsigned mbufs = 15;

    rte_mbuf* segment(frame_memory& memory, std::span<const std::uint8_t> bytes)
    {
        const std::span<const std::uint8_t> at = memory.against_the_end(bytes);
        const auto count = static_cast<std::uint16_t>(bytes.size());
        rte_mbuf* const made = rte_pktmbuf_alloc(pool_);
        rte_mbuf_ext_refcnt_set(&shared_, 2); // never the last one
        rte_pktmbuf_attach_extbuf(made, const_cast<std::uint8_t*>(at.data()), 0, count, &shared_);
        made->data_off = 0;
        made->data_len = count;
        made->pkt_len = count;
        return made;
    }

    rte_mempool* pool_;
    rte_mbuf_ext_shared_info shared_{};
    frame_memory front_, back_;
};

} // namespace weftio::fuzz
