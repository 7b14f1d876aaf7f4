// Who drives the NIC, and how others change things meanwhile.
#include <stdexcept>
#include <thread>

#include "injected_port.hpp"
#include "nic/soft_port.hpp"

namespace weftio::test {
namespace {

class Engine : public testing::TestWithParam<idle_policy> {
 protected:
    bool delivers(std::uint32_t count)
    {
        std::uint64_t before = queue.counters().delivered;
        for (std::uint32_t number = 0; number < count; ++number)
            port.send(numbered_frame(number));
        return eventually([&] { return queue.counters().delivered == before + count; });
    }

    device cpu = device::open("cpu");
    injected_port port{{.idle = GetParam()}};
    eth_rxq queue{port.get(), cpu};
    flow everything{port.get(), {}, flow_action::to(queue)};
};

TEST_P(Engine, DeliversByItself)
{
    EXPECT_TRUE(delivers(500));
    EXPECT_TRUE(conserves(port.counters()));
}

TEST_P(Engine, RunsOneChangeAtATimeAndNoTurnMeanwhile)
{
    nic::engine& engine = port.get().backend().engine();
    int changes = 0; // not atomic: a second change at the same time would lose some
    auto change_often = [&] {
        for (int i = 0; i < 2000; ++i)
            engine.between_turns([&] { ++changes; });
    };
    std::thread first(change_often), second(change_often);
    first.join();
    second.join();
    EXPECT_EQ(changes, 4000);
    EXPECT_TRUE(delivers(100));
}

TEST_P(Engine, HandsOnWhatAChangeReturnsAndThrows)
{
    nic::engine& engine = port.get().backend().engine();
    int value = 41;
    int& same = engine.between_turns([&]() -> int& { return ++value; });
    EXPECT_EQ(&same, &value);
    EXPECT_EQ(value, 42);
    EXPECT_THROW(engine.between_turns([] { throw std::runtime_error("change"); }), std::runtime_error);
    EXPECT_TRUE(delivers(100));
}

TEST_P(Engine, KeepsTurningWhileSomebodyChangesThingsAllTheTime)
{
    nic::engine& engine = port.get().backend().engine();
    std::atomic<bool> ending{false};
    auto change_without_a_pause = [&] {
        while (!ending)
            engine.between_turns([] {});
    };
    std::thread first(change_without_a_pause), second(change_without_a_pause);
    for (std::uint32_t number = 0; number < 500; ++number)
        port.send(numbered_frame(number));
    EXPECT_TRUE(eventually([&] { return port.counters().delivered == 500; }));
    ending = true;
    first.join();
    second.join();
}

INSTANTIATE_TEST_SUITE_P(Idle, Engine, testing::Values(idle_policy::sleep, idle_policy::yield, idle_policy::busy));

TEST(EngineThread, RefusesToBeTurnedByHand)
{
    injected_port port{port_options{}};
    error refused = error_of([&] { port.get().turn(); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_NE(std::string(refused.what()).find(port.get().spec()), std::string::npos) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("inline_worker"), std::string::npos) << refused.what();
}

TEST(InlineEngine, MovesPacketsInTurnsOnly)
{
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq queue(port.get(), cpu);
    flow everything(port.get(), {}, flow_action::to(queue));
    for (std::uint32_t number = 0; number < 70; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number)));
    EXPECT_EQ(port.counters().received, 0u);
    EXPECT_EQ(port.get().turn(), 64u);
    EXPECT_EQ(port.get().turn(), 6u);
    EXPECT_EQ(port.get().turn(), 0u);
    EXPECT_EQ(queue.counters().delivered, 70u);
}

TEST(InlineEngine, IsTurnedByTheReceiveCallsOfAKernel)
{
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq queue(port.get(), cpu);
    flow everything(port.get(), {}, flow_action::to(queue));
    for (std::uint32_t number = 0; number < 200; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number)));
    std::uint32_t count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(queue.handle(), 200, 0, &count, &first), WEFTIO_DEV_OK);
    EXPECT_EQ(count, 200u);
}

} // namespace
} // namespace weftio::test
