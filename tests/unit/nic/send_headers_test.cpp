// Mbufs that are given back: those of a send queue, those of others.
#include "nic/soft/send/send_headers.hpp"

#include <array>
#include <atomic>
#include <thread>

#include <rte_mempool.h>

#include "injected_port.hpp"

namespace weftio::nic::soft {
namespace {

/// Four headers, and a pool of somebody else's.
class GivingBack : public testing::Test {
 protected:
    static constexpr unsigned others = 4095;

    GivingBack() { pool = rte_pktmbuf_pool_create("giving_back", others, 0, 0, 256, SOCKET_ID_ANY); }
    ~GivingBack() override { rte_mempool_free(pool); }
    void attach(std::uint32_t slot) { headers[slot].attach(frame.data(), static_cast<std::uint32_t>(frame.size())); }
    /// As a receiver does.
    static void give_back(rte_mbuf& mbuf)
    {
        if (!own_frames().give_back(mbuf))
            rte_pktmbuf_free(&mbuf);
    }
    void give_back(std::uint32_t slot) { give_back(headers[slot].mbuf); }

    test::injected_port port; // for DPDK
    send_pool sends;
    std::unique_ptr<send_header[]> headers = sends.make(4);
    std::array<std::byte, 60> frame{};
    rte_mempool* pool;
};

TEST_F(GivingBack, ReturnsWhatWasAttached)
{
    attach(0);
    attach(1);
    EXPECT_FALSE(headers[0].returned());
    give_back(0);
    EXPECT_TRUE(headers[0].returned());
    EXPECT_FALSE(headers[1].returned());
}

TEST_F(GivingBack, GivesTheDriverTheOnlyReference)
{
    for (int again = 0; again < 2; ++again) {
        attach(0);
        EXPECT_EQ(rte_mbuf_refcnt_read(&headers[0].mbuf), 1)
            << "a driver that drops one of several takes a locked instruction";
        rte_pktmbuf_free(&headers[0].mbuf);
        EXPECT_TRUE(headers[0].returned());
    }
}

TEST_F(GivingBack, WaitsForEveryReference)
{
    attach(0);
    rte_mbuf_refcnt_update(&headers[0].mbuf, 1); // as a bond that sends on two links
    give_back(0);
    EXPECT_FALSE(headers[0].returned());
    give_back(0);
    EXPECT_TRUE(headers[0].returned());
}

TEST_F(GivingBack, FreesWhatIsChainedToIt)
{
    attach(0);
    headers[0].mbuf.next = rte_pktmbuf_alloc(pool);
    headers[0].mbuf.nb_segs = 2;
    give_back(0);
    EXPECT_TRUE(headers[0].returned());
    EXPECT_EQ(rte_mempool_avail_count(pool), others);
}

TEST_F(GivingBack, FreesTheMbufsOfOthersFromTwoThreadsAtOnce)
{
    std::array<rte_mbuf*, others> shared{};
    for (int round = 0; round < 400; ++round) {
        ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, shared.data(), others), 0);
        for (rte_mbuf* mbuf : shared)
            rte_mbuf_refcnt_set(mbuf, 2);
        std::atomic<int> ready{0};
        auto one_half = [&] {
            for (++ready; ready != 2;)
                std::this_thread::yield();
            for (rte_mbuf* mbuf : shared)
                give_back(*mbuf);
        };
        std::thread other(one_half);
        one_half();
        other.join();
        ASSERT_EQ(rte_mempool_avail_count(pool), others);
    }
}

} // namespace
} // namespace weftio::nic::soft
