// Devices that the application removes, and what comes in their place.
#define ALLOW_EXPERIMENTAL_API // rte_dev_event_callback_process(), which DPDK has had since 2018
#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "kernels.h"
#include "stage.hpp"

WEFTIO_DEFINE_KERNEL(sends_a_bad_one_last, "kernels.h");

namespace {

using namespace std::chrono_literals;
using weftio::test::patience, weftio::test::stage;

const weftio::port_options inline_mode{.mode = weftio::engine_mode::inline_worker};

/// The application's own port, which counts as used while it is started.
class own_port {
 public:
    explicit own_port(const std::string& name) : name_(name)
    {
        EXPECT_EQ(rte_eal_hotplug_add("vdev", name.c_str(), "size=64"), 0);
        EXPECT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &id_), 0);
    }
    own_port(const own_port&) = delete;
    own_port& operator=(const own_port&) = delete;
    ~own_port() { EXPECT_EQ(rte_eal_hotplug_remove("vdev", name_.c_str()), 0); }

    std::uint16_t id() const { return id_; }
    bool exists() const
    {
        std::uint16_t id = 0;
        return rte_eth_dev_get_port_by_name(name_.c_str(), &id) == 0 && id == id_;
    }

 private:
    std::string name_;
    std::uint16_t id_ = 0;
};

class RemovedDevice : public testing::TestWithParam<const char*> {};

TEST_P(RemovedDevice, LeavesItsNumberToAnotherPortThatClosingDoesNotTouch)
{
    auto all = std::make_unique<stage>("net_null_removed,size=64", inline_mode);
    std::uint16_t number = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_null_removed", &number), 0);
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", "net_null_removed"), 0);
    own_port other(GetParam());
    ASSERT_EQ(other.id(), number);
    all->port.turn();
    EXPECT_TRUE(all->port.gone());
    EXPECT_EQ(all->port.counters().received, 0u) << "from the application's port";
    all.reset();
    EXPECT_TRUE(other.exists());
}

INSTANTIATE_TEST_SUITE_P(WithTheSame, RemovedDevice, testing::Values("net_null_another", "net_null_removed"),
                         [](const auto& info) { return std::string(info.param).substr(9); });

/// As vfio does it, which keeps a device that is unplugged until its port is closed.
TEST(UnpluggedDevices, AreGoneForTheirOwnPortOnlyAndForNoneThatFollows)
{
    auto turns_to_gone = [](weftio::port& port) {
        return weftio::test::eventually([&] {
            port.turn();
            return port.gone();
        });
    };
    {
        stage unplugged("net_null_unplugged", inline_mode), neighbor("net_null_neighbor", inline_mode);
        rte_dev_event_callback_process("net_null_unplugged", RTE_DEV_EVENT_REMOVE);
        EXPECT_TRUE(turns_to_gone(unplugged.port));
        EXPECT_TRUE(neighbor.send(8));
        EXPECT_FALSE(neighbor.port.gone());
    }
    stage again("net_null_unplugged", inline_mode);
    EXPECT_TRUE(again.send(8));
    EXPECT_FALSE(again.port.gone());
}

TEST(RemovedDevices, DoNotHinderThePortsThatFollow)
{
    stage first("net_null_first", inline_mode);
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", "net_null_first"), 0);
    stage second("net_null_first", inline_mode); // while the first is open
    EXPECT_TRUE(second.send(8));
    first.port.turn();
    EXPECT_TRUE(first.port.gone());
    EXPECT_FALSE(second.port.gone());
    EXPECT_THROW(weftio::port::open("net_null_first"), weftio::error) << "two ports on one device";
}

/// Also if the peer's address has its MAC, so that nobody is asked.
TEST(RemovedDevices, ConnectNoQueuePair)
{
    const weftio::device cpu = weftio::device::open("cpu");
    weftio::port port = weftio::port::open("net_null_leaves", inline_mode),
                 peers = weftio::port::open("loopback", inline_mode);
    const weftio::rdma_device here(port, {.address = "10.0.0.1", .application_turns = true}),
        there(peers, {.address = "10.0.0.2", .application_turns = true});
    weftio::rdma_queue queue(here, cpu), peer(there, cpu);
    const weftio::rdma_address address = peer.address();
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", "net_null_leaves"), 0);
    port.turn();
    ASSERT_TRUE(port.gone());
    try {
        queue.connect(address);
        FAIL() << "it is connected";
    } catch (const weftio::error& refused) {
        EXPECT_EQ(refused.code(), weftio::errc::closed) << refused.what();
        EXPECT_NE(std::string(refused.what()).find("port net_null_leaves is gone"), std::string::npos)
            << refused.what();
    }
    EXPECT_EQ(queue.state(), weftio::rdma_state::init);
}

/// More than its ring takes, so that a burst is half sent. Nobody receives.
TEST(RemovedDevices, LoseNoEntryOfABurstThatIsHalfSent)
{
    for (bool in_error : {false, true}) {
        weftio::device device = weftio::device::open("cpu");
        weftio::port port = weftio::port::open("net_ring_removed", inline_mode);
        weftio::eth_txq out(port, device, {.entries = 2048});
        weftio::buf_arr buffers(port, device, {.count = 8, .buffer_bytes = 64});
        // The ring takes 1,023. In error: a burst of 40 that begins in front of its end, and a bad entry in the same
        // push.
        const std::uint32_t frames = in_error ? 1000 : 2000, more = in_error ? 40 : 0;
        for (auto [count, bad] : {std::pair{frames, 0u}, {more, in_error ? 1u : 0u}})
            ASSERT_TRUE(device.launch(sends_a_bad_one_last_kernel, {}, out, buffers, count, bad).wait_for(patience));
        for (int turn = 0; turn < 100; ++turn)
            port.turn();
        EXPECT_EQ(out.failed(), in_error);
        ASSERT_EQ(rte_eal_hotplug_remove("vdev", "net_ring_removed"), 0);
        port.turn();
        port.turn();
        EXPECT_TRUE(port.gone());
        const weftio::eth_txq_counters sent = out.counters();
        EXPECT_EQ(sent.enqueued, frames + more + in_error);
        EXPECT_EQ(sent.enqueued, sent.sent + sent.waited + sent.failed + sent.flushed)
            << sent.sent << " sent, " << sent.failed << " failed, " << sent.flushed << " flushed";
        EXPECT_GT(sent.flushed, 0u);
    }
}

} // namespace
