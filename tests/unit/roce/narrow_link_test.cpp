// READs over a link that holds few packets, as the receive queue of a NIC does: what finds it full is lost.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;

constexpr std::uint32_t mtu = 256, reads = 4, packets_of_one = 512, bytes_of_one = packets_of_one * mtu;

/// The first READ overruns the link. From then on the requester asks for what the link takes.
TEST(RoceNarrowLink, ReadsEndAndAskForLittleTwice)
{
    pair_of_ends ends({.path_mtu = mtu});
    ends.back = roce_ends::link({.room = 32, .leave = 8}, 1); // responses, 8 packets in 10 us
    const bytes source = stamped(1 << 20, 9);
    std::copy(source.begin(), source.end(), ends.memory.data());
    for (std::uint32_t at = 0; at < reads; ++at)
        ends.sends.post(read_from(at * bytes_of_one), bytes(bytes_of_one), at + 1 != reads);
    for (unsigned steps = 0; steps < 200'000 && ends.sends.ends.size() != reads; ++steps)
        ends.step();
    ASSERT_EQ(ends.sends.ends.size(), reads);
    for (std::uint32_t at = 0; at < reads; ++at) {
        EXPECT_EQ(ends.sends.ends[at].result, refusal::none);
        EXPECT_TRUE(std::equal(ends.sends.entries[at].local.begin(), ends.sends.entries[at].local.end(),
                               &source[std::size_t{at} * bytes_of_one]));
    }
    EXPECT_GT(ends.back.dropped, 0u);
    EXPECT_LT(ends.back.offered, reads * packets_of_one * 2);
}

} // namespace
