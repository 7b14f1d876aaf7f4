// Launched kernels send from many lanes and blocks, on every device; every frame arrives once, through full rings and
// index wraps.
#include "send_kernels.h"

#include <cstring>

#include <fmt/format.h>

#include "sending_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(send_strong, "send_kernels.h");
WEFTIO_DEFINE_KERNEL(send_weak, "send_kernels.h");
WEFTIO_DEFINE_KERNEL(reply_in_place, "send_kernels.h");
WEFTIO_DEFINE_KERNEL(send_later, "send_kernels.h");

namespace weftio::test {
namespace {

constexpr std::uint32_t at_16_bits = 0x10000 - 777, at_32_bits = 0u - 777;

struct lanes_case {
    const char* device;
    grid shape;
    std::uint32_t entries = 64;
    std::uint32_t start = 0;
};

std::string name_of(const testing::TestParamInfo<lanes_case>& info)
{
    const lanes_case& tried = info.param;
    return fmt::format("{}_{}x{}_entries_{}_from_{:x}", tried.device, tried.shape.blocks, tried.shape.lanes,
                       tried.entries, tried.start);
}

class Lanes : public testing::TestWithParam<lanes_case> {
 protected:
    void SetUp() override
    {
        try {
            where.emplace(device::open(GetParam().device));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: sending by kernels on " << GetParam().device << "; " << refused.what();
        }
        port.emplace(port_options{
            .mode = engine_mode::thread, .idle = idle_policy::yield, .hold_when_full = port_options::hold::on});
        queue.emplace(port->get(), *where, eth_txq_options{.entries = GetParam().entries});
        start_at(port->get(), *queue, GetParam().start);
        report = where->allocate(sizeof(tally) * GetParam().shape.blocks, memory_kind::cpu_device);
    }
    void TearDown() override
    {
        queue.reset();
        frames.reset();
        port.reset();
    }

    void make_frames(std::uint32_t count) { frames.emplace(port->get(), *where, count, FRAME_BYTES); }
    /// Takes frames until `total` have come; whether they did in time.
    bool take(std::uint32_t total)
    {
        return eventually([&] {
            for (bytes& frame : port->take())
                arrived.push_back(std::move(frame));
            return arrived.size() >= total;
        });
    }
    /// How often each number came; frames that are not what they were are counted as damaged.
    std::vector<std::uint32_t> times(std::uint32_t total)
    {
        std::vector<std::uint32_t> seen(total);
        for (const bytes& frame : arrived) {
            std::uint32_t number = number_in(frame);
            if (number < total && frame == numbered(number, FRAME_BYTES))
                ++seen[number];
            else
                ++damaged;
        }
        return seen;
    }
    std::uint32_t sum(weftio_u32 tally::*member) const
    {
        std::uint32_t all = 0;
        for (std::uint32_t block = 0; block < GetParam().shape.blocks; ++block)
            all += static_cast<tally*>(report.cpu_address())[block].*member;
        return all;
    }
    /// Of a queue that no progress_engine of the test has.
    std::string why_failed() const
    try {
        std::string why;
        progress_engine host;
        host.attach(*queue, {.on_sent = {}, .on_error = [&](const send_failure& failure) { why = failure.text; }});
        host.progress();
        return why;
    } catch (const error& attached) {
        return attached.what();
    }
    void expect_all_done(std::uint32_t total)
    {
        EXPECT_TRUE(eventually([&] { return queue->counters().sent >= total; }));
        EXPECT_TRUE(port->take().empty());
        EXPECT_EQ(sum(&tally::wrong), 0u);
        EXPECT_EQ(queue->counters().sent, total);
        EXPECT_FALSE(queue->failed()) << why_failed();
        EXPECT_TRUE(conserves(queue->counters()));
        EXPECT_EQ(damaged, 0u);
    }

    std::optional<device> where;
    std::optional<sending_port> port;
    std::optional<eth_txq> queue;
    std::optional<numbered_buffers> frames;
    memory report;
    std::vector<bytes> arrived;
    std::uint32_t damaged = 0;
};

class StrongLanes : public Lanes {};

TEST_P(StrongLanes, SendEveryFrameOnce)
{
    const std::uint32_t total = 5 * 1024 + 77;
    make_frames(total);
    running_kernel running =
        where->launch(send_strong_kernel, GetParam().shape, *queue, frames->array(), report.device_address(), total);
    EXPECT_TRUE(take(total)) << arrived.size() << " of " << total;
    EXPECT_TRUE(running.wait_for(patience));
    EXPECT_EQ(times(total), std::vector<std::uint32_t>(total, 1));
    if (GetParam().shape.blocks * GetParam().shape.lanes * 4 / 3 > GetParam().entries) {
        EXPECT_GT(sum(&tally::full), 0u); // the ring was full, and said so
    }
    expect_all_done(total);
}

std::vector<lanes_case> strong_cases()
{
    std::vector<lanes_case> cases;
    for (const char* device : {"cpu", "opencl"})
        for (std::uint32_t blocks : {1u, 4u})
            for (std::uint32_t lanes : {1u, 32u, 256u, 1024u})
                cases.push_back({device, {blocks, lanes}});
    for (const char* device : {"cpu", "opencl"})
        for (std::uint32_t start : {at_16_bits, at_32_bits})
            cases.push_back({device, {4, 32}, 256, start});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Of, StrongLanes, testing::ValuesIn(strong_cases()), name_of);

class WeakLanes : public Lanes {};

TEST_P(WeakLanes, SendEveryFrameOnceAndInOrder)
{
    const std::uint32_t total = 3000;
    make_frames(2 * total);
    for (std::uint32_t masked : {0u, 1u}) {
        arrived.clear();
        running_kernel running = where->launch(send_weak_kernel, GetParam().shape, *queue, frames->array(),
                                               report.device_address(), total, masked);
        EXPECT_TRUE(take(total)) << arrived.size() << " of " << total;
        EXPECT_TRUE(running.wait_for(patience));
        EXPECT_EQ(arrived, numbered_run(0, total, FRAME_BYTES));
        expect_all_done(total * (masked + 1));
    }
}

std::vector<lanes_case> weak_cases()
{
    std::vector<lanes_case> cases;
    for (const char* device : {"cpu", "opencl"}) {
        for (std::uint32_t lanes : {1u, 32u, 256u, 1024u})
            cases.push_back({device, {1, lanes}, 256});
        for (std::uint32_t start : {at_16_bits, at_32_bits})
            cases.push_back({device, {1, 32}, 64, start});
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Of, WeakLanes, testing::ValuesIn(weak_cases()), name_of);

class Replying : public Lanes {};

TEST_P(Replying, SendsFromReceiveSlotsThatItHolds)
{
    const std::uint32_t total = 2000;
    eth_rxq slots(port->get(), *where, {.packets = 64, .max_packet_bytes = 128});
    flow everything(port->get(), {}, flow_action::to(slots));
    running_kernel running =
        where->launch(reply_in_place_kernel, GetParam().shape, slots, *queue, report.device_address());
    for (std::uint32_t sent = 0; sent < total; sent += 50) {
        for (std::uint32_t number = sent; number < sent + 50; ++number)
            ASSERT_TRUE(eventually([&] { return port->arrive(numbered(number)); }));
        ASSERT_TRUE(take(sent + 50)) << arrived.size();
    }
    running.stop();
    ASSERT_TRUE(running.wait_for(patience));
    ASSERT_EQ(arrived.size(), total);
    for (std::uint32_t number = 0; number < total; ++number) {
        bytes expected = numbered(number);
        std::swap_ranges(expected.begin(), expected.begin() + 6, expected.begin() + 6);
        ASSERT_EQ(arrived[number], expected);
    }
    EXPECT_EQ(queue->counters().copied_bytes, 0u);
    expect_all_done(total);
}

INSTANTIATE_TEST_SUITE_P(Of, Replying,
                         testing::Values(lanes_case{"cpu", {1, 1}}, lanes_case{"cpu", {1, 1}, 64, at_32_bits},
                                         lanes_case{"opencl", {1, 1}}),
                         name_of);

class Later : public Lanes {};

TEST_P(Later, GoesOutOnTimeAlsoWhenItsKernelHasReturned)
{
    constexpr std::uint64_t interval_ns = 20'000'000;
    constexpr std::uint32_t bursts = 8;
    make_frames(bursts);
    std::vector<send_notification> sent;
    progress_engine progress;
    progress.attach(*queue, {.on_sent = [&](const send_notification& each) { sent.push_back(each); }});
    // Compiling takes its time, so the first launch is for nothing.
    ASSERT_TRUE(where->launch(send_later_kernel, GetParam().shape, *queue, frames->array(), 0, interval_ns, 0)
                    .wait_for(patience));
    std::uint64_t start_ns = utc_now_ns() + 400'000'000;
    running_kernel running = where->launch(send_later_kernel, GetParam().shape, *queue, frames->array(),
                                           eth_txq::timestamp(start_ns), interval_ns, bursts);
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_FALSE(running.alive());
    EXPECT_TRUE(take(bursts));
    EXPECT_EQ(arrived, numbered_run(0, bursts, FRAME_BYTES));
    ASSERT_TRUE(eventually([&] { return progress.progress(), sent.size() >= bursts; }));
    for (std::uint32_t burst = 0; burst < bursts; ++burst) {
        EXPECT_EQ(sent[burst].position, 2 * burst + 1);
        EXPECT_GE(sent[burst].time_ns, start_ns + burst * interval_ns);
    }
    EXPECT_EQ(queue->schedule().count, bursts);
    EXPECT_EQ(queue->counters().waited, bursts);
    expect_all_done(bursts);
}

INSTANTIATE_TEST_SUITE_P(Of, Later, testing::Values(lanes_case{"cpu", {1, 32}}, lanes_case{"opencl", {1, 32}}),
                         name_of);

} // namespace
} // namespace weftio::test
