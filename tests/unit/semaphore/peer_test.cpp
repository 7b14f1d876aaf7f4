// Items that pass between kernels of two devices, each with a copy of every item in its own memory.
#include <cstring>

#include "fixture.hpp"
#include "sanitized.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(produce_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(consume_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(answer_asked, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(ask_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(wait_once, "semaphore_kernels.h");

namespace weftio::test {
namespace {

using semaphore_status::done;
using semaphore_status::free;
using semaphore_status::hold;
using semaphore_status::ready;

class SemaphoreOfTwoDevices : public testing::Test {
 protected:
    semaphore_options options(std::uint32_t items, memory_kind kind = memory_kind::device_cpu) const
    {
        return {.items = items,
                .kind = kind,
                .custom_info_bytes = WORDS * sizeof(std::uint32_t),
                .custom_info_kind = kind,
                .check_transitions = true,
                .peer = second_};
    }
    static const weftio_dev_semaphore_item& copy_of(const semaphore& end, std::uint32_t item)
    {
        return end.handle()->items[item];
    }

    const device first_ = device::open("cpu"), second_ = device::open("cpu");
};

class ItemsOfTwoDevices : public SemaphoreOfTwoDevices, public testing::WithParamInterface<std::tuple<int, int>> {
 protected:
    grid shape() const
    {
        const auto lanes = static_cast<std::uint32_t>(std::get<1>(GetParam()));
        return {.blocks = lanes > 1 ? 2u : 1u, .lanes = lanes};
    }
    std::uint32_t items() const { return static_cast<std::uint32_t>(std::get<0>(GetParam())); }
    void expect_all_passed(const semaphore& between, const account& tally) const
    {
        EXPECT_EQ(tally.passed, total);
        EXPECT_EQ(tally.wrong, 0u);
        EXPECT_EQ(tally.failed, 0u);
        EXPECT_EQ(between.illegal_transitions().count + between.peer().illegal_transitions().count, 0u);
    }

#ifdef WEFTIO_TEST_SANITIZED
    static constexpr std::uint32_t total_of_many = 9600;
#else
    static constexpr std::uint32_t total_of_many = 96'000;
#endif
    const std::uint32_t total = items() < 64 ? total_of_many / 16 : total_of_many; // threads take turns at few items
};

TEST_P(ItemsOfTwoDevices, CrossFromTheFirstToTheSecond)
{
    semaphore between(first_, options(items(), memory_kind::device));
    shared<account> tally(first_);
    running_kernel consumer = second_.launch(consume_items_kernel, shape(), between.peer(), total, tally.on_device());
    running_kernel producer = first_.launch(produce_items_kernel, shape(), between, total, tally.on_device());
    ASSERT_TRUE(producer.wait_for(patience));
    ASSERT_TRUE(consumer.wait_for(patience));
    expect_all_passed(between, tally[0]);
}

TEST_P(ItemsOfTwoDevices, CrossAndComeBackWithAnAnswer)
{
    semaphore between(first_, options(items(), memory_kind::device));
    shared<account> tally(first_);
    running_kernel answers = first_.launch(answer_asked_kernel, shape(), between, total, tally.on_device());
    running_kernel asks = second_.launch(ask_items_kernel, shape(), between.peer(), total, tally.on_device());
    ASSERT_TRUE(asks.wait_for(patience));
    ASSERT_TRUE(answers.wait_for(patience));
    expect_all_passed(between, tally[0]);
}

INSTANTIATE_TEST_SUITE_P(Of, ItemsOfTwoDevices,
                         testing::Values(std::tuple{1, 1}, std::tuple{3, 1}, std::tuple{64, 1}, std::tuple{64, 8}));

TEST_F(SemaphoreOfTwoDevices, HasACopyOfEachItemWhereItIsRead)
{
    const semaphore items(first_, options(4));
    EXPECT_NE(items.handle()->items, items.peer().handle()->items);
    EXPECT_EQ(items.handle()->peer_items, items.peer().handle()->items);
    EXPECT_EQ(items.peer().handle()->peer_items, items.handle()->items);
    EXPECT_EQ(items.handle()->custom_info, items.peer().handle()->custom_info);
}

TEST_F(SemaphoreOfTwoDevices, WritesAStatusIntoTheOtherCopyAlone)
{
    semaphore items(first_, options(4));
    ASSERT_EQ(items.set_packet_info(2, ready, {5, 6}), WEFTIO_DEV_OK);
    EXPECT_EQ(copy_of(items, 2).status, 0u) << "a word that the other device may be writing";
    EXPECT_EQ(copy_of(items.peer(), 2).status % 8, WEFTIO_DEV_SEMAPHORE_READY);
    for (const semaphore* end : {&items, &items.peer()}) {
        EXPECT_EQ(end->get_status(2), ready);
        EXPECT_EQ(end->get_packet_info(2)->first, 6u);
        EXPECT_EQ(end->get_status(1), free);
    }
}

TEST_F(SemaphoreOfTwoDevices, ShowsBothTheNewestStatus)
{
    semaphore items(first_, options(1));
    semaphore& peer = items.peer();
    const std::pair<semaphore*, semaphore_status> steps[] = {{&items, hold}, {&items, ready}, {&peer, hold},
                                                             {&peer, done},  {&items, free},  {&peer, hold},
                                                             {&peer, free},  {&items, ready}, {&peer, free}};
    for (std::uint32_t before : {0u, UINT32_MAX - 7}) { // the number of changes goes through 2^29
        for (const semaphore* end : {&items, &peer}) {
            end->handle()->items[0].own = before;
            end->handle()->items[0].status = before;
        }
        for (const auto& [by, status] : steps) {
            ASSERT_EQ(by->set_status(0, status), WEFTIO_DEV_OK);
            ASSERT_EQ(items.get_status(0), status);
            ASSERT_EQ(peer.get_status(0), status);
        }
    }
}

TEST_F(SemaphoreOfTwoDevices, RefusesAnIllegalTransitionAtTheEndThatTriesIt)
{
    semaphore items(first_, options(1));
    items.set_status(0, ready);
    EXPECT_EQ(items.peer().set_status(0, ready), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(items.illegal_transitions().count, 0u);
    EXPECT_EQ(items.peer().illegal_transitions().count, 1u);
}

TEST_F(SemaphoreOfTwoDevices, BeginsAnewAtBothEnds)
{
    semaphore items(first_, options(2));
    semaphore& peer = items.peer();
    const void* const info = items.get_custom_info(1);
    items.set_status(1, ready);
    items.reset();
    ASSERT_EQ(&items.peer(), &peer);
    EXPECT_EQ(items.get_status(1), free);
    EXPECT_EQ(peer.get_status(1), free);
    EXPECT_EQ(peer.get_custom_info(1), info);
    peer.set_status(0, hold);
    EXPECT_EQ(items.get_status(0), hold) << "they are ends of the same items";
    EXPECT_THROW(peer.reset(), error);
}

TEST_F(SemaphoreOfTwoDevices, KeepsItsMemoryWhileAKernelOfEitherRuns)
{
    std::optional<semaphore> items;
    items.emplace(first_, options(1));
    shared<weftio_s32> result(second_);
    running_kernel waits =
        second_.launch(wait_once_kernel, {}, items->peer(), 0u, WEFTIO_DEV_SEMAPHORE_READY, 0ull, result.on_device());
    items->set_status(0, ready);
    EXPECT_TRUE(waits.wait_for(patience));
    EXPECT_EQ(result[0], WEFTIO_DEV_OK);
    running_kernel waits_on =
        second_.launch(wait_once_kernel, {}, items->peer(), 0u, WEFTIO_DEV_SEMAPHORE_DONE, 0ull, result.on_device());
    items.reset();
    waits_on.stop();
    EXPECT_TRUE(waits_on.wait_for(patience));
    EXPECT_EQ(result[0], WEFTIO_DEV_ABORTED);
}

TEST_F(SemaphoreOfTwoDevices, SeldomLooksAtMemoryOfTheHost)
{
    semaphore items(first_, options(128));
    items.set_status(65, ready);
    items.set_status(64, ready);
    shared<weftio_s32> result(second_);
    auto beats_of = [&](std::uint32_t index, std::uint64_t timeout_ns) {
        const std::uint32_t before = items.peer().control()->beats;
        EXPECT_TRUE(second_
                        .launch(wait_once_kernel, {}, items.peer(), index, WEFTIO_DEV_SEMAPHORE_READY, timeout_ns,
                                result.on_device())
                        .wait_for(patience));
        return items.peer().control()->beats - before;
    };
    EXPECT_EQ(beats_of(65, 0), 0u);
    EXPECT_EQ(beats_of(64, 0), 1u);
    EXPECT_GE(beats_of(66, 50'000'000), 1u) << "a long wait shows that it goes on";
    EXPECT_EQ(result[0], WEFTIO_DEV_TIMEOUT);
}

TEST_F(SemaphoreOfTwoDevices, LooksAtTheAbortFlagAtEvery64thAttempt)
{
    weftio_dev_semaphore_item item{};
    const weftio_dev_semaphore_place two{&item, &item}, one{&item, nullptr};
    for (std::uint32_t attempt = 0; attempt < 200; ++attempt) {
        EXPECT_EQ(weftio_dev_semaphore_looks(two, 65, attempt), attempt % 64 == 63 ? 1u : 0u) << attempt;
        EXPECT_EQ(weftio_dev_semaphore_looks(two, 64, attempt), attempt == 0 || attempt % 64 == 63 ? 1u : 0u);
        EXPECT_EQ(weftio_dev_semaphore_looks(one, 65, attempt), 1u);
    }
}

TEST_F(SemaphoreOfTwoDevices, HasAPeerOnlyThere)
{
    const semaphore alone(first_, {.items = 1}), both(first_, options(1));
    EXPECT_THAT([&] { alone.peer(); }, testing::ThrowsMessage<error>(testing::HasSubstr("semaphore_options::peer")));
    EXPECT_THAT([&] { both.peer().peer(); },
                testing::ThrowsMessage<error>(testing::HasSubstr("what peer() has returned")));
}

TEST_F(SemaphoreOfTwoDevices, RefusesDevicesThatShareNoMemory)
{
    std::optional<device> other;
    try {
        other.emplace(device::open("opencl"));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: a device of another kind; " << refused.what();
    }
    auto wanted = [](const device& peer) { return semaphore_options{.items = 1, .peer = peer}; };
    auto expect_refusal = [&](const device& one, const device& two) {
        EXPECT_THAT([&] { semaphore(one, wanted(two)); },
                    testing::ThrowsMessage<error>(testing::AllOf(
                        testing::StartsWith("weftio: semaphore: kernels of device "), testing::HasSubstr(one.name()),
                        testing::HasSubstr(two.name()), testing::HasSubstr("use two GPUs"))));
    };
    expect_refusal(first_, *other);
    expect_refusal(*other, first_);
}

} // namespace
} // namespace weftio::test
