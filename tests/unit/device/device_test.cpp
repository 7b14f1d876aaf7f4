// What every device must do.
#include <algorithm>
#include <iostream>
#include <memory>

#include "fixture.hpp"
#include "kernels.h"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(write_place, "kernels.h");
WEFTIO_DEFINE_KERNEL(pass_left, "kernels.h");
WEFTIO_DEFINE_KERNEL(add_block, "kernels.h");
WEFTIO_DEFINE_KERNEL(count_warp, "kernels.h");
WEFTIO_DEFINE_KERNEL(write_arguments, "kernels.h");
WEFTIO_DEFINE_KERNEL(count_lanes, "kernels.h");
WEFTIO_DEFINE_KERNEL(wait_for_abort, "kernels.h");

namespace weftio::test {

std::vector<std::string> usable_devices()
{
    std::vector<std::string> usable;
    for (const char* spec : {"cpu"}) {
        try {
            device::open(spec);
            usable.emplace_back(spec);
        } catch (const error& refused) {
            std::cerr << "not tested: " << refused.what() << '\n';
        }
    }
    return usable;
}

namespace {

using namespace std::chrono_literals;

class Device : public testing::TestWithParam<std::string> {
 protected:
    /// Launches and waits for the end.
    template <class Kernel, class... Arguments>
    void run(const Kernel& kernel, grid shape, Arguments&&... arguments)
    {
        running_kernel running = device_.launch(kernel, shape, arguments...);
        ASSERT_TRUE(running.wait_for(patience));
    }

    device device_ = device::open(GetParam());
};

TEST_P(Device, GivesZeroedMemoryOfTheAlignmentAskedFor)
{
    for (std::size_t alignment : {1u, 64u, 4096u, 1u << 16, 1u << 21}) {
        memory block = device_.allocate(10'000, memory_kind::cpu_device, alignment);
        auto* bytes = static_cast<const unsigned char*>(block.cpu_address());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.device_address()) % alignment, 0u) << alignment;
        EXPECT_EQ(std::count(bytes, bytes + block.bytes(), 0), 10'000) << alignment;
        std::fill_n(static_cast<unsigned char*>(block.cpu_address()), block.bytes(), 0xff);
    }
}

TEST_P(Device, RefusesMemoryThatCannotBe)
{
    auto refusal = [this](std::size_t bytes, std::size_t alignment) {
        return error_of([&] { (void)device_.allocate(bytes, memory_kind::cpu_device, alignment); }).code();
    };
    EXPECT_EQ(refusal(0, 4096), errc::invalid_argument);
    EXPECT_EQ(refusal(1, 0), errc::invalid_argument);
    EXPECT_EQ(refusal(1, 48), errc::invalid_argument);
    EXPECT_EQ(refusal(1, 4u << 20), errc::invalid_argument);
    EXPECT_EQ(refusal(SIZE_MAX, 4096), errc::out_of_memory);
}

TEST_P(Device, CopiesToMemoryOfAnyKindAndBack)
{
    for (const memory_kind kind : {memory_kind::cpu_device, memory_kind::device}) {
        memory made = device_.allocate(5000, kind);
        std::vector<std::uint8_t> there(5000, 7), back(5000);
        made.upload(there.data(), 3000);
        std::fill(there.begin() + 3000, there.end(), std::uint8_t{0});
        made.download(back.data(), back.size());
        EXPECT_EQ(back, there);
        EXPECT_THROW(made.download(back.data(), 5001), error);
    }
}

TEST_P(Device, MemoryMovesAndKeepsItsDevice)
{
    memory first = device::open(GetParam()).allocate(64, memory_kind::cpu_device);
    void* address = first.device_address();
    memory second(std::move(first));
    EXPECT_FALSE(first); // NOLINT: a moved-from memory is empty
    first = std::move(second);
    EXPECT_EQ(first.device_address(), address);
    first = memory();
    EXPECT_FALSE(first);
}

TEST_P(Device, AdoptsMemoryOfSomebodyElseAndLeavesItToThem)
{
    auto words = std::make_unique<weftio_u32[]>(8);
    {
        memory adopted = device_.adopt(words.get(), 32);
        EXPECT_EQ(adopted.kind(), memory_kind::cpu_device);
        EXPECT_EQ(adopted.cpu_address(), words.get());
        memory moved(std::move(adopted));
        run(count_lanes_kernel, {1, 3}, static_cast<weftio_u32*>(moved.device_address()));
    }
    EXPECT_EQ(words[0], 3u); // and it is freed once, which AddressSanitizer would tell
    EXPECT_EQ(error_of([&] { (void)device_.adopt(nullptr, 32); }).code(), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)device_.adopt(words.get(), 0); }).code(), errc::invalid_argument);
}

TEST_P(Device, LanesSeeTheirPlaceInTheGrid)
{
    for (grid shape : {grid{1, 1}, grid{3, 1}, grid{1, 7}, grid{2, 33}, grid{2, 64}}) {
        shared_words words(device_, 4 * shape.blocks * shape.lanes);
        run(write_place_kernel, shape, words.on_device());
        for (weftio_u32 at = 0; at < shape.blocks * shape.lanes; ++at) {
            EXPECT_EQ(words[4 * at], at % shape.lanes);
            EXPECT_EQ(words[4 * at + 1], shape.lanes);
            EXPECT_EQ(words[4 * at + 2], at / shape.lanes);
            EXPECT_EQ(words[4 * at + 3], shape.blocks);
        }
    }
}

TEST_P(Device, SharedMemoryBelongsToABlockAndBarriersOrderIt)
{
    constexpr grid shape{4, 50};
    constexpr weftio_u32 rounds = 21;
    shared_words words(device_, shape.blocks * shape.lanes);
    run(pass_left_kernel, shape, words.on_device(), rounds);
    for (weftio_u32 at = 0; at < shape.blocks * shape.lanes; ++at)
        EXPECT_EQ(words[at], 1000 * (at / shape.lanes) + (at + rounds) % shape.lanes) << at;
}

TEST_P(Device, BlockSumReachesEveryLane)
{
    for (grid shape : {grid{2, 1}, grid{2, 31}, grid{3, 100}}) {
        shared_words words(device_, shape.blocks * shape.lanes);
        shared_words scratch(device_, shape.blocks);
        run(add_block_kernel, shape, words.on_device(), scratch.on_device());
        EXPECT_EQ(words.all(), std::vector(shape.blocks * shape.lanes, shape.lanes * (shape.lanes + 1) / 2));
    }
}

TEST_P(Device, WarpSumCoversTheLanesOfTheWarp)
{
    for (grid shape : {grid{1, 1}, grid{1, 32}, grid{2, 70}}) {
        shared_words words(device_, 2 * shape.blocks * shape.lanes);
        run(count_warp_kernel, shape, words.on_device());
        for (weftio_u32 at = 0; at < shape.blocks * shape.lanes; ++at) {
            EXPECT_EQ(words[2 * at], words[2 * at + 1]) << at;
            EXPECT_GT(words[2 * at], 0u);
        }
    }
}

TEST_P(Device, ArgumentsArriveWhole)
{
    memory words = device_.allocate(3 * sizeof(weftio_u64), memory_kind::cpu_device);
    run(write_arguments_kernel, {}, words.device_address(), 200, -5, 0x0123456789abcdefu);
    auto* seen = static_cast<const weftio_u64*>(words.cpu_address());
    EXPECT_EQ(seen[0], 200u);
    EXPECT_EQ(seen[1], static_cast<weftio_u64>(-5));
    EXPECT_EQ(seen[2], 0x0123456789abcdefu);
}

TEST_P(Device, RefusesAGridWithoutLanesOrBlocks)
{
    shared_words word(device_, 1);
    for (grid shape : {grid{0, 1}, grid{1, 0}})
        EXPECT_EQ(error_of([&] { (void)device_.launch(count_lanes_kernel, shape, word.on_device()); }).code(),
                  errc::invalid_argument);
    EXPECT_EQ(word[0], 0u);
}

TEST_P(Device, RunsManyKernelsOneAfterTheOther)
{
    shared_words word(device_, 1);
    for (int launch = 0; launch < 100; ++launch)
        run(count_lanes_kernel, {2, 3}, word.on_device());
    EXPECT_EQ(word[0], 600u);
}

TEST_P(Device, StopEndsAKernelThatLooksAtItsAbortFlag)
{
    stop_button button(device_);
    shared_words words(device_, 1);
    running_kernel running = device_.launch(wait_for_abort_kernel, {1, 1}, button, words.on_device());
    ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
    EXPECT_TRUE(running.alive());
    EXPECT_FALSE(running.wait_for(5ms));
    running.stop();
    EXPECT_TRUE(running.wait_for(patience));
    EXPECT_FALSE(running.alive());
    EXPECT_EQ(words[0], 2u);
}

TEST_P(Device, LaunchLowersTheAbortFlagFirst)
{
    stop_button button(device_);
    shared_words words(device_, 1);
    weftio_store_release_sys_u32(&button.control()->abort, 1);
    running_kernel running = device_.launch(wait_for_abort_kernel, {1, 1}, button, words.on_device());
    EXPECT_EQ(button.pressed(), 0u);
    ASSERT_TRUE(eventually([&] { return words[0] != 0; }));
    EXPECT_FALSE(running.wait_for(5ms));
}

TEST_P(Device, StopAfterTheEndTouchesNoQueue)
{
    auto button = std::make_unique<stop_button>(device_);
    shared_words words(device_, 1);
    running_kernel running = device_.launch(wait_for_abort_kernel, {1, 1}, *button, words.on_device());
    running.stop();
    ASSERT_TRUE(running.wait_for(patience));
    weftio_store_release_sys_u32(&button->control()->abort, 0);
    running.stop();
    EXPECT_EQ(button->pressed(), 0u);
    button.reset(); // the destructor of `running` must not look for it, which AddressSanitizer would tell
}

TEST_P(Device, DestructorAndAssignmentEndTheKernel)
{
    stop_button first_button(device_), second_button(device_);
    shared_words first_words(device_, 1), second_words(device_, 1);
    {
        running_kernel running = device_.launch(wait_for_abort_kernel, {}, first_button, first_words.on_device());
        running = device_.launch(wait_for_abort_kernel, {}, second_button, second_words.on_device());
        EXPECT_EQ(first_words[0], 2u);
        EXPECT_TRUE(running.alive());
    }
    EXPECT_EQ(second_words[0], 2u);
}

TEST(RunningKernel, OfNothingHasEnded)
{
    running_kernel none;
    none.stop();
    EXPECT_FALSE(none.alive());
    EXPECT_TRUE(none.wait_for(0ns));
}

INSTANTIATE_TEST_SUITE_P(Every, Device, testing::ValuesIn(usable_devices()),
                         [](const auto& spec) { return spec.param; });

} // namespace

} // namespace weftio::test
