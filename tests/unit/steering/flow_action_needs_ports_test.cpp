// Queues of real ports: what validate_test.cpp cannot make up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flows/validate.hpp"
#include "weftio/error.hpp"

namespace {

TEST(FlowAction, TakesQueuesOfItsOwnPortOnly)
{
    const weftio::device device = weftio::device::open("cpu");
    const weftio::port mine = weftio::port::open("null");
    const weftio::port other = weftio::port::open("null");
    const weftio::eth_rxq my_queue(mine, device);
    const weftio::eth_rxq other_queue(other, device);

    EXPECT_NO_THROW(weftio::flows::validate("weftio: flow", weftio::flow_action::to(my_queue),
                                            weftio::detail::internals::backend(mine)));
    try {
        weftio::flows::validate("weftio: flow", weftio::flow_action::rss({&my_queue, &other_queue}),
                                weftio::detail::internals::backend(mine));
        FAIL() << "accepted a queue of another port";
    } catch (const weftio::error& error) {
        EXPECT_EQ(error.code(), weftio::errc::invalid_argument);
        EXPECT_THAT(error.what(), testing::HasSubstr("belongs to another port"));
    }
}

TEST(FlowAction, TakesTheKeysThatThereAre)
{
    const weftio::device device = weftio::device::open("cpu");
    const weftio::port port = weftio::port::open("null");
    const weftio::eth_rxq queue(port, device);
    for (weftio::rss_key key : {weftio::rss_key::standard, weftio::rss_key::symmetric})
        EXPECT_NO_THROW(weftio::flows::validate("weftio: flow", weftio::flow_action::rss({&queue}, key),
                                                weftio::detail::internals::backend(port)));
    try {
        weftio::flows::validate("weftio: flow", weftio::flow_action::rss({&queue}, static_cast<weftio::rss_key>(9)),
                                weftio::detail::internals::backend(port));
        FAIL() << "accepted a key that is none";
    } catch (const weftio::error& error) {
        EXPECT_EQ(error.code(), weftio::errc::invalid_argument);
        EXPECT_STREQ(error.what(), "weftio: flow: key 9 is unknown; use rss_key::standard or symmetric");
    }
}

} // namespace
