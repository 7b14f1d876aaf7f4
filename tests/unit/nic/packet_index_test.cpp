// Which indices weftio_dev_eth_rxq_packet knows: those handed out whose completion is still there, in every pass over
// the ring.
#include "fake_nic.hpp"
#include "unit/device/fixture.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;

/// First index of a ring.
class PacketIndices : public testing::TestWithParam<std::uint32_t> {
 protected:
    /// Publishes `count` packets and receives them.
    void receive(std::uint32_t count)
    {
        std::uint32_t seen = 0, first = 0;
        ASSERT_TRUE(nic.publish(count));
        ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(nic.handle(), count, 0, &seen, &first), WEFTIO_DEV_OK);
        ASSERT_EQ(seen, count);
    }
    void release(std::uint32_t count)
    {
        ASSERT_EQ(weftio_dev_eth_rxq_release(nic.handle(), nic.handle()->released, count), WEFTIO_DEV_OK);
    }
    bool knows(std::uint32_t index)
    {
        weftio_dev_packet packet{};
        weftio_s32 status = weftio_dev_eth_rxq_packet(nic.handle(), index, &packet);
        EXPECT_TRUE(status == WEFTIO_DEV_OK || status == WEFTIO_DEV_NOT_FOUND) << status;
        EXPECT_TRUE(status != WEFTIO_DEV_OK || packet.timestamp_ns == fake_nic::time_ns_of(index))
            << index << ": another packet";
        EXPECT_TRUE(status == WEFTIO_DEV_OK || packet.address == nullptr) << index << ": changed on error";
        return status == WEFTIO_DEV_OK;
    }

    fake_nic nic{device::open("cpu"), depth, GetParam()};
};

TEST_P(PacketIndices, OfOtherPassesAreNotFound)
{
    std::uint32_t next = GetParam();
    for (std::uint32_t pass = 0; pass < 5; ++pass, next += depth) {
        for (std::uint32_t away = 1; away <= 4 * depth; ++away) { // nothing of this pass has come
            ASSERT_FALSE(knows(next - 1 + away)) << pass << ", " << away;
            ASSERT_EQ(knows(next - away), pass > 0 && away <= depth) << pass << ", " << away;
        }
        receive(depth);
        for (std::uint32_t away = 0; away < 4 * depth; ++away) {
            ASSERT_EQ(knows(next + away), away < depth) << pass << ", " << away;
            ASSERT_FALSE(knows(next - 1 - away)) << pass << ", " << away;
        }
        release(depth);
    }
}

TEST_P(PacketIndices, AreFoundOnlyWhenAReceiveCallHasHandedThemOut)
{
    ASSERT_TRUE(nic.publish(10));
    EXPECT_FALSE(knows(GetParam()));
    std::uint32_t seen = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(nic.handle(), 4, 0, &seen, &first), WEFTIO_DEV_OK);
    for (std::uint32_t at = 0; at < 10; ++at)
        EXPECT_EQ(knows(GetParam() + at), at < 4) << at;
}

TEST_P(PacketIndices, AreFoundNoMoreOnceOverwritten)
{
    receive(depth);
    release(10);
    ASSERT_TRUE(nic.publish(10)); // into the slots that were given back; not received yet
    for (std::uint32_t at = 0; at < depth; ++at)
        EXPECT_EQ(knows(GetParam() + at), at >= 10) << at;
}

INSTANTIATE_TEST_SUITE_P(From, PacketIndices,
                         testing::Values(0u, 40u, 0xffffff00u, 0xffffffc0u, 0xffffffbfu, 0xffffffffu, 0x7ffffff0u));

} // namespace
} // namespace weftio::test
