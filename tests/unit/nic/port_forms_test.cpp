// Every form of a port opens, says what it is, and leaves nothing behind.
#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_xdp.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture_files.hpp"
#include "dpdk/port_spec.hpp"
#include "holdings.hpp"
#include "injected_port.hpp"
#include "own_network.hpp"

namespace weftio::test {
namespace {

/// Opens a port, receives on it if anything is there, and closes it.
void use(const std::string& spec, engine_mode mode)
{
    port opened = port::open(spec, {.mode = mode});
    eth_rxq queue(opened, device::open("cpu"), {.packets = 64});
    flow everything(opened, {}, flow_action::to(queue));
    if (mode == engine_mode::inline_worker)
        opened.turn();
}

void expect_nothing_left_behind(const std::string& spec)
{
    use(spec, engine_mode::thread); // what is made once a process is made now
    holdings before = holdings::now();
    for (int time = 0; time < 50; ++time)
        use(spec, time % 2 ? engine_mode::inline_worker : engine_mode::thread);
    EXPECT_EQ(holdings::now(), before) << spec;
}

std::string name_of(const testing::TestParamInfo<const char*>& info)
{
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
    return name;
}

class PortForm : public testing::TestWithParam<const char*> {};

TEST_P(PortForm, LeavesNothingBehind)
{
    expect_nothing_left_behind(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, PortForm,
                         testing::Values("pcap:builtin", "pcap:tx=/dev/null", "loopback", "null", "net_null5,size=100"),
                         name_of);

class ShortPortForm : public testing::TestWithParam<const char*> {};

TEST_P(ShortPortForm, OpensManyTimesAtATime)
{
    use(GetParam(), engine_mode::thread);
    holdings before = holdings::now();
    {
        std::vector<port> open;
        for (int time = 0; time < 8; ++time)
            open.push_back(port::open(GetParam()));
        EXPECT_EQ(rte_eth_dev_count_avail(), before.dpdk_ports + 8);
    }
    EXPECT_EQ(holdings::now(), before);
}

INSTANTIATE_TEST_SUITE_P(Of, ShortPortForm, testing::Values("pcap:builtin", "pcap:tx=/dev/null", "loopback", "null"),
                         name_of);

TEST(PortForms, LeaveNothingBehindAfterARefusal)
{
    scratch_folder folder;
    std::string cooked = folder.write("cooked.pcap", pcap_file({}, {.link_type = 113}));
    auto refuse_each = [&] {
        for (const std::string& spec : {"pcap:" + cooked, std::string("pcap:/nosuch"), std::string("iface:nosuch0"),
                                        std::string("net_nosuch0"), std::string("net_null6,nosuch=1")})
            error_of([&] { port::open(spec); });
        error_of([] { port::open("pcap:builtin", {.mtu = 5000}); });
    };
    refuse_each();
    holdings before = holdings::now();
    for (int time = 0; time < 50; ++time)
        refuse_each();
    EXPECT_EQ(holdings::now(), before);
}

TEST(PortForms, AreReadAtAnyLength)
{
    const std::string address = "0000:3b:00.0", words(300'000, 'a');
    const dpdk::port_spec parsed = dpdk::parse_port_spec(address + ',' + words);
    EXPECT_TRUE(parsed.candidates.at(0).pci);
    EXPECT_EQ(parsed.candidates.at(0).device, address);
    EXPECT_EQ(parsed.candidates.at(0).arguments, words);
    EXPECT_EQ(error_of([&] { dpdk::parse_port_spec("pcap:rx=" + words); }).code(), errc::not_found);
    EXPECT_EQ(error_of([&] { dpdk::parse_port_spec("net_af_packet0," + words + ",iface=nosuch0"); }).code(),
              errc::not_found);
}

TEST(PortForms, TakeNoNameThatDpdkWouldTakeApart)
{
    const std::string zero("null\0x", 6);
    for (const std::string& spec :
         {std::string("tap:new0,mac=fixed"), std::string("iface:lo,start_queue=1"), std::string(",size=64"), zero}) {
        const error refused = error_of([&] { dpdk::parse_port_spec(spec); });
        EXPECT_EQ(refused.code(), errc::invalid_argument) << spec;
        EXPECT_GT(std::string(refused.what()).size(), spec.size() + 40) << refused.what();
    }
}

TEST(PortForms, SayWhatTheyAre)
{
    port null = port::open("null");
    EXPECT_EQ(null.spec(), "null");
    EXPECT_EQ(null.driver(), "net_null");
    EXPECT_EQ(port::open("pcap:builtin").driver(), "net_pcap");
    EXPECT_EQ(port::open("loopback").driver(), "net_ring");
    EXPECT_FALSE(null.exhausted());
    EXPECT_GT(null.mtu(), 0);
}

TEST(PortForms, ALoopbackCarriesFramesOfTheMtuThatItIsOpenedWith)
{
    constexpr std::uint32_t mtu = 9000, bytes = mtu + 14;
    const port loop = port::open("loopback", {.mtu = mtu});
    EXPECT_EQ(loop.mtu(), mtu);
    EXPECT_EQ(port::open("loopback").mtu(), 1500);
    const device cpu = device::open("cpu");
    const eth_txq out(loop, cpu, {.entries = 64});
    const eth_rxq in(loop, cpu, {.packets = 64, .max_packet_bytes = 9024});
    const flow everything(loop, {}, flow_action::to(in));
    const buf_arr frame(loop, cpu, {.count = 1, .buffer_bytes = bytes});
    auto* const sent = static_cast<std::uint8_t*>(frame.cpu_address(0));
    for (std::uint32_t at = 0; at < bytes; ++at)
        sent[at] = static_cast<std::uint8_t>(at * 7 + at / 256);
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(out.handle(), weftio_dev_buf_get(frame.handle(), 0), bytes,
                                                     WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(out.handle());
    weftio_dev_eth_txq_push(out.handle());
    weftio_u32 count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
    weftio_dev_packet packet;
    ASSERT_EQ(weftio_dev_eth_rxq_packet(in.handle(), first, &packet), WEFTIO_DEV_OK);
    ASSERT_EQ(packet.bytes, bytes);
    EXPECT_EQ(std::memcmp(packet.address, sent, bytes), 0);
}

TEST(PortForms, StayOpenWhileAQueueOrAFlowIsThere)
{
    std::optional<eth_rxq> queue;
    std::optional<flow> everything;
    {
        port null = port::open("net_null8,size=64");
        queue.emplace(null, device::open("cpu"));
        everything.emplace(null, flow_match{}, flow_action::to(*queue));
    }
    EXPECT_TRUE(eventually([&] { return queue->counters().delivered > 0; }));
    queue.reset();
    std::uint16_t id = 0;
    EXPECT_EQ(rte_eth_dev_get_port_by_name("net_null8", &id), 0);
    everything.reset();
    EXPECT_NE(rte_eth_dev_get_port_by_name("net_null8", &id), 0);
}

TEST(InterfacePort, LeavesNothingBehind)
{
    in_own_network("ports on interfaces", [] { expect_nothing_left_behind("iface:v1"); });
}

TEST(InterfacePort, OpensAgainOnAfXdp)
{
    in_own_network("ports on interfaces", [] {
        auto driver_now = [] { return port::open("iface:v1", {.mode = engine_mode::inline_worker}).driver(); };
        if (driver_now() != "net_af_xdp")
            GTEST_SKIP() << "missed: af_xdp opened again; it is unavailable here";
        holdings before = holdings::now();
        for (int time = 0; time < 20; ++time)
            ASSERT_EQ(driver_now(), "net_af_xdp") << time;
        EXPECT_EQ(holdings::now(), before);
    });
}

std::atomic<unsigned> waited_calls{0};

/// Counts the calling thread's calls of recvfrom() and poll() from now on, which then do nothing. It cannot be undone.
void count_waits_of_this_thread()
{
    struct sigaction counts {};
    counts.sa_handler = [](int) { ++waited_calls; };
    ASSERT_EQ(sigaction(SIGSYS, &counts, nullptr), 0);
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvfrom, 1, 0),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
#ifdef SYS_poll
    filter[2].k = SYS_poll;
#endif
    const sock_fprog program{std::size(filter), filter};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(InterfacePort, LooksAtAnIdleQueueOfAVethWithoutASystemCall)
{
    in_own_network("looks at an idle interface", [] {
        port opened = port::open("iface:v1", {.mode = engine_mode::inline_worker});
        if (opened.driver() != "net_af_xdp")
            GTEST_SKIP() << "missed: looks at an idle af_xdp queue; it is unavailable here";
        eth_rxq queue(opened, device::open("cpu"), {.packets = 64});
        flow everything(opened, {}, flow_action::to(queue));
        count_waits_of_this_thread();
        for (int each = 0; each < 1000; ++each)
            opened.turn();
        EXPECT_EQ(waited_calls, 0u);
    });
}

/// A socket that has queue 0 of v1, as the kernel still has it for a while when a port has been closed.
class xdp_socket {
 public:
    xdp_socket() : socket_(socket(AF_XDP, SOCK_RAW, 0))
    {
        xdp_umem_reg memory{}; // by name: later kernels have more fields
        memory.addr = reinterpret_cast<std::uintptr_t>(frames_.data());
        memory.len = frames_.size() * sizeof(page);
        memory.chunk_size = sizeof(page);
        const int entries = 4;
        EXPECT_EQ(setsockopt(socket_, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory), 0);
        for (int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING})
            EXPECT_EQ(setsockopt(socket_, SOL_XDP, ring, &entries, sizeof entries), 0);
    }
    ~xdp_socket() { close(socket_); }
    bool take() const
    {
        const sockaddr_xdp address{AF_XDP, XDP_COPY, if_nametoindex("v1"), 0, 0};
        return bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }

 private:
    struct alignas(4096) page {
        std::array<std::byte, 4096> bytes{};
    };
    std::vector<page> frames_{4};
    int socket_;
};

TEST(InterfacePort, WaitsForAQueueThatTheKernelStillHasOfThePortBefore)
{
    in_own_network("an af_xdp queue that comes back late", [] {
        auto driver_now = [] { return port::open("iface:v1", {.mode = engine_mode::inline_worker}).driver(); };
        if (driver_now() != "net_af_xdp")
            GTEST_SKIP() << "missed: an af_xdp queue that comes back late; af_xdp is unavailable here";
        auto holder = std::make_unique<xdp_socket>();
        ASSERT_TRUE(eventually([&] { return holder->take(); }));
        std::jthread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            holder.reset();
        });
        EXPECT_EQ(driver_now(), "net_af_xdp");
    });
}

TEST(InterfacePort, SaysWhyItFallsBackToAfPacket)
{
    in_own_network("ports on interfaces", [] {
        auto driver_now = [] { return port::open("iface:v1", {.mode = engine_mode::inline_worker}).driver(); };
        if (driver_now() != "net_af_xdp")
            GTEST_SKIP() << "missed: why a port falls back from af_xdp; it is unavailable here";
        const xdp_socket holder;
        ASSERT_TRUE(eventually([&] { return holder.take(); }));
        std::vector<std::string> lines;
        set_log_sink([&](log_level, std::string_view line) { lines.emplace_back(line); });
        EXPECT_EQ(driver_now(), "net_af_packet");
        set_log_sink({});
        const auto logged = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("falling back to net_af_packet") != std::string::npos;
        });
        ASSERT_NE(logged, lines.end());
        EXPECT_TRUE(logged->starts_with("weftio: port iface:v1: net_af_xdp")) << *logged;
        EXPECT_NE(logged->find(" failed ("), std::string::npos) << *logged; // why, as an error would say it
        EXPECT_EQ(logged->rfind("weftio: "), 0u) << *logged;
    });
}

/// From one end of the pair to the other, 32 at a time, `count` in all. Returns how many came as they were sent.
std::uint32_t cross(const port& from, const port& to, std::uint32_t count)
{
    device cpu = device::open("cpu");
    eth_txq out(from, cpu);
    buf_arr frames(from, cpu, {.count = 32, .buffer_bytes = 60});
    eth_rxq in(to, cpu);
    flow numbered(to, {.ether_type = 0x88b5}, flow_action::to(in));
    fake_kernel kernel(in);
    for (std::uint32_t at = 0; at < 32; ++at)
        std::ranges::copy(numbered_frame(at), static_cast<std::uint8_t*>(frames.cpu_address(at)));
    std::uint32_t came = 0;
    for (std::uint32_t sent = 0; sent < count && came == sent; sent += 32) {
        for (std::uint32_t at = 0; at < 32; ++at)
            weftio_dev_eth_txq_send_enqueue_strong(out.handle(), weftio_dev_buf_get(frames.handle(), at), 60,
                                                   WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(out.handle());
        weftio_dev_eth_txq_push(out.handle());
        eventually([&] {
            for (const weftio_dev_packet& packet : kernel.receive())
                came += is_intact(packet) && number_of(packet) == came % 32;
            kernel.release(kernel.held());
            return came == sent + 32;
        });
    }
    return came;
}

TEST(InterfacePort, DeliversMoreThanItsPoolHoldsToAThreadThatDpdkDoesNotKnow)
{
    in_own_network("ports on interfaces", [] {
        port peer = port::open("net_af_packet7,iface=v0", {.mode = engine_mode::inline_worker});
        port near = port::open("iface:v1", {.mode = engine_mode::inline_worker});
        if (near.driver() != "net_af_xdp")
            GTEST_SKIP() << "missed: a long stream through af_xdp; it is unavailable here";
        std::uint32_t came = 0;
        std::thread([&] { came = cross(peer, near, 40'000); }).join();
        EXPECT_EQ(came, 40'000u);
    });
}

TEST(InterfacePort, OpenedAgainReceivesAndSends)
{
    in_own_network("ports on interfaces", [] {
        port peer = port::open("net_af_packet7,iface=v0", {.mode = engine_mode::inline_worker});
        for (const char* spec : {"iface:v1", "net_af_packet8,iface=v1", "iface:v1"})
            for (int time = 0; time < 3; ++time) {
                port near = port::open(spec, {.mode = engine_mode::inline_worker});
                ASSERT_EQ(cross(peer, near, 3200), 3200u) << near.driver() << ", opened " << time << " times before";
                ASSERT_EQ(cross(near, peer, 3200), 3200u) << near.driver() << ", opened " << time << " times before";
            }
    });
}

TEST(InterfacePort, CopiesNothingOnAfPacketWhileSlotsAreFree)
{
    in_own_network("ports on interfaces", [] {
        port peer = port::open("net_af_packet7,iface=v0", {.mode = engine_mode::inline_worker});
        port near = port::open("net_af_packet8,iface=v1", {.mode = engine_mode::inline_worker});
        EXPECT_EQ(cross(peer, near, 3200), 3200u);
        EXPECT_EQ(near.counters().copied_bytes, 0u);
    });
}

TEST(InterfacePort, PrintsNothing)
{
    in_own_network("ports on interfaces", [] {
        std::vector<std::string> lines;
        set_log_sink([&](log_level, std::string_view line) { lines.emplace_back(line); });
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        std::string driver = port::open("iface:v1").driver();
        EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
        set_log_sink({});
        auto from_libbpf = [](const std::string& line) { return line.starts_with("libbpf: "); };
        EXPECT_TRUE(driver != "net_af_xdp" || std::any_of(lines.begin(), lines.end(), from_libbpf));
    });
}

TEST(InterfacePort, ByDevargsLeavesNothingBehind)
{
    in_own_network("ports on interfaces", [] { expect_nothing_left_behind("net_af_packet3,iface=v1"); });
}

TEST(TapPort, LeavesNothingBehind)
{
    if (::access("/dev/net/tun", R_OK | W_OK) != 0)
        GTEST_SKIP() << "missed: tap ports; /dev/net/tun is not there or not ours";
    in_own_network("ports on interfaces", [] { expect_nothing_left_behind("tap:weftap0"); });
}

TEST(InterfacePort, IsRefusedWhileAnotherPortHasTheInterface)
{
    in_own_network("ports on interfaces", [] {
        std::optional<port> first(port::open("iface:v1"));
        for (const char* spec : {"iface:v1", "net_af_packet4,iface=v1", "net_af_xdp4,iface=v1"}) {
            error refused = error_of([&] { port::open(spec); });
            EXPECT_EQ(refused.code(), errc::in_use) << refused.what();
            EXPECT_NE(std::string(refused.what()).find("v1"), std::string::npos) << refused.what();
            EXPECT_NE(std::string(refused.what()).find("close that port first"), std::string::npos) << refused.what();
        }
        port other = port::open("iface:v0");
        first.reset();
        EXPECT_EQ(port::open("iface:v1").spec(), "iface:v1");
    });
}

TEST(InterfacePort, OfTheSameNameInAnotherNetworkIsAnotherInterface)
{
    in_own_network("ports on interfaces", [] {
        port here = port::open("net_af_packet5,iface=v1");
        in_own_network("ports on interfaces",
                       [] { EXPECT_EQ(port::open("net_af_packet6,iface=v1").driver(), "net_af_packet"); });
    });
}

} // namespace
} // namespace weftio::test
