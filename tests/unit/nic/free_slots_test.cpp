// Free slots: which goes next.
#include "nic/soft/receive/free_slots.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weftio::nic::soft {
namespace {

using numbers = std::vector<std::uint16_t>;

class FreeSlots : public testing::Test {
 protected:
    void put(const numbers& slots) { free.put(slots.data(), static_cast<std::uint32_t>(slots.size())); }
    numbers all() const { return {free.next(), free.next() + free.count()}; }

    free_slots free{4};
};

TEST_F(FreeSlots, BeginWithNone)
{
    EXPECT_EQ(free.count(), 0u);
}

TEST_F(FreeSlots, GoInTheOrderInWhichTheyWereGivenBackTogether)
{
    put({3, 1, 2});
    EXPECT_EQ(all(), (numbers{3, 1, 2}));
    free.take(1);
    EXPECT_EQ(all(), (numbers{1, 2}));
}

TEST_F(FreeSlots, GoBeforeThoseThatWereGivenBackEarlier)
{
    put({0, 1});
    put({2, 3});
    EXPECT_EQ(all(), (numbers{2, 3, 0, 1}));
}

TEST_F(FreeSlots, AreAllOfTheRingAgainAndAgain)
{
    for (int round = 0; round < 3; ++round) {
        put({2, 3});
        put({0, 1});
        EXPECT_EQ(free.count(), 4u);
        free.take(3);
        EXPECT_EQ(all(), (numbers{3}));
        free.take(1);
    }
}

TEST_F(FreeSlots, AreNoneOnceCleared)
{
    put({0, 1});
    free.clear();
    EXPECT_EQ(free.count(), 0u);
    put({3});
    EXPECT_EQ(all(), (numbers{3}));
}

} // namespace
} // namespace weftio::nic::soft
