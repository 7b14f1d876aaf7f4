// What the lanes of a scope find in one round of a receive, added up in 32 bits, and which rounds end a call.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "weftio/device/eth_rxq.h"

namespace weftio::test {
namespace {

/// A completion ring of `depth` entries, of which the first `published` have been published in pass 0.
class some_completions {
 public:
    some_completions(std::uint32_t depth, std::uint32_t published)
        : entries_(depth), ring_{entries_.data(), depth - 1, static_cast<weftio_u32>(std::countr_zero(depth))}
    {
        for (std::uint32_t index = 0; index < depth; ++index)
            entries_[index].publication = index < published
                                              ? weftio_cqe_publication(index, WEFTIO_CQE_OPCODE_RESPONDER_SEND, 0)
                                              : weftio_u32{WEFTIO_CQE_NEVER_WRITTEN} << 24;
    }
    /// The round of a scope of so many lanes, of which lane 0 says `stop`.
    [[nodiscard]] weftio_dev_round round(std::uint32_t lanes, weftio_u32 stop) const
    {
        weftio_u32 sum = 0;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            weftio_dev_round mine = weftio_dev_completion_look(&ring_, 0, ring_.mask + 1, lane, lanes);
            mine.stop = lane == 0 ? stop : 0;
            sum += weftio_dev_round_pack(mine);
        }
        return weftio_dev_round_unpack(sum);
    }

 private:
    std::vector<weftio_cqe> entries_;
    weftio_dev_completion_ring ring_;
};

class Rounds : public testing::TestWithParam<std::uint32_t> {
 protected:
    static void expect_round(std::uint32_t depth, std::uint32_t published)
    {
        const some_completions completions(depth, published);
        const std::uint32_t lanes = GetParam(), scans = lanes >= 32, in_eights = published / 8 * 8;
        for (const weftio_u32 stop : {0u, WEFTIO_DEV_STOP_TIMEOUT, WEFTIO_DEV_STOP_ABORT}) {
            const weftio_dev_round round = completions.round(lanes, stop);
            EXPECT_EQ(round.packets, scans ? in_eights : published) << published;
            EXPECT_EQ(round.singles, scans ? std::min(published, 7u) : 0u) << published;
            EXPECT_EQ(round.stop, stop) << published;
            EXPECT_EQ(weftio_dev_round_found(round), scans && in_eights != 0 ? in_eights : published);
        }
    }
};

TEST_P(Rounds, AddUpWhatAllLanesSee)
{
    for (std::uint32_t published = 0; published <= 128; ++published)
        expect_round(128, published);
}

TEST_P(Rounds, OfTheDeepestRingCarryIntoNothing)
{
    for (const std::uint32_t published : {65535u, 65536u})
        expect_round(65536, published);
}

weftio_dev_receive_call call_for(std::uint32_t packets)
{
    weftio_dev_receive_call call{};
    call.limit = call.enough = packets;
    return call;
}

TEST(ReceiveCall, EndsWithEnoughPackets)
{
    weftio_dev_receive_call call = call_for(16);
    EXPECT_FALSE(weftio_dev_receive_add(&call, {8, 7, 0}, 32));
    EXPECT_FALSE(weftio_dev_receive_add(&call, {0, 7, 0}, 32));
    EXPECT_TRUE(weftio_dev_receive_add(&call, {0, 1, 0}, 32));
    EXPECT_EQ(call.found, 16u);
}

TEST(ReceiveCall, EndsWithAStopWhenNothingCanBeLeft)
{
    for (const weftio_u32 stop : {WEFTIO_DEV_STOP_TIMEOUT, WEFTIO_DEV_STOP_ABORT}) {
        weftio_dev_receive_call few_lanes = call_for(64), many_lanes = call_for(64);
        EXPECT_TRUE(weftio_dev_receive_add(&few_lanes, {13, 0, stop}, 31));
        EXPECT_EQ(few_lanes.found, 13u);
        EXPECT_TRUE(weftio_dev_receive_add(&many_lanes, {0, 5, stop}, 32));
        EXPECT_EQ(many_lanes.found, 5u);
    }
}

TEST(ReceiveCall, TakesOneMoreRoundWhenAScanIsStopped)
{
    for (const weftio_u32 stop : {WEFTIO_DEV_STOP_TIMEOUT, WEFTIO_DEV_STOP_ABORT}) {
        weftio_dev_receive_call call = call_for(64);
        EXPECT_FALSE(weftio_dev_receive_add(&call, {8, 7, stop}, 32));
        weftio_dev_receive_call busy = call;
        EXPECT_TRUE(weftio_dev_receive_add(&call, {0, 5, stop}, 32));
        EXPECT_EQ(call.found, 13u);
        EXPECT_EQ(call.stop, stop);
        EXPECT_TRUE(weftio_dev_receive_add(&busy, {8, 7, stop}, 32)) << "and not a third";
        EXPECT_EQ(busy.found, 16u);
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Rounds, testing::Values(1u, 7u, 31u, 32u, 33u, 256u, 1024u),
                         [](const auto& info) { return std::to_string(info.param) + "Lanes"; });

} // namespace
} // namespace weftio::test
