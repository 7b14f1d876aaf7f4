// What one kernel does with items: each function, and waits that end.
#include <vector>

#include "fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(call_each_function, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(wait_once, "semaphore_kernels.h");

namespace weftio::test {
namespace {

using namespace std::chrono_literals;
using semaphore_status::done;
using semaphore_status::free;
using semaphore_status::hold;
using semaphore_status::ready;

constexpr std::uint64_t no_bound = 0;
constexpr weftio_s32 not_ended = 12345;

class SemaphoreInAKernel : public each_device {};

TEST_P(SemaphoreInAKernel, EachFunctionDoesWhatItSays)
{
    semaphore items(where(),
                    {.items = 4, .custom_info_bytes = WORDS * sizeof(std::uint32_t), .check_transitions = true});
    shared<std::uint32_t> seen(where(), 16);
    run(call_each_function_kernel, {1, 1}, items, 0xffff'ffffu, seen.on_device());

    const auto not_found = static_cast<std::uint32_t>(WEFTIO_DEV_NOT_FOUND);
    std::vector<std::uint32_t> words(&seen[0], &seen[0] + 11);
    EXPECT_THAT(words, testing::ElementsAre(not_found, 11, 12, 0, 0, 21, 22, 0, WEFTIO_DEV_SEMAPHORE_READY,
                                            WEFTIO_DEV_SEMAPHORE_HOLD, WEFTIO_DEV_SEMAPHORE_FREE));
    EXPECT_EQ(items.get_status(3), ready) << "index 2^32 - 1 is item 3 of 4";
    EXPECT_EQ(items.get_status(0), hold);
    EXPECT_EQ(items.get_packet_info(3)->count, 21u);
    EXPECT_TRUE(words_are_right(static_cast<const std::uint32_t*>(items.get_custom_info(3)), 0xffff'ffff));
    EXPECT_EQ(items.illegal_transitions().count, 0u);
}

/// A kernel that waits for item 5 of 8.
class SemaphoreWait : public each_device {
 protected:
    void SetUp() override
    {
        each_device::SetUp();
        if (IsSkipped())
            return;
        items_.emplace(where(), semaphore_options{.items = 8});
        result_.emplace(where());
        (*result_)[0] = not_ended;
    }

    running_kernel wait_for(semaphore_status status, std::uint64_t timeout_ns)
    {
        return where().launch(wait_once_kernel, {1, 1}, *items_, 5u, static_cast<std::uint32_t>(status), timeout_ns,
                              result_->on_device());
    }
    /// Once the wait has gone round a few times.
    bool waits() const
    {
        return eventually([this] { return weftio_load_relaxed_u32(&items_->control()->beats) > 3; });
    }
    weftio_s32 result() const { return (*result_)[0]; }

    std::optional<semaphore> items_;
    std::optional<shared<weftio_s32>> result_;
};

TEST_P(SemaphoreWait, EndsWhenTheItemHasTheStatus)
{
    running_kernel running = wait_for(done, no_bound);
    EXPECT_TRUE(waits());
    items_->set_status(4, hold);
    items_->set_status(5, hold);
    EXPECT_FALSE(running.wait_for(20ms));
    items_->set_status(5, done);
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ(result(), WEFTIO_DEV_OK);
}

TEST_P(SemaphoreWait, EndsAtOnceWhenTheItemHasItAlready)
{
    ASSERT_TRUE(wait_for(free, no_bound).wait_for(patience));
    EXPECT_EQ(result(), WEFTIO_DEV_OK);
}

TEST_P(SemaphoreWait, EndsWhenItsTimeIsUpAndNotBefore)
{
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(wait_for(ready, 30'000'000).wait_for(patience));
    EXPECT_GE(std::chrono::steady_clock::now() - start, 29ms); // a device's clock may be read a little before
    EXPECT_EQ(result(), WEFTIO_DEV_TIMEOUT);
}

TEST_P(SemaphoreWait, EndsWhenTheHostSaysStop)
{
    for (std::uint64_t timeout_ns : {no_bound, std::uint64_t{3'600'000'000'000}}) {
        running_kernel running = wait_for(ready, timeout_ns);
        EXPECT_TRUE(waits());
        running.stop();
        ASSERT_TRUE(running.wait_for(patience));
        EXPECT_EQ(result(), WEFTIO_DEV_ABORTED);
    }
}

TEST_P(SemaphoreWait, LeavesATrace)
{
    running_kernel running = wait_for(ready, no_bound);
    EXPECT_TRUE(waits());
    running.stop();
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ(items_->control()->function, static_cast<std::uint32_t>(WEFTIO_DEV_FUNCTION_SEMAPHORE));
    EXPECT_EQ(items_->control()->index, 5u);
    EXPECT_EQ(items_->control()->status, WEFTIO_DEV_ABORTED);
}

TEST(SemaphoreWaitOfAThread, EndsAfterAStopAlsoWhereTheItemIsThere)
{
    semaphore items(device::open("cpu"), {.items = 1}); // a thread may use the handle there as a kernel does
    items.set_status(0, ready);
    EXPECT_EQ(weftio_dev_semaphore_wait_status(items.handle(), 0, WEFTIO_DEV_SEMAPHORE_READY, no_bound), WEFTIO_DEV_OK);
    weftio_store_release_sys_u32(&items.control()->abort, 1);
    EXPECT_EQ(weftio_dev_semaphore_wait_status(items.handle(), 0, WEFTIO_DEV_SEMAPHORE_READY, no_bound),
              WEFTIO_DEV_ABORTED)
        << "a flood of items would keep the kernel from ending";
    std::uint32_t count = 0, first = 0;
    EXPECT_EQ(
        weftio_dev_semaphore_get_packet_info_status(items.handle(), 0, WEFTIO_DEV_SEMAPHORE_READY, &count, &first),
        WEFTIO_DEV_OK)
        << "what is left can be taken";
}

TEST(SemaphoreWaitOfAThread, LeavesATraceAtSomeOfTheItemsThatAreThere)
{
    semaphore items(device::open("cpu"), {.items = 1024});
    for (std::uint32_t index = 0; index < 1024; ++index)
        weftio_dev_semaphore_wait_status(items.handle(), index, WEFTIO_DEV_SEMAPHORE_FREE, no_bound);
    EXPECT_EQ(items.control()->beats, 1024 / WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS) << "busy is not dead";
}

INSTANTIATE_TEST_SUITE_P(On, SemaphoreInAKernel, testing::Values("cpu", "opencl"));
INSTANTIATE_TEST_SUITE_P(On, SemaphoreWait, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
