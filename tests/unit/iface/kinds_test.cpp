// Kinds of interfaces: each receives all datagrams, or is refused in one sentence.
#include "taken.hpp"

namespace weftio::test {
namespace {

using testing::AllOf, testing::HasSubstr;

constexpr const char* missed = "a kind of interface";

struct kind {
    const char* name;
    const char* made_by; ///< command that makes x; v0 and v1 are a veth pair
    const char* sender;  ///< from which frames reach x
    const char* driver;
};

void PrintTo(const kind& of, std::ostream* out)
{
    *out << of.name;
}

class InterfaceKind : public testing::TestWithParam<kind> {};
INSTANTIATE_TEST_SUITE_P(
    Of, InterfaceKind,
    testing::Values(
        kind{"Macvlan", "ip link add link v1 name x address 02:00:00:00:00:01 type macvlan", "v0", "net_af_packet"},
        kind{"Macvtap", "ip link add link v1 name x address 02:00:00:00:00:01 type macvtap", "v0", "net_af_packet"},
        kind{"Ipvlan", "ip link add link v1 name x type ipvlan mode l2", "v0", "net_af_packet"},
        kind{"Vlan", "ip link add link v1 name x type vlan id 1", "v0", "net_af_packet"},
        kind{"Bridge", "ip link add x address 02:00:00:00:00:01 type bridge && ip link set v1 master x", "v0",
             "net_af_packet"},
        kind{"Bond", "ip link add x type bond && ip link set v1 down && ip link set v1 master x", "v0",
             "net_af_packet"},
        kind{"VethWithLongPackets", "ip link add x mtu 9000 type veth peer name y mtu 9000 && ip link set y up", "y",
             "net_af_packet"},
        kind{"VethWithPacketsOfAlmostAPage",
             "ip link add x mtu 3500 type veth peer name y mtu 3500 && ip link set y up", "y", "net_af_xdp"},
        kind{"VethOf64Queues",
             "ip link add x numrxqueues 64 numtxqueues 64 type veth peer name y numrxqueues 64 numtxqueues 64 && ip "
             "link set y up",
             "y", "net_af_packet"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(InterfaceKind, ReceivesAllDatagrams)
{
    in_own_network(missed, [] {
        if (std::system((std::string(GetParam().made_by) + " && ip link set x up").c_str()) != 0)
            GTEST_SKIP() << "missed: an interface of the kind " << GetParam().name << "; it cannot be made here";
        port opened = port::open("iface:x", {.mode = engine_mode::inline_worker});
        if (std::string_view(GetParam().driver) == "net_af_packet") {
            EXPECT_EQ(opened.driver(), "net_af_packet");
        }
        const flow udp(opened, {.ip_protocol = 17}, flow_action::drop());
        const other_end sender(GetParam().sender);
        for (unsigned each = 0; each < 400; ++each)
            sender.send(udp_frame(4000 + each % 97));
        EXPECT_EQ(met(opened, udp, 400), 400u) << opened.driver();
    });
}

TEST(InterfaceKind, WithoutEthernetHeadersIsRefused)
{
    in_own_network(missed, [] {
        if (std::system("ip tuntap add x mode tun") != 0)
            GTEST_SKIP() << "missed: an interface without Ethernet headers; tun cannot be made here";
        for (const char* spec : {"iface:x", "iface:x,xdp=only", "net_af_packet0,iface=x"})
            try {
                port::open(spec);
                ADD_FAILURE() << spec << " was opened";
            } catch (const error& refused) {
                EXPECT_EQ(refused.code(), errc::not_supported) << spec;
                EXPECT_THAT(refused.what(), AllOf(HasSubstr(spec), HasSubstr("the frames of x have no Ethernet header "
                                                                             "(its address type is 65534)")));
            }
    });
}

TEST(InterfaceKind, InAnotherNamespaceIsNotFoundAndTheErrorNamesTheCommand)
{
    std::string refusal;
    in_own_network(missed, [&] {
        std::thread([&] {
            ASSERT_EQ(unshare(CLONE_NEWNET), 0);
            try {
                port::open("iface:v1");
            } catch (const error& refused) {
                EXPECT_EQ(refused.code(), errc::not_found);
                refusal = refused.what();
            }
        }).join();
        EXPECT_THAT(refusal, AllOf(HasSubstr("iface:v1: no such interface (have: lo)"), HasSubstr("ip netns exec")));
    });
}

/// The number of datagrams that a port over AF_PACKET receives of those sent on its own interface.
std::uint64_t received_of_200_sent_on(const char* interface)
{
    port opened = port::open(std::string("net_af_packet_own,iface=") + interface, {.mode = engine_mode::inline_worker});
    const flow udp(opened, {.ip_protocol = 17}, flow_action::drop());
    const other_end same(interface);
    for (unsigned each = 0; each < 200; ++each)
        same.send(udp_frame(4000));
    other_end(interface).send(frame_of({0x88, 0xb5})); // the last one, so that nothing is still on its way
    const flow last(opened, {.ether_type = 0x88b5}, flow_action::drop());
    met(opened, last, 1);
    return udp.hits().packets;
}

TEST(InterfaceKind, ShowsWhatLinuxSendsOverAfPacketAndOnLoEachFrameTwice)
{
    in_own_network(missed, [] {
        EXPECT_EQ(received_of_200_sent_on("v1"), 200u);
        EXPECT_EQ(received_of_200_sent_on("lo"), 400u);
    });
}

} // namespace
} // namespace weftio::test
