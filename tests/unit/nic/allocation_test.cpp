// Once traffic flows nothing is allocated, by nobody in the process.
#include <atomic>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "sanitized.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

} // namespace

#ifndef WEFTIO_TEST_SANITIZED // which have an allocator of their own
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* room, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* room, std::size_t bytes)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(room, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, bytes);
}
}
#endif

namespace weftio::test {
namespace {

struct road {
    std::string port;
    engine_mode mode;
    bool verify;
};

void PrintTo(const road& road, std::ostream* out)
{
    *out << road.port << (road.mode == engine_mode::thread ? ", engine thread" : ", inline")
         << (road.verify ? ", verified" : "");
}

class NoAllocation : public testing::TestWithParam<road> {
 protected:
    /// Receives, sends from where the packets lie, gives slots back: `packets` of them at least. This thread is the
    /// kernel.
    void forward(std::uint64_t packets)
    {
        weftio_dev_eth_rxq* rxq = in_.handle();
        weftio_dev_eth_txq* txq = out_.handle();
        for (std::uint64_t seen = 0; seen < packets;) {
            std::uint32_t count = 0, first = 0;
            ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(rxq, 32, patience_ns, &count, &first), WEFTIO_DEV_OK);
            ASSERT_NE(count, 0u);
            ASSERT_EQ(weftio_dev_eth_txq_wait_room(txq, count, patience_ns), WEFTIO_DEV_OK);
            for (std::uint32_t at = 0; at < count; ++at) {
                weftio_dev_packet packet{};
                ASSERT_EQ(weftio_dev_eth_rxq_packet(rxq, first + at, &packet), WEFTIO_DEV_OK);
                ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_eth_rxq_buf(rxq, first + at),
                                                                 packet.bytes, WEFTIO_DEV_SEND_NONE),
                          WEFTIO_DEV_OK);
            }
            weftio_dev_eth_txq_commit_strong(txq);
            weftio_dev_eth_txq_push(txq);
            ASSERT_EQ(weftio_dev_eth_txq_wait_room(txq, out_.entries(), patience_ns), WEFTIO_DEV_OK); // all are sent
            weftio_dev_eth_rxq_release(rxq, first, count);
            seen += count;
        }
    }

    port port_ = port::open(GetParam().port, {.mode = GetParam().mode, .hold_when_full = port_options::hold::on});
    device cpu_ = device::open("cpu");
    eth_rxq in_{port_, cpu_, {.verify_checksums = GetParam().verify}};
    eth_txq out_{port_, cpu_};
    flow everything_{port_, {}, flow_action::to(in_)};
};

TEST_P(NoAllocation, HappensOnceTrafficFlows)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: allocations of the data path, which the sanitizer's own allocator does not count; a plain "
                    "build has it";
#endif
    forward(10'000);
    const std::uint64_t before = allocations.load();
    ASSERT_GT(before, 0u) << "nothing counts allocations";
    forward(200'000);
    EXPECT_EQ(allocations.load(), before);
    if (GetParam().mode ==
        engine_mode::inline_worker) { // an engine thread may be ahead of the kernel, and copy what then waits
        EXPECT_EQ(port_.counters().copied_bytes, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Of, NoAllocation,
                         testing::Values(road{"net_null7,size=64", engine_mode::inline_worker, false},
                                         road{"net_null7,size=64", engine_mode::inline_worker, true},
                                         road{"net_null7,size=64", engine_mode::thread, false},
                                         road{"net_null7,size=1514", engine_mode::thread, true}));

} // namespace
} // namespace weftio::test
