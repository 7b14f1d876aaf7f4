// What queues that wait for a deadline leave to their neighbors.
#include <gtest/gtest.h>

#include <deque>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t frame_bytes = 1000, entries = 64; // longer than a header's bounce buffer

class Waits : public testing::Test {
 protected:
    /// As many frames as the queue takes, which can be sent from copies only.
    void send_copies(const eth_txq& queue, std::uint32_t count)
    {
        weftio_dev_eth_txq* txq = queue.handle();
        for (std::uint32_t number = 0; number < count; ++number)
            ASSERT_EQ(
                weftio_dev_eth_txq_send_enqueue_strong(txq, frames_[number], frame_bytes, WEFTIO_DEV_SEND_L3_CHECKSUM),
                WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }

    sending_port port_;
    device cpu_ = device::open("cpu");
    numbered_buffers frames_{port_.get(), cpu_, entries, frame_bytes};
};

TEST_F(Waits, LeaveCopiesForNeighbors)
{
    std::deque<eth_txq> waiting;
    for (int queue = 0; queue < 40; ++queue) { // 2,520 frames: five times the copies that there are
        waiting.emplace_back(port_.get(), cpu_, eth_txq_options{.entries = entries, .horizon_ns = 2 * an_hour_ns});
        weftio_dev_eth_txq_wait_time_enqueue_strong(waiting.back().handle(),
                                                    eth_txq::timestamp(utc_now_ns() + an_hour_ns), 0);
        send_copies(waiting.back(), entries - 1);
        port_.run_dry();
    }
    eth_txq neighbor(port_.get(), cpu_, {.entries = entries});
    send_copies(neighbor, entries);
    port_.run_dry();
    EXPECT_EQ(port_.take().size(), entries);
    for (const eth_txq& queue : waiting)
        EXPECT_EQ(queue.counters().sent, 0u);
}

} // namespace
} // namespace weftio::test
