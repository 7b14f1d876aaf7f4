// A wait whose bound is as long as a number can say lasts until there is what it waits for.
#include "endless_kernels.h"

#include <fmt/format.h>

#include "as_a_driver.hpp"
#include "injected_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(receives_two, "endless_kernels.h");
WEFTIO_DEFINE_KERNEL(waits_for_item, "endless_kernels.h");
WEFTIO_DEFINE_KERNEL(waits_for_room, "endless_kernels.h");

namespace weftio::test {
namespace {

struct endless_case {
    const char* device;
    std::uint32_t lanes;
    std::uint64_t timeout_ns;
};

class EndlessWait : public testing::TestWithParam<endless_case> {
 protected:
    void SetUp() override
    {
        try {
            where.emplace(device::open(GetParam().device));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: waits of kernels on " << GetParam().device << "; " << refused.what();
        }
        words.emplace(*where, 2);
    }
    template <class Kernel, class... Arguments>
    running_kernel launch(const Kernel& kernel, Arguments&... arguments)
    {
        return where->launch(kernel, {.blocks = 1, .lanes = GetParam().lanes}, arguments..., GetParam().timeout_ns,
                             words->on_device());
    }
    /// Whether the kernel has waited for some turns, and waits on.
    template <class Queue>
    bool waits(const Queue& queue) const
    {
        return eventually([&] { return weftio_load_relaxed_u32(&queue.control()->beats) > 20 || (*words)[0]; }) &&
               !(*words)[0];
    }

    std::optional<device> where;
    std::optional<shared_words> words;
};

TEST_P(EndlessWait, OfAReceiveEndsWithItsPackets)
{
    injected_port turning({.mode = engine_mode::thread});
    eth_rxq queue(turning.get(), *where, {.packets = 64});
    flow everything(turning.get(), {}, flow_action::to(queue));
    running_kernel running = launch(receives_two_kernel, queue);
    ASSERT_TRUE(turning.send(numbered_frame(0)));
    EXPECT_TRUE(waits(queue));
    ASSERT_TRUE(turning.send(numbered_frame(1)));
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ((*words)[1], 2u);
}

TEST_P(EndlessWait, ForAnItemEndsWithTheItem)
{
    semaphore items(*where, {.items = 4});
    running_kernel running = launch(waits_for_item_kernel, items);
    EXPECT_TRUE(waits(items));
    for (semaphore_status next : {semaphore_status::ready, semaphore_status::hold, semaphore_status::done})
        items.set_status(1, next); // builds that check transitions take no other way
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ((*words)[1], static_cast<std::uint32_t>(WEFTIO_DEV_OK));
}

TEST_P(EndlessWait, ForRoomEndsWithTheRoom)
{
    injected_port turning({.mode = engine_mode::thread});
    eth_txq queue(turning.get(), *where, {.entries = 64});
    buf_arr frames(turning.get(), *where, {.count = 1, .buffer_bytes = 60});
    running_kernel running = launch(waits_for_room_kernel, queue, frames);
    EXPECT_TRUE(waits(queue));
    weftio_dev_eth_txq_push(queue.handle()); // for the kernel, as another block of it would
    EXPECT_TRUE(eventually([&] {
        const as_a_driver unseen;
        while (rte_mbuf* sent = turning.take()) // they lie in the wire until somebody takes them
            rte_pktmbuf_free(sent);
        return running.wait_for(std::chrono::milliseconds(1));
    }));
    EXPECT_EQ((*words)[1], static_cast<std::uint32_t>(WEFTIO_DEV_OK));
}

INSTANTIATE_TEST_SUITE_P(On, EndlessWait,
                         testing::Values(endless_case{"cpu", 1, UINT64_MAX}, endless_case{"cpu", 4, UINT64_MAX},
                                         endless_case{"cpu", 4, UINT64_MAX - 1}, endless_case{"opencl", 1, UINT64_MAX},
                                         endless_case{"opencl", 32, UINT64_MAX}),
                         [](const auto& info) {
                             return fmt::format("{}_{}{}", info.param.device, info.param.lanes,
                                                info.param.timeout_ns == UINT64_MAX ? "" : "_less_1");
                         });

TEST(Deadline, IsNeverBeforeTheWaitBegins)
{
    constexpr std::uint64_t last = UINT64_MAX;
    EXPECT_EQ(weftio_dev_deadline_ns(10, 5), 15u);
    EXPECT_EQ(weftio_dev_deadline_ns(10, last - 11), last - 1);
    for (std::uint64_t timeout_ns : {last - 10, last - 9, last})
        EXPECT_EQ(weftio_dev_deadline_ns(10, timeout_ns), last);
}

} // namespace
} // namespace weftio::test
