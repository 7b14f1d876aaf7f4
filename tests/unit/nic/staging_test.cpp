// Completions wait for their packets. The test plays the copy engine, which is as slow as it wants to be.
#include <array>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>

#include "nic/soft/receive/staging.hpp"
#include "unit/device/slow_copies.hpp"

namespace weftio::nic::soft {
namespace {

using test::slow_copies;

class Staging : public testing::Test {
 protected:
    static constexpr std::uint32_t slots = 16, stride = 64, zeroed = 4;

    void add(std::uint32_t slot, std::uint32_t bytes)
    {
        std::memset(&here_[slot * stride], static_cast<int>(slot + 1), bytes);
        staging_.add(&published_[added_], 100 + added_, slot, bytes);
        ++added_;
    }
    std::vector<std::uint32_t> published() const { return {published_.begin(), published_.begin() + added_}; }

    std::shared_ptr<slow_copies> copies_ = std::make_shared<slow_copies>();
    std::array<std::byte, slots * stride> here_{}, there_{};
    std::array<std::uint32_t, slots> published_{};
    std::uint32_t added_ = 0;
    staging staging_{rx_ring{.slots = here_.data(),
                             .depth = slots,
                             .stride_bytes = stride,
                             .zeroed_bytes = zeroed,
                             .staged = {.copies = copies_, .slots = there_.data()}}};
};

TEST_F(Staging, PublishesInOrderAndOnlyWhatHasLanded)
{
    add(3, 20);
    add(4, 60);
    EXPECT_EQ(staging_.turn().packets, 0u);
    EXPECT_THAT(published(), testing::Each(0u));
    EXPECT_EQ(staging_.turn().packets, 0u) << "it was not copied yet";
    copies_->complete_all();
    const staging::delivery landed = staging_.turn();
    EXPECT_EQ(landed.packets, 2u);
    EXPECT_EQ(landed.bytes, 80u);
    EXPECT_THAT(published(), testing::ElementsAre(100, 101));
    EXPECT_EQ(std::memcmp(&here_[3 * stride], &there_[3 * stride], 20), 0);
    EXPECT_EQ(std::memcmp(&here_[4 * stride], &there_[4 * stride], 60), 0);
    EXPECT_EQ(staging_.held(), 0u);
}

TEST_F(Staging, CopiesNeighborsTogetherAsWideAsTheLongest)
{
    for (std::uint32_t slot : {5u, 6u, 7u, 2u, 9u})
        add(slot, slot * 6);
    staging_.turn();
    ASSERT_EQ(copies_->copies.size(), 3u);
    EXPECT_EQ(copies_->copies[0].shape.count, 3u);
    EXPECT_EQ(copies_->copies[0].shape.bytes, 42u + zeroed) << "what is made 0 behind a packet goes along";
    EXPECT_EQ(copies_->copies[1].shape.count, 1u);
    EXPECT_EQ(copies_->marks, std::vector<std::uint32_t>{1});
}

TEST_F(Staging, GathersWhatComesWhileTwoBatchesAreUnderWay)
{
    add(0, 10);
    staging_.turn();
    add(1, 10);
    staging_.turn();
    add(2, 10);
    staging_.turn();
    add(3, 10);
    staging_.turn();
    EXPECT_EQ(copies_->marks.size(), 2u);
    copies_->complete_all();
    EXPECT_EQ(staging_.turn().packets, 2u);
    ASSERT_EQ(copies_->copies.size(), 1u) << "what came meanwhile is one batch";
    EXPECT_EQ(copies_->copies[0].shape.count, 2u);
    EXPECT_EQ(staging_.held(), 2u);
}

TEST_F(Staging, GoesOnBehindTheEndOfItsRing)
{
    for (int round = 0; round < 10; ++round) {
        added_ = 0;
        published_.fill(0);
        for (std::uint32_t slot = 0; slot < 13; ++slot)
            add(slot, stride - zeroed);
        staging_.turn();
        EXPECT_EQ(copies_->copies.size(), 1u);
        copies_->complete_all();
        ASSERT_EQ(staging_.turn().packets, 13u);
        EXPECT_EQ(published_.front(), 100u);
        EXPECT_EQ(published_[12], 112u);
    }
    EXPECT_EQ(std::memcmp(here_.data(), there_.data(), 13 * stride), 0);
}

} // namespace
} // namespace weftio::nic::soft
