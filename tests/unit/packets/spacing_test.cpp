// When a kernel of weftio-packets sleeps: at high rates, not at low ones.
#include <gtest/gtest.h>

#include "kernel/serve.kernel.h"

namespace {

class FrameSpacing : public testing::Test {
 protected:
    FrameSpacing() { at.spacing_ns = ~0ull >> 8; }

    /// @param count  frames of each burst
    void receive(int bursts, std::uint64_t distance_ns, std::uint32_t count = 1)
    {
        for (int each = 0; each < bursts; ++each)
            note_spacing(&at, count, now_ns += distance_ns);
    }
    bool is_close() const { return at.spacing_ns < PACKETS_CLOSE_NS; }

    struct server at {};
    std::uint64_t now_ns = 1'700'000'000'000'000'000;
};

TEST_F(FrameSpacing, IsCloseAtFiftyThousandFramesASecondHoweverTheyAreBundled)
{
    receive(400, 20'000);
    EXPECT_TRUE(is_close());
    receive(400, 80'000, 4);
    EXPECT_TRUE(is_close());
}

TEST_F(FrameSpacing, IsNotCloseWhereOneConnectionAsksAndWaits)
{
    receive(400, 20'000);
    receive(40, 70'000);
    EXPECT_FALSE(is_close());
}

TEST_F(FrameSpacing, IsNotCloseAfterAPause)
{
    receive(400, 20'000);
    receive(1, 2'000'000);
    EXPECT_FALSE(is_close());
}

} // namespace
