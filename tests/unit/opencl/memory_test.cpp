// Memory that an OpenCL device shares with the host.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "opencl_fixture.hpp"

namespace weftio::test {
namespace {

constexpr const char* fill_source = R"cl(
WEFTIO_KERNEL void fill(WEFTIO_GLOBAL weftio_u32 *words, weftio_u32 count, weftio_u32 value)
{
    for (weftio_u32 at = 0; at < count; ++at)
        words[at] = value;
}
WEFTIO_KERNEL void copy(const WEFTIO_GLOBAL weftio_u32 *from, WEFTIO_GLOBAL weftio_u32 *to, weftio_u32 count)
{
    for (weftio_u32 at = 0; at < count; ++at)
        to[at] = from[at];
}
)cl";

using OpenclMemory = opencl_fixture;

TEST_F(OpenclMemory, IsZeroedAlsoWhenItWasUsedBefore)
{
    constexpr std::size_t bytes = 1 << 20;
    for (int round = 0; round < 4; ++round) {
        auto memory = device_->allocate(bytes, 64, memory_kind::cpu_device);
        std::span<std::uint8_t> view(static_cast<std::uint8_t*>(memory.cpu), bytes);
        EXPECT_TRUE(std::ranges::all_of(view, [](std::uint8_t byte) { return byte == 0; })) << "round " << round;
        std::ranges::fill(view, std::uint8_t{0xa5});
        device_->release(memory, memory_kind::cpu_device);
    }
}

TEST_F(OpenclMemory, HonoursEveryAlignmentUpTo2MiB)
{
    for (std::size_t alignment = 1; alignment <= 2u << 20; alignment *= 2) {
        auto memory = device_->allocate(3, alignment, memory_kind::device_cpu);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.device) % alignment, 0u) << alignment;
        device_->release(memory, memory_kind::device_cpu);
    }
}

TEST_F(OpenclMemory, HasOneAddressForHostAndKernelWhereTheCpuSeesIt)
{
    for (memory_kind kind : {memory_kind::device_cpu, memory_kind::cpu_device}) {
        auto memory = device_->allocate(64, 64, kind);
        EXPECT_EQ(memory.cpu, memory.device);
        auto* words = static_cast<std::uint32_t*>(memory.device);
        run(fill_source, "fill", {1, 1}, words, 16u, 0xfeedu);
        EXPECT_EQ(static_cast<std::uint32_t*>(memory.cpu)[15], 0xfeedu);
        device_->release(memory, kind);
    }
}

TEST_F(OpenclMemory, OfKindDeviceHasNoCpuAddressAndKeepsWhatKernelsWrite)
{
    auto hidden = device_->allocate(64, 64, memory_kind::device);
    auto seen = allocate<std::uint32_t>(16);
    EXPECT_EQ(hidden.cpu, nullptr);

    auto* words = static_cast<std::uint32_t*>(hidden.device);
    run(fill_source, "fill", {1, 1}, words, 16u, 7u);
    run(fill_source, "copy", {1, 1}, words, seen.data(), 16u);
    EXPECT_EQ(seen[0], 7u);
    EXPECT_EQ(seen[15], 7u);
    device_->release(hidden, memory_kind::device);
}

TEST_F(OpenclMemory, MoreThanTheDeviceHasIsRefused)
{
    for (std::size_t bytes : {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 50}) {
        auto [code, text] = refusal_of([&] { device_->allocate(bytes, 4096, memory_kind::cpu_device); });
        EXPECT_EQ(code, errc::out_of_memory);
        EXPECT_THAT(text, testing::HasSubstr(std::to_string(bytes)));
    }
}

TEST_F(OpenclMemory, FreedIsNoArgumentAnyMore)
{
    auto memory = device_->allocate(64, 64, memory_kind::cpu_device);
    auto* words = static_cast<std::uint32_t*>(memory.device);
    run(fill_source, "fill", {1, 1}, words, 16u, 1u);
    device_->release(memory, memory_kind::cpu_device);

    EXPECT_EQ(refusal_of([&] { launch(fill_source, "fill", {1, 1}, words, 16u, 1u); }).first, errc::not_reachable);
}

} // namespace
} // namespace weftio::test
