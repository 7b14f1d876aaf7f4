// Annotations for ThreadSanitizer of a wire of DPDK rings between the engines of two ports.
#pragma once

#include <cstdint>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "unit/nic/as_a_driver.hpp"

#ifdef WEFTIO_TEST_UNDER_TSAN
extern "C" void __tsan_acquire(void* at);
extern "C" void __tsan_release(void* at);
#endif

namespace weftio::test {

#ifdef WEFTIO_TEST_UNDER_TSAN

/// Frames on the wire are copies that DPDK makes, so that ThreadSanitizer sees each mbuf in the receiving engine only.
/// The ring, and the pool by which an mbuf returns to the sender, are in DPDK and not visible to ThreadSanitizer.
inline std::uint16_t put_on_wire(std::uint16_t, std::uint16_t, rte_mbuf* frames[], std::uint16_t count, void* copies)
{
    as_a_driver unseen;
    for (std::uint16_t each = 0; each < count; ++each) {
        rte_mbuf* const copy = rte_pktmbuf_copy(frames[each], static_cast<rte_mempool*>(copies), 0, UINT32_MAX);
        if (!copy)
            return each;
        rte_pktmbuf_free(frames[each]);
        frames[each] = copy;
        __tsan_release(copy);
    }
    return count;
}

inline std::uint16_t take_from_wire(std::uint16_t, std::uint16_t, rte_mbuf* frames[], std::uint16_t count,
                                    std::uint16_t, void*)
{
    for (std::uint16_t each = 0; each < count; ++each)
        __tsan_acquire(frames[each]);
    return count;
}

constexpr unsigned wire_copies = 4095;

/// One end of the wire. It must end before the DPDK port does, because the next port reuses its number and callbacks.
class seen_wire {
 public:
    void begin(std::uint16_t port, std::uint16_t queues, rte_mempool* copies)
    {
        port_ = port;
        for (std::uint16_t queue = 0; queue < queues; ++queue) {
            sends_.push_back(rte_eth_add_tx_callback(port, queue, put_on_wire, copies));
            receives_.push_back(rte_eth_add_rx_callback(port, queue, take_from_wire, nullptr));
        }
    }
    void end()
    {
        for (std::uint16_t queue = 0; queue < sends_.size(); ++queue) {
            rte_eth_remove_tx_callback(port_, queue, sends_[queue]);
            rte_eth_remove_rx_callback(port_, queue, receives_[queue]);
        }
    }

 private:
    std::uint16_t port_ = 0;
    std::vector<const rte_eth_rxtx_callback*> sends_, receives_;
};

#else

constexpr unsigned wire_copies = 0;

struct seen_wire {
    void begin(std::uint16_t, std::uint16_t, rte_mempool*) {}
    void end() {}
};

#endif

} // namespace weftio::test
