// Host memory for staged copies: blocks that come back in any order.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "nic/soft/rdma/staging_blocks.hpp"

namespace weftio::test {

namespace {

using nic::soft::staging_block;
using nic::soft::staging_blocks;

class StagingBlocks : public testing::Test {
 protected:
    static constexpr std::size_t unit = staging_blocks::unit, units = 2048;

    std::vector<std::byte> memory{units * unit};
    staging_blocks blocks{memory.data(), memory.size()};
    static const std::uint8_t* at(const std::byte* byte) { return reinterpret_cast<const std::uint8_t*>(byte); }
};

} // namespace

TEST_F(StagingBlocks, GivesWhatIsWantedWhileThereIsMuchRoom)
{
    EXPECT_EQ(blocks.take(1, 1).bytes(), unit);
    EXPECT_EQ(blocks.take(1, unit + 1).bytes(), 2 * unit);
    EXPECT_EQ(blocks.take(1, 1 << 20).bytes(), staging_blocks::most_bytes);
    EXPECT_EQ(blocks.take(3 * unit, 1).bytes(), 4 * unit);
}

TEST_F(StagingBlocks, GivesLessWhenManyHaveTakenMuchAndAllOfItInTheEnd)
{
    std::vector<staging_block> taken;
    std::map<std::size_t, unsigned> sizes;
    while (auto more = blocks.take(1, staging_blocks::most_bytes)) {
        ++sizes[more.bytes()];
        taken.push_back(std::move(more));
    }
    EXPECT_EQ(sizes[staging_blocks::most_bytes], 65u);
    EXPECT_GT(sizes[unit], 100u);
    std::size_t all = 0;
    for (const auto& each : taken)
        all += each.bytes();
    EXPECT_EQ(all, memory.size());
    taken.erase(taken.begin());
    EXPECT_TRUE(blocks.take(1, 1));
}

TEST_F(StagingBlocks, FindsTheBlockOfAByte)
{
    const auto one = blocks.take(1, 1), other = blocks.take(2 * unit, 2 * unit);
    EXPECT_EQ(blocks.holder(at(one.first() + 17)), one);
    EXPECT_EQ(blocks.holder(at(other.first() + other.bytes() - 1)), other);
    EXPECT_EQ(blocks.holder(at(memory.data() + memory.size() - 1)), staging_block{}) << "it is free";
    EXPECT_EQ(blocks.holder(at(memory.data() + memory.size())), staging_block{});
    EXPECT_EQ(blocks.holder(at(memory.data() - 1)), staging_block{});
}

/// Against a list of who owns each byte.
TEST_F(StagingBlocks, NoByteBelongsToTwo)
{
    std::mt19937 random(7);
    std::map<std::byte*, staging_block> live;
    for (unsigned step = 0; step < 20000; ++step) {
        if (random() % 2 == 0 && !live.empty()) {
            auto gone = live.begin();
            std::advance(gone, random() % live.size());
            live.erase(gone);
            continue;
        }
        const std::size_t least = 1 + random() % staging_blocks::most_bytes, wanted = random() % (2 * least);
        const auto made = blocks.take(least, wanted);
        if (!made)
            continue;
        ASSERT_GE(made.bytes(), least);
        const auto next = live.lower_bound(made.first());
        ASSERT_TRUE(next == live.end() || made.first() + made.bytes() <= next->first);
        ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second.bytes() <= made.first());
        ASSERT_LE(made.first() + made.bytes(), memory.data() + memory.size());
        live[made.first()] = made;
    }
    live.clear();
    EXPECT_EQ(blocks.take(1, 1).first(), memory.data()) << "all has come back";
}

} // namespace weftio::test
