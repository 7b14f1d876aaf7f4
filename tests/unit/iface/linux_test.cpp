// What a port does to Linux's own use of an interface, and what its way alters.
#include "taken.hpp"

namespace weftio::test {
namespace {

using testing::AllOf, testing::Contains, testing::HasSubstr;

constexpr const char* missed = "what a port does to Linux's use of an interface";

TEST(InterfaceWithAnAddress, IsSharedWithLinuxUnlessXdpIsAskedFor)
{
    in_own_network(missed, [] {
        if (port::open("iface:v1").driver() != "net_af_xdp")
            GTEST_SKIP() << "missed: " << missed << "; AF_XDP is unavailable here";
        for (const char* address : {"10.9.8.1/24", "fd77::1/64"}) {
            shell(std::string("ip address add ") + address + " dev v1");
            {
                const lines_logged told(log_level::info);
                EXPECT_EQ(port::open("iface:v1").driver(), "net_af_packet") << address;
                EXPECT_THAT(told.of_weftio(), Contains(AllOf(HasSubstr("v1 has the address"), HasSubstr("xdp=only"))));
            }
            const lines_logged told(log_level::warning);
            EXPECT_EQ(port::open("iface:v1,xdp=only").driver(), "net_af_xdp") << address;
            EXPECT_THAT(told.of_weftio(), Contains(HasSubstr("Linux receives nothing there")));
            shell("ip address flush dev v1 scope global");
        }
    });
}

TEST(InterfaceOfABridge, IsSharedWithLinux)
{
    in_own_network(missed, [] {
        shell("ip link add br0 type bridge && ip link set v1 master br0");
        EXPECT_EQ(port::open("iface:v1").driver(), "net_af_packet");
    });
}

} // namespace
} // namespace weftio::test
