// A port that is taken away under load ends what is on its way, says so, and is opened again.
#include "kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rte_dev.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "dpdk/port_watch.hpp"
#include "own_network.hpp"
#include "software_nic.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(sends_for_ever, "kernels.h");

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using weftio::test::eventually, weftio::test::in_own_network, weftio::test::patience;

/// WEFTIO_UNPLUGS=1000 runs the full count, over the kinds of ports in turn.
int unplugs()
{
    const char* wanted = std::getenv("WEFTIO_UNPLUGS");
    return wanted ? std::atoi(wanted) : 12;
}

/// How long what was on its way took to be flushed. The port is gone at a moment between the two: Linux takes an
/// interface out of its tables, waits for readers, and lets the command end.
struct flushed {
    std::chrono::microseconds after_the_begin, after_the_end; ///< of its removal
};

/// Sends on the port until `unplug` has taken it away.
flushed lose(const std::string& spec, const std::function<void(weftio::port&)>& unplug)
{
    weftio::device device = weftio::device::open("cpu");
    weftio::port port = weftio::port::open(spec);
    weftio::eth_rxq in(port, device, {.packets = 64});
    weftio::eth_txq out(port, device, {.entries = 256});
    weftio::buf_arr frames(port, device, {.count = 8, .buffer_bytes = 64});
    weftio::flow all(port, {}, weftio::flow_action::to(in));
    std::string said;
    weftio::progress_engine progress;
    progress.attach(out,
                    {.on_sent = {}, .on_error = [&](const weftio::send_failure& failure) { said = failure.text; }});
    auto kernel = device.launch(sends_for_ever_kernel, {}, out, frames);
    EXPECT_TRUE(eventually([&] { return out.counters().sent > 500; }));
    clock::time_point failed{}; // seen by a thread of its own: the removal may take longer
    auto begin = clock::now();
    std::thread watch([&] {
        EXPECT_TRUE(eventually([&] { return out.failed(); }));
        failed = clock::now();
    });
    unplug(port);
    auto end = clock::now();
    watch.join();
    EXPECT_TRUE(kernel.wait_for(patience)); // it sees for itself that the queue is in error
    EXPECT_TRUE(port.gone());
    EXPECT_TRUE(eventually([&] {
        weftio::eth_txq_counters sent = out.counters();
        return sent.enqueued == sent.sent + sent.waited + sent.failed + sent.flushed;
    }));
    progress.progress();
    EXPECT_NE(said.find("the port is gone"), std::string::npos) << said;
    EXPECT_THROW(out.reset(), weftio::error);
    weftio::port_counters received = port.counters();
    EXPECT_EQ(received.received, received.delivered + received.held + received.dropped_total());
    auto in_us = [](clock::duration time) { return std::chrono::duration_cast<std::chrono::microseconds>(time); };
    return {in_us(failed - begin), std::max(in_us(failed - end), 0us)};
}

void say(std::vector<flushed> took)
{
    for (auto [member, since] : {std::pair{&flushed::after_the_begin, "begin"}, {&flushed::after_the_end, "end"}}) {
        std::ranges::sort(took, {}, member);
        if (!took.empty())
            fmt::print("{} times; flushed {} us after the {} of the removal in the middle, {} us at most\n",
                       took.size(), (took[took.size() / 2].*member).count(), since, (took.back().*member).count());
    }
}

TEST(Unplug, OfADeviceFlushesWhatIsOnItsWay)
{
    std::vector<flushed> took;
    for (int round = 0; round < unplugs() && !testing::Test::HasFailure(); ++round)
        took.push_back(lose("net_null_unplugged,size=64", [](weftio::port& port) {
            // Between two turns: DPDK wants nobody inside a driver that it removes.
            weftio::software_nic(port).engine().between_turns(
                [] { EXPECT_EQ(rte_eal_hotplug_remove("vdev", "net_null_unplugged"), 0); });
        }));
    say(took);
}

int shell(const char* command)
{
    return std::system(command);
}

TEST(Unplug, OfAnInterfaceFlushesWhatIsOnItsWay)
{
    in_own_network("interfaces that go away", [] {
        std::vector<flushed> took;
        const char* specs[] = {"iface:v1", "net_af_packet_unplugged,iface=v1"};
        for (int round = 0; round < unplugs() && !testing::Test::HasFailure(); ++round) {
            took.push_back(lose(specs[round % 2], [](weftio::port&) { EXPECT_EQ(shell("ip link del v0"), 0); }));
            ASSERT_EQ(shell("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up"), 0);
        }
        say(took);
    });
}

TEST(Unplug, OfAnInterfaceThatIsReplacedByOneOfItsNameIsNoticedToo)
{
    in_own_network("interfaces that go away", [] {
        lose("net_af_packet_replaced,iface=v1",
             [](weftio::port&) { EXPECT_EQ(shell("ip link del v0 && ip link add v0 type veth peer name v1"), 0); });
    });
}

/// With other programs on its core it may wait before each of its turns.
TEST(Unplug, IsNoticedByTheFirstTurnOfAnIdleEngineOnceItIsTime)
{
    in_own_network("interfaces that go away", [] {
        weftio::port port = weftio::port::open("null");
        weftio::dpdk::port_watch watch(weftio::software_nic(port).device().id(), "v1");
        EXPECT_FALSE(watch.has_just_gone(false)); // looks, and not again for 20 ms
        ASSERT_EQ(shell("ip link del v0"), 0);
        std::this_thread::sleep_for(25ms);
        EXPECT_FALSE(watch.has_just_gone(true));
        EXPECT_TRUE(watch.has_just_gone(false));
        EXPECT_TRUE(watch.gone());
        EXPECT_FALSE(watch.has_just_gone(false)) << "a second time";
    });
}

} // namespace
