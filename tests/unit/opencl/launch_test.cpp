// Shapes, arguments and refusals of launches on OpenCL.

#include <cstdint>

#include <fmt/format.h>

#include "devices/opencl/opencl_device.hpp"
#include "opencl_fixture.hpp"

namespace weftio::test {
namespace {

constexpr const char* source = R"cl(
struct place { weftio_u32 lane, lanes, block, blocks; };

WEFTIO_KERNEL void where_am_i(WEFTIO_GLOBAL struct place *places)
{
    WEFTIO_GLOBAL struct place *mine = &places[weftio_block() * weftio_block_lanes() + weftio_lane()];
    mine->lane = weftio_lane();
    mine->lanes = weftio_block_lanes();
    mine->block = weftio_block();
    mine->blocks = weftio_blocks();
}

WEFTIO_KERNEL void keep_arguments(weftio_u32 word, weftio_u64 wide, weftio_u8 byte, WEFTIO_GLOBAL weftio_u64 *kept,
                                  WEFTIO_GLOBAL weftio_u32 *nothing)
{
    kept[0] = word;
    kept[1] = wide;
    kept[2] = byte;
    kept[3] = nothing == 0;
}

WEFTIO_KERNEL void follow(WEFTIO_GLOBAL weftio_u64 *address_of_word)
{
    *(WEFTIO_GLOBAL weftio_u32 *)*address_of_word = 42;
}

/* Lanes leave the loop together, in the round that the sum says. */
WEFTIO_KERNEL void sum_until(weftio_u32 last_round, WEFTIO_GLOBAL weftio_u32 *scratch, WEFTIO_GLOBAL weftio_u32 *rounds,
                             WEFTIO_GLOBAL weftio_u32 *wrong)
{
    weftio_u32 lanes = weftio_block_lanes();
    for (weftio_u32 round = 0;; ++round) {
        weftio_u32 sum = weftio_block_sum_u32(round + weftio_lane(), scratch);
        if (sum != round * lanes + lanes * (lanes - 1) / 2)
            weftio_fetch_add_u32(wrong, 1);
        if (sum >= last_round * lanes + lanes * (lanes - 1) / 2)
            break;
        weftio_block_barrier();
        weftio_fetch_add_u32(rounds, 1);
    }
}

WEFTIO_KERNEL void rotate_shared(WEFTIO_GLOBAL weftio_u32 *out)
{
    WEFTIO_SHARED weftio_u32 words[256];
    for (weftio_u32 round = 0; round < 10; ++round) {
        words[weftio_lane()] = weftio_lane() + round;
        weftio_block_barrier();
        out[weftio_lane()] = words[(weftio_lane() + 1) % weftio_block_lanes()];
        weftio_block_barrier();
    }
}
)cl";

struct place {
    std::uint32_t lane, lanes, block, blocks;
};

using OpenclLaunch = opencl_fixture;

class OpenclLanes : public opencl_fixture, public testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Blocks, OpenclLanes, testing::Values(1, 2, 3, 8, 32, 256));

TEST_P(OpenclLanes, KnowTheirPlaceInTheGrid)
{
    std::uint32_t lanes = GetParam();
    auto places = allocate<place>(2 * lanes);

    run(source, "where_am_i", {2, lanes}, places.data());
    for (std::uint32_t at = 0; at < 2 * lanes; ++at) {
        EXPECT_EQ(places[at].lane, at % lanes);
        EXPECT_EQ(places[at].lanes, lanes);
        EXPECT_EQ(places[at].block, at / lanes);
        EXPECT_EQ(places[at].blocks, 2u);
    }
}

TEST_P(OpenclLanes, AllGetTheBlockSumInEveryRoundAndLeaveTheLoopTogether)
{
    auto words = allocate<std::uint32_t>(3);

    run(source, "sum_until", {1, GetParam()}, 1000u, &words[0], &words[1], &words[2]);
    EXPECT_EQ(words[1], 1000u * GetParam());
    EXPECT_EQ(words[2], 0u);
}

TEST_P(OpenclLanes, SeeSharedMemoryOfTheirNeighboursAfterABarrier)
{
    auto out = allocate<std::uint32_t>(GetParam());

    run(source, "rotate_shared", {1, GetParam()}, out.data());
    for (std::uint32_t lane = 0; lane < GetParam(); ++lane)
        EXPECT_EQ(out[lane], (lane + 1) % GetParam() + 9);
}

TEST_F(OpenclLaunch, PassesScalarsOfEveryWidthPointersAndNull)
{
    auto kept = allocate<std::uint64_t>(4);

    run(source, "keep_arguments", {1, 1}, 0xdeadbeefu, std::uint64_t{0x0123456789abcdef}, std::uint8_t{0xa5},
        kept.data(), static_cast<std::uint32_t*>(nullptr));
    EXPECT_EQ(kept[0], 0xdeadbeefu);
    EXPECT_EQ(kept[1], 0x0123456789abcdefu);
    EXPECT_EQ(kept[2], 0xa5u);
    EXPECT_EQ(kept[3], 1u);
}

TEST_F(OpenclLaunch, LetsAKernelFollowPointersThatItReadsFromMemory)
{
    auto word = allocate<std::uint32_t>(1);
    auto handle = allocate<std::uint64_t>(1);
    handle[0] = reinterpret_cast<std::uint64_t>(word.data());

    run(source, "follow", {1, 1}, handle.data());
    EXPECT_EQ(word[0], 42u);
}

TEST_F(OpenclLaunch, CanBeDoneAThousandTimes)
{
    auto words = allocate<std::uint32_t>(3);

    for (int round = 0; round < 1000; ++round)
        run(source, "sum_until", {1, 1}, 1u, &words[0], &words[1], &words[2]);
    EXPECT_EQ(words[1], 1000u);
}

TEST_F(OpenclLaunch, RefusesAGridThatTheDeviceCannotRun)
{
    for (grid shape : {grid{0, 1}, grid{1, 0}, grid{1, 1u << 20}}) {
        auto [code, text] = refusal_of([&] { launch(source, "where_am_i", shape, static_cast<place*>(nullptr)); });
        EXPECT_EQ(code, errc::invalid_argument);
        EXPECT_THAT(text, testing::HasSubstr(std::to_string(shape.blocks) + " x " + std::to_string(shape.lanes)));
    }
}

TEST_F(OpenclLaunch, RefusesBlocksThatWouldKillTheCompiler)
{
    std::vector<devices::opencl::found_device> devices = devices::opencl::find_devices();
    devices::opencl::found_device found = devices::opencl::choose(devices, -1);
    found.facts.deadly_lanes = 2;
    device_ = std::make_shared<devices::opencl::opencl_device>(found);
    auto places = allocate<place>(3);

    auto [code, text] = refusal_of([&] { launch(source, "where_am_i", {1, 2}, places.data()); });
    EXPECT_EQ(code, errc::not_supported);
    EXPECT_THAT(text, testing::HasSubstr("POCL_FULL_REPLICATION_THRESHOLD=1"));
    run(source, "where_am_i", {1, 1}, places.data());
    run(source, "where_am_i", {1, 3}, places.data());
}

TEST_F(OpenclLaunch, RefusesTooFewArgumentsAndSaysHowManyTheKernelHas)
{
    auto [code, text] = refusal_of([&] { launch(source, "keep_arguments", {1, 1}, 1u); });
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_THAT(text, testing::HasSubstr("keep_arguments has 5 parameters, but 1"));
}

TEST_F(OpenclLaunch, RefusesANarrowScalarWhereTheKernelWantsAPointer)
{
    auto [code, text] = refusal_of([&] { launch(source, "follow", {1, 1}, 1u); });
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_THAT(text, testing::HasSubstr("argument 1 of kernel follow has 4 bytes"));
}

TEST_F(OpenclLaunch, RefusesAPointerToMemoryThatIsNotTheDevices)
{
    std::uint64_t on_the_stack = 0;

    auto [code, text] = refusal_of([&] { launch(source, "follow", {1, 1}, &on_the_stack); });
    EXPECT_EQ(code, errc::not_reachable);
    EXPECT_THAT(text, testing::HasSubstr("argument 1 of kernel follow"));
}

TEST_F(OpenclLaunch, NamesFileAndLineOfACompileError)
{
    auto [code, text] = refusal_of([&] {
        launch("#pragma once\n#include \"weftio/device/eth_rxq.h\"\nint broken = not_there;\n", "k", {1, 1});
    });
    EXPECT_EQ(code, errc::device_error);
    EXPECT_THAT(text, testing::HasSubstr("test_kernel.h does not compile"));
    EXPECT_THAT(text, testing::HasSubstr("test_kernel.h:3:"));
    EXPECT_THAT(text, testing::HasSubstr("not_there"));
}

TEST_F(OpenclLaunch, SaysThatTheLanguageHasTheNameOfAKernelAlready)
{
    for (const char* name : {"all", "dot", "half", "global"}) {
        const std::string kernel =
            fmt::format("WEFTIO_KERNEL void {}(WEFTIO_GLOBAL weftio_u32 *word) {{ *word = 1; }}\n", name);
        auto [code, text] = refusal_of([&] { launch(kernel, name, {1, 1}); });
        EXPECT_EQ(code, errc::invalid_argument);
        EXPECT_THAT(text, testing::StartsWith(fmt::format("weftio: opencl: kernel {} has a name that OpenCL C", name)));
        EXPECT_EQ(text.find('\n'), text.npos) << text;
    }
}

TEST_F(OpenclLaunch, NamesTheKernelsThatThereAreWhenTheWantedOneIsMissing)
{
    auto [code, text] = refusal_of([&] { launch(source, "no_such_kernel", {1, 1}); });
    EXPECT_EQ(code, errc::device_error);
    EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("no_such_kernel"), testing::HasSubstr("where_am_i")));
}

} // namespace
} // namespace weftio::test
