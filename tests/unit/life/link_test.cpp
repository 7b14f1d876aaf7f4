// What happens beside a port does not end its traffic: a link that goes down and comes back, a child process that ends.
#include "kernels.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "own_network.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(sends_for_ever, "kernels.h");

namespace {

using namespace std::chrono_literals;
using weftio::test::eventually, weftio::test::in_own_network, weftio::test::patience;

/// A kernel sends from v1; a second port receives on v0 what arrives there.
struct busy_link {
    explicit busy_link(const char* spec) : port(weftio::port::open(spec))
    {
        kernel = device.launch(sends_for_ever_kernel, {}, out, frames);
        EXPECT_TRUE(arrives()) << "before anything has happened";
    }
    /// Whether frames arrive from now on: more than can be on their way.
    bool arrives() const
    {
        std::uint64_t before = peer.counters().received;
        return eventually([&] { return peer.counters().received > before + 10'000; });
    }
    void expect_a_true_account()
    {
        kernel.stop();
        EXPECT_TRUE(kernel.wait_for(patience));
        EXPECT_TRUE(eventually([&] {
            weftio::eth_txq_counters sent = out.counters();
            return sent.enqueued == sent.sent + sent.waited + sent.failed + sent.flushed;
        }));
        EXPECT_EQ(out.counters().failed, 0u);
        EXPECT_FALSE(port.gone());
    }

    weftio::device device = weftio::device::open("cpu");
    weftio::port peer = weftio::port::open("net_af_packet_far,iface=v0");
    weftio::port port;
    weftio::eth_rxq in{peer, device, {.packets = 64}};
    weftio::flow none{peer, {}, weftio::flow_action::drop()};
    weftio::eth_txq out{port, device, {.entries = 256}};
    weftio::buf_arr frames{port, device, {.count = 8, .buffer_bytes = 64}};
    weftio::running_kernel kernel;
};

class Link : public testing::TestWithParam<const char*> {};

TEST_P(Link, ThatFlapsCarriesTrafficAfterwards)
{
    in_own_network("what happens beside an interface", [] {
        busy_link link(GetParam());
        for (int time = 0; time < 5; ++time) {
            ASSERT_EQ(std::system("ip link set v1 down && ip link set v1 up"), 0);
            EXPECT_TRUE(link.arrives()) << GetParam() << ", time " << time;
        }
        ASSERT_EQ(std::system("ip link set v1 down && ip link set v1 name v2 && ip link set v2 up"),
                  0); // nor is it gone under another name
        EXPECT_TRUE(link.arrives()) << GetParam() << ", renamed";
        link.expect_a_true_account();
    });
}

TEST_P(Link, IsNotHurtByAChildThatExits)
{
    in_own_network("what happens beside an interface", [] {
        busy_link link(GetParam());
        for (int time = 0; time < 3; ++time) {
            pid_t child = fork();
            if (child == 0)
                std::exit(0); // with all that runs at the end of a program
            int status = -1;
            ASSERT_TRUE(eventually([&] { return waitpid(child, &status, WNOHANG) == child; }))
                << "the child does not end";
            EXPECT_TRUE(WIFEXITED(status))
                << "the child ended with signal " << WTERMSIG(status); // a sanitizer may not like its leaks
            EXPECT_TRUE(link.arrives()) << GetParam() << ", time " << time;
        }
        link.expect_a_true_account();
    });
}

INSTANTIATE_TEST_SUITE_P(Of, Link, testing::Values("iface:v1", "net_af_packet_near,iface=v1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "AfXdp" : "AfPacket"); });

} // namespace
