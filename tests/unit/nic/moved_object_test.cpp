// Queues and flows that move, in the sense of C++.
#include <gmock/gmock.h>

#include "injected_port.hpp"

namespace weftio::test {
namespace {

class MovedObject : public testing::Test {
 protected:
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq first{port.get(), cpu, {.packets = 64}};
};

TEST_F(MovedObject, IsRefusedAsAQueueOfAFlow)
{
    const flow_action to = flow_action::to(first), rss = flow_action::rss({&first});
    eth_rxq second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_TRUE(second);
    for (const flow_action& action : {to, rss}) {
        const error refusal = error_of([&] { (void)flow(port.get(), {}, action); });
        EXPECT_EQ(refusal.code(), errc::invalid_argument);
        EXPECT_THAT(refusal.what(), testing::HasSubstr("a moved-from eth_rxq; name the one that it was moved to"));
    }
}

TEST_F(MovedObject, KeepsTheFlowsThatLeadToIt)
{
    flow before(port.get(), {.ether_type = 0x88b5}, flow_action::to(first));
    eth_rxq second = std::move(first);
    flow after(port.get(), {.ip_protocol = 17}, flow_action::to(second));
    flow moved = std::move(before);
    ASSERT_TRUE(port.send(numbered_frame(1)));
    ASSERT_TRUE(port.send(frames::udp4()));
    port.run_dry();
    EXPECT_EQ(second.counters().delivered, 2u);
    EXPECT_EQ(moved.hits().packets, 1u);
    first = std::move(second);
    EXPECT_EQ(first.counters().delivered, 2u);
}

} // namespace
} // namespace weftio::test
