// A driver that sends on time is told when; the engine does not wait in its place.
#include <rte_mbuf_dyn.h>

#include "core/clock.hpp"
#include "nic/soft/send/sender.hpp"
#include "sending_port.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// A send queue on a ring made by hand, of a port whose driver is said to keep timestamps.
class HardwarePacing : public testing::Test {
 protected:
    static constexpr std::uint32_t depth = 64;

    HardwarePacing()
    {
        port_queue.port = software_nic(port.get()).device().id();
        port_queue.mtu = 1500;
        port_queue.copies = nullptr;
        EXPECT_EQ(rte_mbuf_dyn_tx_timestamp_register(&port_queue.timestamp_offset, &port_queue.timestamp_flag), 0);
        completion.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        txq.queue.ring = {.segments = words.data(),
                          .mask = depth - 1,
                          .queue = 0,
                          .checksums = 0,
                          .ready = 0,
                          .dbrec = &dbrec,
                          .doorbell = &doorbell,
                          .completion = &completion,
                          .filled = filled.data(),
                          .reserved = 0,
                          .asked = 0,
                          .completed = 0,
                          .commits = 0,
                          .refreshing = 0,
                          .needs_flush = 0};
        txq.queue.control = &kernel_control;
        sender.emplace(port_queue, software_nic(port.get()).keys(), pool);
        txq.queue.ring.queue = 1;
        sender->add(1, {.entries = {.words = words.data(), .depth = depth, .queue = 0},
                        .dbrec = &dbrec,
                        .completion = &completion,
                        .horizon_ns = 4 * second});
    }
    void wait(std::uint64_t deadline_ns)
    {
        EXPECT_EQ(weftio_dev_eth_txq_wait_time_enqueue_strong(&txq, eth_txq::timestamp(deadline_ns), 0), WEFTIO_DEV_OK);
    }
    void send(std::uint32_t number)
    {
        EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_strong(&txq, frames[number], 60, 0), WEFTIO_DEV_OK);
    }
    /// What each frame says of its time; 0: at once.
    std::vector<std::uint64_t> run()
    {
        EXPECT_EQ(weftio_dev_eth_txq_commit_strong(&txq), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(&txq);
        while (sender->turn({.entries = 32, .busy = false}) != 0) {
        }
        std::vector<std::uint64_t> stamps;
        while (rte_mbuf* mbuf = port.take_mbuf()) {
            bool stamped = (mbuf->ol_flags & port_queue.timestamp_flag) != 0;
            stamps.push_back(stamped ? *RTE_MBUF_DYNFIELD(mbuf, port_queue.timestamp_offset, rte_mbuf_timestamp_t*)
                                     : 0);
            rte_pktmbuf_free(mbuf);
        }
        sender->turn({.entries = 32, .busy = false});
        return stamps;
    }

    device cpu = device::open("cpu");
    nic::soft::send_pool pool;
    sending_port port;
    numbered_buffers frames{port.get(), cpu, 64};
    dpdk::port_queue port_queue;
    alignas(64) std::array<std::uint32_t, depth * 16> words{};
    std::array<std::uint32_t, depth> filled{};
    std::uint32_t dbrec = 0;
    std::uint64_t doorbell = 0;
    weftio_cqe completion{};
    weftio_dev_control kernel_control{};
    weftio_dev_eth_txq txq{};
    std::optional<nic::soft::sender> sender;
};

TEST_F(HardwarePacing, StampsTheFirstFrameBehindAWait)
{
    const std::uint64_t now_ns = core::utc_now_ns();
    send(0);
    wait(now_ns + second);
    send(1);
    send(2);
    wait(now_ns + 2 * second);
    wait(now_ns + 3 * second);
    send(3);
    EXPECT_EQ(run(), (std::vector<std::uint64_t>{0, now_ns + second, 0, now_ns + 3 * second}));
    EXPECT_EQ(sender->deadline_ns(), 0u);
    EXPECT_EQ(sender->queue(txq.queue.ring.queue).sent.value(), 4u);
    EXPECT_EQ(sender->queue(txq.queue.ring.queue).waited.value(), 3u);
}

TEST_F(HardwarePacing, KeepsTheLaterOfTwoWaitsOutOfOrder)
{
    const std::uint64_t now_ns = core::utc_now_ns();
    wait(now_ns + 2 * second);
    wait(now_ns + second);
    send(0);
    EXPECT_EQ(run(), (std::vector<std::uint64_t>{now_ns + 2 * second}));
    EXPECT_EQ(sender->queue(txq.queue.ring.queue).schedule().order_errors.value(), 1u);
}

TEST_F(HardwarePacing, SendsWhatIsPastAtOnceAndCounts)
{
    wait(core::utc_now_ns() - second);
    send(0);
    EXPECT_EQ(run(), (std::vector<std::uint64_t>{0}));
    EXPECT_EQ(sender->queue(txq.queue.ring.queue).schedule().past_errors.value(), 1u);
}

TEST_F(HardwarePacing, RefusesWhatIsBeyondTheHorizon)
{
    wait(core::utc_now_ns() + 3600 * second);
    send(0);
    EXPECT_TRUE(run().empty());
    EXPECT_EQ(sender->queue(txq.queue.ring.queue).schedule().future_errors.value(), 1u);
    EXPECT_TRUE(sender->queue(txq.queue.ring.queue).failed());
}

} // namespace
} // namespace weftio::test
