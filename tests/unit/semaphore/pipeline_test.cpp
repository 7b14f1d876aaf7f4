// Items on their way through several kernels: none lost, none doubled, in order, with what they carry.
#include <algorithm>
#include <bit>
#include <thread>

#include "fixture.hpp"
#include "sanitized.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(produce_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(consume_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(relay_items, "semaphore_kernels.h");

namespace weftio::test {
namespace {

constexpr std::uint32_t custom_info_bytes = WORDS * sizeof(std::uint32_t);

class Pipeline : public each_device {
 protected:
    static semaphore_options options(std::uint32_t items, memory_kind kind = memory_kind::cpu_device)
    {
        return {.items = items,
                .kind = kind,
                .custom_info_bytes = custom_info_bytes,
                .custom_info_kind = kind,
                .check_transitions = true};
    }

    /// Takes `total` items on the CPU. Returns how many came as they should before the first that did not, or before
    /// nothing came any more.
    static std::uint32_t take_on_the_cpu(semaphore& from, std::uint32_t total)
    {
        std::uint32_t right = 0, seen = 0;
        auto look = [&](std::uint32_t index, std::uint32_t count, std::uint32_t first, void* info) {
            bool good = index == seen && count == count_of(index) && first == first_of(index) && info &&
                        words_are_right(static_cast<const std::uint32_t*>(info), index);
            right += good && right == seen;
            ++seen;
        };
        eventually([&] {
            while (seen < total && from.for_each_ready(look)) {
            }
            return seen >= total;
        });
        return right;
    }

    /// Kernel to kernel, each of shape `shape`, over a semaphore of `options`.
    void expect_all_cross(grid shape, semaphore_options options, std::uint32_t total)
    {
        semaphore between(where(), options);
        shared<account> tally(where());
        running_kernel consumer = where().launch(consume_items_kernel, shape, between, total, tally.on_device());
        running_kernel producer =
            where().launch(produce_items_kernel, shape, between.handle(), total, tally.on_device());
        EXPECT_TRUE(producer.wait_for(patience));
        EXPECT_TRUE(consumer.wait_for(patience));
        EXPECT_EQ(tally[0].passed, total);
        EXPECT_EQ(tally[0].wrong, 0u);
        EXPECT_EQ(tally[0].failed, 0u);
        EXPECT_EQ(between.illegal_transitions().count, 0u);
    }
};

TEST_P(Pipeline, TenMillionItemsCrossFromKernelToKernelToCpuInOrder)
{
#ifdef WEFTIO_TEST_SANITIZED
    constexpr std::uint32_t total = 200'000;
#else
    constexpr std::uint32_t total = 10'000'000;
#endif
    semaphore first(where(), options(1u << 15, memory_kind::device)), second(where(), options(1u << 15));
    shared<account> tally(where());

    running_kernel relay = where().launch(relay_items_kernel, {}, first, second, total, tally.on_device());
    running_kernel producer = where().launch(produce_items_kernel, {}, first.handle(), total, tally.on_device());
    EXPECT_EQ(take_on_the_cpu(second, total), total);
    ASSERT_TRUE(producer.wait_for(patience));
    ASSERT_TRUE(relay.wait_for(patience));
    EXPECT_EQ(second.for_each_ready([](auto...) {}), 0u) << "more came than were sent";
    EXPECT_EQ(tally[0].passed, total);
    EXPECT_EQ(tally[0].wrong + tally[0].failed, 0u);
    EXPECT_EQ(first.illegal_transitions().count + second.illegal_transitions().count, 0u);
}

TEST_P(Pipeline, CrossesFromCpuToKernelToCpu)
{
    constexpr std::uint32_t total = 20'000;
    semaphore in(where(), options(64)), out(where(), options(64));
    shared<account> tally(where());
    running_kernel relay = where().launch(relay_items_kernel, {}, in, out, total, tally.on_device());
    std::thread producer([&] {
        for (std::uint32_t index = 0; index < total; ++index) {
            for (std::uint32_t attempt = 0; in.get_status(index) != semaphore_status::free; ++attempt)
                weftio_relax(attempt);
            for (std::uint32_t word = 0; word < WORDS; ++word)
                static_cast<std::uint32_t*>(in.get_custom_info(index))[word] = word_of(index, word);
            in.set_packet_info(index, semaphore_status::ready, {count_of(index), first_of(index)});
        }
    });
    EXPECT_EQ(take_on_the_cpu(out, total), total);
    producer.join();
    EXPECT_TRUE(relay.wait_for(patience));
    EXPECT_EQ(tally[0].passed, total);
}

TEST_P(Pipeline, CrossesThroughOneItem)
{
    expect_all_cross({1, 1}, options(1), 3000);
}

TEST_P(Pipeline, CrossesThroughAnyNumberOfItems)
{
    for (std::uint32_t count : {3u, 100u})
        expect_all_cross({1, 1}, options(count), 3000);
}

TEST_P(Pipeline, CrossesInMemoryOfEveryKind)
{
    for (memory_kind kind : {memory_kind::device, memory_kind::device_cpu, memory_kind::cpu_device})
        expect_all_cross({1, 1}, options(256, kind), 5000);
}

TEST_P(Pipeline, CrossesWithoutCustomInfo)
{
    expect_all_cross({1, 1}, {.items = 256}, 5000);
}

TEST_P(Pipeline, LanesAndBlocksWorkOnItemsOfTheirOwn)
{
    expect_all_cross({2, 8}, options(1024), 16'000);
    expect_all_cross({1, 32}, options(32), 640); // an item a lane
}

INSTANTIATE_TEST_SUITE_P(On, Pipeline, testing::Values("cpu", "opencl"));

using PipelineOnTheCpu = Pipeline;

TEST_P(PipelineOnTheCpu, RunsMoreBlocksThanThereAreCores)
{
    // A power of two, so that an item is always the same lane's.
    const std::uint32_t blocks = 4 * std::bit_ceil(std::min(32u, std::thread::hardware_concurrency() + 1));
    expect_all_cross({blocks, 1}, options(1024), 20 * blocks);
    expect_all_cross({blocks, 4}, options(1024), 80 * blocks);
}

INSTANTIATE_TEST_SUITE_P(On, PipelineOnTheCpu, testing::Values("cpu"));

} // namespace
} // namespace weftio::test
