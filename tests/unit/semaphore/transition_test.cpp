// Which changes of status are legal, and what becomes of the others.
#include <set>
#include <string>
#include <vector>

#include "fixture.hpp"
#include "weftio/kernel.hpp"
#include "weftio/log.hpp"

WEFTIO_DEFINE_KERNEL(set_one, "semaphore_kernels.h");

namespace weftio::test {
namespace {

using semaphore_status::done;
using semaphore_status::free;
using semaphore_status::hold;
using semaphore_status::ready;
using testing::HasSubstr;

constexpr semaphore_status all_statuses[] = {free, ready, hold, done, semaphore_status::error};

const std::set<std::pair<semaphore_status, semaphore_status>> legal{{free, ready},
                                                                    {free, hold},
                                                                    {hold, ready},
                                                                    {hold, free},
                                                                    {hold, done},
                                                                    {hold, semaphore_status::error},
                                                                    {ready, hold},
                                                                    {ready, done},
                                                                    {ready, free},
                                                                    {done, free},
                                                                    {done, ready},
                                                                    {ready, semaphore_status::error},
                                                                    {semaphore_status::error, free}};

/// An item of status `status`, the short way.
semaphore item_of(const device& device, semaphore_status status)
{
    semaphore items(device, {.items = 2, .check_transitions = true});
    if (status == free)
        return items;
    EXPECT_EQ(items.set_status(1, hold), WEFTIO_DEV_OK);
    if (status != hold) {
        EXPECT_EQ(items.set_status(1, status), WEFTIO_DEV_OK);
    }
    return items;
}

TEST(SemaphoreTransition, ExactlyTheLegalOnesPassWhereTheyAreChecked)
{
    device cpu = device::open("cpu");
    for (semaphore_status from : all_statuses)
        for (semaphore_status to : all_statuses) {
            semaphore items = item_of(cpu, from);
            bool passes = legal.contains({from, to});
            EXPECT_EQ(items.set_status(1, to), passes ? WEFTIO_DEV_OK : WEFTIO_DEV_INVALID_ARGUMENT)
                << to_string(from) << " to " << to_string(to);
            EXPECT_EQ(items.get_status(1), passes ? to : from);
            EXPECT_EQ(items.illegal_transitions().count, passes ? 0u : 1u);
        }
}

TEST(SemaphoreTransition, ToAStatusThatDoesNotExistIsRefused)
{
    for (std::uint32_t beyond : {5u, 6u, 31u, 0xffff'ffffu}) {
        EXPECT_FALSE(weftio_dev_semaphore_is_legal(WEFTIO_DEV_SEMAPHORE_FREE, beyond)) << beyond;
        EXPECT_FALSE(weftio_dev_semaphore_is_legal(beyond, WEFTIO_DEV_SEMAPHORE_FREE)) << beyond;
    }
}

TEST(SemaphoreTransition, RefusedLeavesPacketInfoAloneToo)
{
    semaphore items = item_of(device::open("cpu"), free);
    items.set_packet_info(0, ready, {.count = 1, .first = 2});
    EXPECT_EQ(items.set_packet_info(0, ready, {.count = 3, .first = 4}), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(items.get_packet_info(0)->count, 1u);
    EXPECT_EQ(items.get_packet_info(0)->first, 2u);
}

TEST(SemaphoreTransition, TheFirstIllegalOneIsRememberedAndAllAreCounted)
{
    semaphore items = item_of(device::open("cpu"), hold);
    EXPECT_FALSE(items.illegal_transitions().first);
    items.set_status(101, hold);
    items.set_status(0, done);
    auto [count, first] = items.illegal_transitions();
    EXPECT_EQ(count, 2u);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->index, 101u);
    EXPECT_EQ(first->from, hold);
    EXPECT_EQ(first->to, hold);
    items.reset();
    EXPECT_EQ(items.illegal_transitions().count, 0u);
    EXPECT_FALSE(items.illegal_transitions().first);
}

TEST(SemaphoreTransition, AnyPassesWhereNoneIsChecked)
{
    semaphore items(device::open("cpu"), {.items = 2, .check_transitions = false});
    EXPECT_EQ(items.set_status(0, done), WEFTIO_DEV_OK);
    EXPECT_EQ(items.get_status(0), done);
    EXPECT_EQ(items.illegal_transitions().count, 0u);
}

TEST(SemaphoreTransition, AreCheckedByDefaultInDebugBuilds)
{
#ifdef NDEBUG
    EXPECT_FALSE(semaphore_options{}.check_transitions);
#else
    EXPECT_TRUE(semaphore_options{}.check_transitions);
#endif
}

TEST(SemaphoreTransition, IllegalOnesAreLoggedWhenTheSemaphoreEnds)
{
    std::vector<std::string> lines;
    set_log_sink([&](log_level level, std::string_view line) {
        if (level >= log_level::warning)
            lines.emplace_back(line);
    });
    {
        semaphore wrong = item_of(device::open("cpu"), hold), right = item_of(device::open("cpu"), done);
        wrong.set_status(1, hold);
    }
    set_log_sink({});
    EXPECT_THAT(lines,
                testing::ElementsAre(HasSubstr("1 illegal transition refused, the first of item 1 from HOLD to HOLD")));
}

class SemaphoreTransitionInAKernel : public each_device {};

TEST_P(SemaphoreTransitionInAKernel, IsRefusedAndReportedToTheHost)
{
    semaphore items(where(), {.items = 4, .kind = memory_kind::device, .check_transitions = true});
    shared<weftio_s32> result(where());
    run(set_one_kernel, {1, 1}, items, 3u, WEFTIO_DEV_SEMAPHORE_READY, result.on_device());
    EXPECT_EQ(result[0], WEFTIO_DEV_OK);
    run(set_one_kernel, {1, 1}, items, 7u, WEFTIO_DEV_SEMAPHORE_READY, result.on_device());
    EXPECT_EQ(result[0], WEFTIO_DEV_INVALID_ARGUMENT);
    auto [count, first] = items.illegal_transitions();
    EXPECT_EQ(count, 1u);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->index, 7u);
    EXPECT_EQ(first->from, ready);
    EXPECT_EQ(first->to, ready);
}

TEST_P(SemaphoreTransitionInAKernel, IsCountedOnceALane)
{
    constexpr std::uint32_t blocks = 3, lanes = 8;
    semaphore items(where(), {.items = 4, .check_transitions = true});
    shared<weftio_s32> result(where(), blocks);
    run(set_one_kernel, {blocks, lanes}, items, 2u, WEFTIO_DEV_SEMAPHORE_ERROR, result.on_device());
    EXPECT_EQ(items.illegal_transitions().count, blocks * lanes);
    EXPECT_EQ(items.illegal_transitions().first->to, semaphore_status::error);
    EXPECT_EQ(items.get_status(2), free);
}

INSTANTIATE_TEST_SUITE_P(On, SemaphoreTransitionInAKernel, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
