// Positions: which one a strong enqueue took, when it is done, and which ones a weak enqueue refuses.
#include "completion_kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sending_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(send_and_wait, "completion_kernels.h");
WEFTIO_DEFINE_KERNEL(send_and_say_why, "completion_kernels.h");

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;
constexpr std::uint64_t soon_ns = 1'000'000;
const std::uint64_t long_ns = patience_ns;

/// A queue whose indices begin at the parameter. The test runs the engine, except in calls that wait: those run it too.
class Positions : public testing::TestWithParam<std::uint32_t> {
 protected:
    Positions() { start_at(port.get(), queue, GetParam()); }

    weftio_s32 send(std::uint32_t* position)
    {
        return weftio_dev_eth_txq_send_enqueue_strong_position(txq, frames[0], 60, WEFTIO_DEV_SEND_NONE, position);
    }
    weftio_s32 send_weak(std::uint32_t position)
    {
        return weftio_dev_eth_txq_send_enqueue_weak(txq, frames[0], 60, position, WEFTIO_DEV_SEND_NONE);
    }
    weftio_s32 wait_weak(std::uint32_t position)
    {
        return weftio_dev_eth_txq_wait_time_enqueue_weak(txq, eth_txq::timestamp(1), position, WEFTIO_DEV_SEND_NONE);
    }
    void commit_and_push()
    {
        EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
    }

    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = depth}};
    numbered_buffers frames{port.get(), cpu, 1};
    weftio_dev_eth_txq* txq = queue.handle();
};

TEST_P(Positions, AreToldByAStrongEnqueueThatFindsRoom)
{
    std::uint32_t position = 0;
    for (std::uint32_t number = 0; number < depth; ++number) {
        ASSERT_EQ(send(&position), WEFTIO_DEV_OK);
        ASSERT_EQ(position, GetParam() + number);
    }
    EXPECT_EQ(send(&position), WEFTIO_DEV_FULL);
    EXPECT_EQ(position, GetParam() + depth - 1);
}

TEST_P(Positions, AreWaitedForUntilTheDriverHasGivenTheFrameBack)
{
    std::uint32_t first = 0, second = 0;
    ASSERT_EQ(send(&first), WEFTIO_DEV_OK);
    ASSERT_EQ(send(&second), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, first, soon_ns), WEFTIO_DEV_TIMEOUT); // not committed
    commit_and_push();
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, first, soon_ns), WEFTIO_DEV_TIMEOUT);
    rte_pktmbuf_free(port.take_mbuf());
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, first, long_ns), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, second, soon_ns), WEFTIO_DEV_TIMEOUT);
    rte_pktmbuf_free(port.take_mbuf());
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, second, UINT64_MAX), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, first, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(queue.counters().sent, 2u);
}

TEST_P(Positions, AreWaitedForNoLongerThanTheHostWants)
{
    std::uint32_t position = 0;
    ASSERT_EQ(send(&position), WEFTIO_DEV_OK);
    commit_and_push();
    weftio_store_relaxed_u32(&queue.control()->abort, 1);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, position, 0), WEFTIO_DEV_ABORTED);
    EXPECT_EQ(port.send_all().size(), 1u);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, position, 0), WEFTIO_DEV_ABORTED);
    weftio_store_relaxed_u32(&queue.control()->abort, 0);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, position, 0), WEFTIO_DEV_OK);
}

TEST_P(Positions, AreNotWaitedForOnceTheQueueIsInError)
{
    std::uint32_t position = 0;
    weftio_dev_buf wild = frames[0];
    wild.lkey_be = 0;
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong_position(txq, wild, 60, 0, &position), WEFTIO_DEV_OK);
    commit_and_push();
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, position, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(weftio_dev_eth_txq_wait_completed(txq, position + 1, 0), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_P(Positions, AreRefusedByAWeakEnqueueOnceCommittedInEveryPass)
{
    std::uint32_t next = GetParam();
    for (std::uint32_t committed = 0; committed < 4 * depth; committed += 16, next += 16) {
        for (std::uint32_t back = 1; back <= 2 * depth; ++back) {
            ASSERT_EQ(send_weak(next - back), WEFTIO_DEV_INVALID_ARGUMENT) << committed << " committed, " << back;
            ASSERT_EQ(wait_weak(next - back), WEFTIO_DEV_INVALID_ARGUMENT) << committed << " committed, " << back;
        }
        for (std::uint32_t ahead = 0; ahead < 16; ++ahead)
            ASSERT_EQ(send_weak(next + ahead), WEFTIO_DEV_OK) << ahead;
        ASSERT_EQ(weftio_dev_eth_txq_commit_weak(txq, 16), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
        ASSERT_EQ(port.send_all().size(), 16u);
    }
    EXPECT_EQ(queue.counters().sent, 4 * depth);
}

TEST_P(Positions, AreFoundBySlot)
{
    for (std::uint32_t committed = 0; committed < 3 * depth; committed += 24) {
        std::uint32_t next = GetParam() + committed;
        for (std::uint32_t ahead = 0; ahead < depth; ++ahead)
            ASSERT_EQ(weftio_dev_eth_txq_unmask(txq, (next + ahead) & (depth - 1)), next + ahead) << committed;
        for (std::uint32_t ahead = 0; ahead < 24; ++ahead)
            ASSERT_EQ(send_weak(next + ahead), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_commit_weak(txq, 24), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
        ASSERT_EQ(port.send_all().size(), 24u);
    }
}

INSTANTIATE_TEST_SUITE_P(From, Positions, testing::Values(0u, 0x10000u - 100, 0u - 100),
                         [](const auto& start) { return fmt::format("{:08x}", start.param); });

struct waiting_case {
    const char* device;
    grid shape;
    std::uint32_t start;
};

/// Every lane waits for a frame of its own while the engine's thread sends.
class WaitingLanes : public testing::TestWithParam<waiting_case> {};

TEST_P(WaitingLanes, EachSeeTheirOwnFrameSent)
{
    const auto& [spec, shape, start] = GetParam();
    std::optional<device> where;
    try {
        where.emplace(device::open(spec));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: waiting for completions on " << spec << "; " << refused.what();
    }
    const std::uint32_t rounds = 20, lanes = shape.blocks * shape.lanes;
    port null = port::open("null", {.idle = idle_policy::yield});
    eth_txq queue(null, *where, {.entries = 512});
    start_at(null, queue, start);
    buf_arr frames(null, *where, {.count = lanes, .buffer_bytes = COMPLETION_FRAME_BYTES});
    memory report = where->allocate(sizeof(completion_tally), memory_kind::cpu_device);
    running_kernel running = where->launch(send_and_wait_kernel, shape, queue, frames, report.device_address(), rounds);
    ASSERT_TRUE(running.wait_for(patience));
    const auto& seen = *static_cast<completion_tally*>(report.cpu_address());
    EXPECT_EQ(seen.refused, 0u);
    EXPECT_EQ(seen.late, 0u);
    EXPECT_EQ(seen.undone, 0u);
    std::uint32_t positions = 0;
    for (std::uint32_t entry = 0; entry < rounds * lanes; ++entry)
        positions += start + entry;
    EXPECT_EQ(seen.positions, positions) << "each position once";
    EXPECT_EQ(queue.counters().sent, rounds * lanes);
    EXPECT_TRUE(conserves(queue.counters()));
}

std::vector<waiting_case> waiting_cases()
{
    std::vector<waiting_case> cases;
    for (const char* spec : {"cpu", "opencl"})
        for (grid shape : {grid{1, 1}, grid{1, 32}, grid{2, 8}, grid{2, 128}})
            for (std::uint32_t start : {0u, 0x10000u - 77, 0u - 77})
                cases.push_back({spec, shape, start});
    return cases;
}

std::string name_of(const testing::TestParamInfo<waiting_case>& info)
{
    const auto& [spec, shape, start] = info.param;
    return fmt::format("{}_{}x{}_from_{:x}", spec, shape.blocks, shape.lanes, start);
}

INSTANTIATE_TEST_SUITE_P(Of, WaitingLanes, testing::ValuesIn(waiting_cases()), name_of);

/// A kernel finds the reason in the completion that the host is told in words.
class ReasonInAKernel : public testing::TestWithParam<const char*> {};

TEST_P(ReasonInAKernel, IsThatOfTheHostsSentence)
{
    std::optional<device> where;
    try {
        where.emplace(device::open(GetParam()));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: reasons in a kernel on " << GetParam() << "; " << refused.what();
    }
    port null = port::open("null", {.idle = idle_policy::yield});
    eth_txq queue(null, *where, {.entries = 64});
    std::vector<send_failure> failures;
    progress_engine progress;
    progress.attach(queue,
                    {.on_sent = {}, .on_error = [&](const send_failure& failure) { failures.push_back(failure); }});
    const memory room = where->allocate(4096, memory_kind::cpu_device);
    const memory report = where->allocate(3 * sizeof(std::uint32_t), memory_kind::cpu_device);
    const auto* said = static_cast<const std::uint32_t*>(report.cpu_address());
    const memory_region elsewhere(room), apart(null, room, {.domain = protection_domain::make()});
    for (const auto& [region, why] : {std::pair{&elsewhere, refusal::unknown_key}, {&apart, refusal::other_domain}}) {
        const buf_arr frames(*region, *where, {.count = 1, .buffer_bytes = COMPLETION_FRAME_BYTES});
        running_kernel running = where->launch(send_and_say_why_kernel, {1, 1}, queue, frames, report.device_address());
        ASSERT_TRUE(running.wait_for(patience));
        EXPECT_EQ(said[0], static_cast<std::uint32_t>(WEFTIO_DEV_QUEUE_ERROR));
        EXPECT_EQ(said[1], static_cast<std::uint32_t>(why));
        EXPECT_EQ(progress.progress(), 1u);
        EXPECT_EQ(said[2], failures.at(0).syndrome);
        EXPECT_THAT(failures.at(0).text,
                    testing::EndsWith(fmt::format("failed: {}", explain(static_cast<std::uint8_t>(said[1])))));
        failures.clear();
        queue.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(Of, ReasonInAKernel, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
