// In which order lanes get their turn.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "devices/cpu/lane_order.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cpu {

namespace {

std::vector<std::uint32_t> in_order(std::size_t count)
{
    std::vector<std::uint32_t> lanes(count);
    std::iota(lanes.begin(), lanes.end(), 0u);
    return lanes;
}

/// The orders of `rounds` rounds of 16 lanes.
std::vector<std::vector<std::uint32_t>> rounds_of(lane_order order, int rounds)
{
    std::vector<std::vector<std::uint32_t>> seen;
    auto lanes = in_order(16);
    for (int round = 0; round < rounds; ++round) {
        order.arrange(lanes);
        seen.push_back(lanes);
    }
    return seen;
}

TEST(LaneOrder, WithoutASeedIsRoundRobin)
{
    for (const auto& lanes : rounds_of({std::nullopt, 0}, 3))
        EXPECT_EQ(lanes, in_order(16));
}

TEST(LaneOrder, WithASeedIsAnotherPermutationEveryRound)
{
    auto rounds = rounds_of({7, 0}, 50);
    std::set<std::vector<std::uint32_t>> different(rounds.begin(), rounds.end());
    EXPECT_GE(different.size(), 49u);
    for (auto lanes : rounds) {
        std::ranges::sort(lanes);
        EXPECT_EQ(lanes, in_order(16));
    }
}

TEST(LaneOrder, EveryLaneComesFirstAtTimes)
{
    std::set<std::uint32_t> first;
    for (const auto& lanes : rounds_of({3, 1}, 1000))
        first.insert(lanes.front());
    EXPECT_EQ(first.size(), 16u);
}

TEST(LaneOrder, DependsOnSeedAndBlockOnly)
{
    EXPECT_EQ(rounds_of({0, 2}, 5), rounds_of({0, 2}, 5));
    EXPECT_NE(rounds_of({0, 2}, 5), rounds_of({0, 3}, 5));
    EXPECT_NE(rounds_of({0, 2}, 5), rounds_of({1, 2}, 5));
}

TEST(ShuffleSeed, ComesFromTheEnvironment)
{
    setenv("WEFTIO_SHUFFLE_SEED", "42", 1);
    std::optional<std::uint64_t> seed = shuffle_seed();
    setenv("WEFTIO_SHUFFLE_SEED", "4x", 1);
    if (seed) {
        EXPECT_EQ(seed, 42u);
        EXPECT_THROW(shuffle_seed(), error);
    }
    unsetenv("WEFTIO_SHUFFLE_SEED");
    if (!seed)
        GTEST_SKIP() << "lanes are not shuffled: needs a build with WEFTIO_SHUFFLE_LANES";
    EXPECT_NE(shuffle_seed(), shuffle_seed()) << "a random one each time";
}

} // namespace

} // namespace weftio::devices::cpu
