// Who drives the NIC, and how others change things meanwhile.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <linux/capability.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "injected_port.hpp"
#include "software_nic.hpp"

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

/// Sees the turns of a port's engine from inside: DPDK calls it in each, where the driver is asked for packets.
class turns_seen {
 public:
    explicit turns_seen(const port& port) : port_(software_nic(port).device().id())
    {
        software_nic(port).engine().between_turns([this] { callback_ = rte_eth_add_rx_callback(port_, 0, see, this); });
    }
    turns_seen(const turns_seen&) = delete;
    turns_seen& operator=(const turns_seen&) = delete;
    /// Between two turns, so that none is in it.
    void end() { EXPECT_EQ(rte_eth_remove_rx_callback(port_, 0, callback_), 0); }

    std::atomic<bool> changing{false};
    std::atomic<std::uint64_t> turns{0}, overlaps{0};

 private:
    static std::uint16_t see(std::uint16_t, std::uint16_t, rte_mbuf*[], std::uint16_t count, std::uint16_t, void* self)
    {
        auto& seen = *static_cast<turns_seen*>(self);
        seen.overlaps += seen.changing;
        ++seen.turns;
        return count;
    }

    std::uint16_t port_;
    const rte_eth_rxtx_callback* callback_ = nullptr;
};

TEST_P(Engine, RunsOneChangeAtATimeAndNoTurnMeanwhile)
{
    nic::soft::engine& engine = software_nic(port.get()).engine();
    turns_seen seen(port.get());
    int changes = 0; // not atomic: a second change at the same time would lose some
    auto change_often = [&] {
        for (int i = 0; i < 200; ++i)
            engine.between_turns([&] {
                seen.changing = true;
                const std::uint64_t before = seen.turns;
                if (i % 10 == 0) // with time for turns, also where there is one core for all
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                seen.overlaps += seen.turns != before;
                ++changes;
                seen.changing = false;
            });
    };
    std::thread first(change_often), second(change_often);
    first.join();
    second.join();
    EXPECT_EQ(changes, 400);
    EXPECT_TRUE(eventually([&] { return seen.turns > 0; }));
    EXPECT_EQ(seen.overlaps, 0u);
    EXPECT_TRUE(delivers(100));
    engine.between_turns([&] { seen.end(); });
}

TEST_P(Engine, HandsOnWhatAChangeReturnsAndThrows)
{
    nic::soft::engine& engine = software_nic(port.get()).engine();
    int value = 41;
    int& same = engine.between_turns([&]() -> int& { return ++value; });
    EXPECT_EQ(&same, &value);
    EXPECT_EQ(value, 42);
    EXPECT_THROW(engine.between_turns([] { throw std::runtime_error("change"); }), std::runtime_error);
    EXPECT_TRUE(delivers(100));
}

TEST_P(Engine, KeepsTurningWhileSomebodyChangesThingsAllTheTime)
{
    nic::soft::engine& engine = software_nic(port.get()).engine();
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

TEST_P(Engine, MakesChangesItselfAndWaitsForNobody)
{
    ASSERT_TRUE(delivers(1)); // its thread has begun
    auto maker = software_nic(port.get()).engine().between_turns([] { return std::this_thread::get_id(); });
    EXPECT_NE(maker, std::this_thread::get_id());
}

TEST(EngineThatIsIdle, SleepsAHundredMicrosecondsAtATime)
{
    using std::chrono::steady_clock;
    const port port = port::open("loopback");
    nic::soft::engine& engine = software_nic(port).engine(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // ten times what it takes
    const std::uint32_t before = engine.turns_run();
    const auto begin = steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::uint32_t turns = engine.turns_run() - before;
    EXPECT_TRUE(eventually([&] { return engine.turns_run() != before; }));
    EXPECT_LE(turns, (steady_clock::now() - begin) / std::chrono::microseconds(100) + 1);
}

INSTANTIATE_TEST_SUITE_P(Idle, Engine,
                         testing::Values(idle_policy::sleep, idle_policy::yield, idle_policy::busy,
                                         idle_policy::adaptive));

TEST(EngineThread, RefusesToBeTurnedByHand)
{
    injected_port port{port_options{}};
    error refused = error_of([&] { port.get().turn(); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_NE(std::string(refused.what()).find(port.get().spec()), std::string::npos) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("inline_worker"), std::string::npos) << refused.what();
}

/// Names of this process's threads under SCHED_FIFO, with their priorities.
std::string realtime_threads()
{
    std::string found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        pid_t thread = std::stoi(task.path().filename());
        sched_param parameters{};
        std::string name;
        if (sched_getscheduler(thread) == SCHED_FIFO && sched_getparam(thread, &parameters) == 0 &&
            std::getline(std::ifstream(task.path() / "comm"), name))
            found += fmt::format("{} {};", name, parameters.sched_priority);
    }
    return found;
}

/// Takes a right from the calling thread, and from those that it starts, as long as it lives.
class without_right {
 public:
    explicit without_right(unsigned right)
    {
        syscall(SYS_capget, &header_, before_);
        __user_cap_data_struct less[2] = {before_[0], before_[1]};
        less[right / 32].effective &= ~(1u << right % 32);
        had_it_ = (before_[right / 32].effective >> right % 32 & 1) != 0 && syscall(SYS_capset, &header_, less) == 0;
    }
    without_right(const without_right&) = delete;
    without_right& operator=(const without_right&) = delete;
    ~without_right() { syscall(SYS_capset, &header_, before_); }
    bool had_it() const { return had_it_; }

 private:
    __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct before_[2]{};
    bool had_it_ = false;
};

TEST(EngineThread, AloneGetsTheRealTimePriorityThatIsAsked)
{
    if (!without_right(CAP_SYS_NICE).had_it())
        GTEST_SKIP() << "the priority of a thread, which needs CAP_SYS_NICE";
    injected_port port{{.realtime = 7}};
    EXPECT_TRUE(std::regex_match(realtime_threads(), std::regex("weftio/[0-9]+ 7;"))) << realtime_threads();
}

TEST(EngineThread, WithoutTheRightToBeARealTimeOneIsRefused)
{
    without_right less(CAP_SYS_NICE);
    error refused = error_of([] { port::open("null", {.realtime = 7}); });
    EXPECT_EQ(refused.code(), errc::permission_denied);
    EXPECT_NE(std::string(refused.what()).find("setcap"), std::string::npos) << refused.what();
}

TEST(EngineThread, OfAPriorityThatLinuxDoesNotHaveIsRefused)
{
    for (int priority : {-1, 100}) {
        error refused = error_of([&] { port::open("null", {.realtime = priority}); });
        EXPECT_EQ(refused.code(), errc::invalid_argument);
        EXPECT_NE(std::string(refused.what()).find(fmt::format("priority {}: ", priority)), std::string::npos)
            << refused.what();
    }
}

TEST(InlineEngine, ChangesAreMadeByWhoeverAsksWhileNobodyTurnsIt)
{
    injected_port port;
    auto maker = software_nic(port.get()).engine().between_turns([] { return std::this_thread::get_id(); });
    EXPECT_EQ(maker, std::this_thread::get_id());
}

TEST(InlineEngine, ChangesDoNotWaitForAShareOfATimeThatNobodyUses)
{
    injected_port port;
    device cpu = device::open("cpu");
    eth_rxq queue(port.get(), cpu, {.packets = 64});
    flow all(port.get(), {}, flow_action::to(queue));
    port.send(numbered_frame(1));
    ASSERT_NE(port.get().turn(), 0u); // the last one for a while
    nic::soft::engine& engine = software_nic(port.get()).engine();
    const auto begin = std::chrono::steady_clock::now();
    auto some_work = [] { // 256 times that is 1 ms
        for (const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(4);
             std::chrono::steady_clock::now() < end;)
            continue;
    };
    const auto wanted = 7 * patience / std::chrono::milliseconds(6); // more than the patience has milliseconds
    std::int64_t changes = 0;
    for (; changes < wanted && std::chrono::steady_clock::now() - begin < patience; ++changes)
        engine.between_turns(some_work);
    EXPECT_EQ(changes, wanted);
}

/// Which thread makes a change that another one asks for, while this one runs turns.
std::thread::id maker_of_a_change(port& port)
{
    std::atomic<bool> made{false};
    std::thread::id maker;
    std::thread asker([&] {
        software_nic(port).engine().between_turns([&] { maker = std::this_thread::get_id(); });
        made = true;
    });
    while (!made)
        port.turn();
    asker.join();
    return maker;
}

TEST(InlineEngine, ChangesAreMadeByTheWorkerThatTurnsIt)
{
    injected_port port;
    // A worker that just then has no core lets the one who asks do it, but not each time.
    EXPECT_TRUE(eventually([&] { return maker_of_a_change(port.get()) == std::this_thread::get_id(); }));
    EXPECT_EQ(port.get().turn(), 0u);
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
