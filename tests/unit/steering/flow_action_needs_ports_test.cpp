// Queues of real ports: what validate_test.cpp cannot make up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flow/validate.hpp"
#include "weftio/error.hpp"

namespace {

TEST(FlowAction, TakesQueuesOfItsOwnPortOnly)
{
    const weftio::device device = weftio::device::open("cpu");
    const weftio::port mine = weftio::port::open("null");
    const weftio::port other = weftio::port::open("null");
    const weftio::eth_rxq my_queue(mine, device);
    const weftio::eth_rxq other_queue(other, device);

    EXPECT_NO_THROW(weftio::detail::validate("weftio: flow", weftio::flow_action::to(my_queue), mine.backend()));
    try {
        weftio::detail::validate("weftio: flow", weftio::flow_action::rss({&my_queue, &other_queue}), mine.backend());
        FAIL() << "accepted a queue of another port";
    } catch (const weftio::error& error) {
        EXPECT_EQ(error.code(), weftio::errc::invalid_argument);
        EXPECT_THAT(error.what(), testing::HasSubstr("belongs to another port"));
    }
}

} // namespace
