// A port leaves the interface behind it as it was.
#include <sys/ioctl.h>

#include "own_network.hpp"
#include "peer.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

struct settings {
    int mtu = 0;
    bool promiscuous = false;

    static settings of(const char* interface)
    {
        const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ifreq flags{};
        std::string(interface).copy(flags.ifr_name, IFNAMSIZ - 1);
        ifreq mtu = flags;
        EXPECT_EQ(::ioctl(socket, SIOCGIFFLAGS, &flags), 0);
        EXPECT_EQ(::ioctl(socket, SIOCGIFMTU, &mtu), 0);
        ::close(socket);
        return {mtu.ifr_mtu, (flags.ifr_flags & IFF_PROMISC) != 0};
    }
    bool operator==(const settings&) const = default;
};

void PrintTo(const settings& of, std::ostream* out)
{
    *out << "MTU " << of.mtu << (of.promiscuous ? ", promiscuous" : "");
}

constexpr const char* missed = "what a port leaves behind at an interface";

class Settings : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, Settings, testing::Values("iface:v1", "net_af_packet_settings,iface=v1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "AfXdp" : "AfPacket"); });

TEST_P(Settings, AreBackWhenThePortHasClosed)
{
    in_own_network(missed, [] {
        const settings before = settings::of("v1");
        {
            const port open = port::open(GetParam(), {.mtu = 1400});
            EXPECT_EQ(settings::of("v1"), (settings{1400, true}));
        }
        EXPECT_EQ(settings::of("v1"), before);
    });
}

TEST_P(Settings, OfAnInterfaceThatWasPromiscuousStay)
{
    in_own_network(missed, [] {
        shell("ip link set v1 promisc on mtu 1450");
        port::open(GetParam());
        EXPECT_EQ(settings::of("v1"), (settings{1450, true}));
    });
}

TEST_P(Settings, ThatAnotherProgramMadeMeanwhileStay)
{
    in_own_network(missed, [] {
        {
            const port open = port::open(GetParam(), {.mtu = 1400});
            shell("ip link set v1 mtu 1300");
        }
        EXPECT_EQ(settings::of("v1"), (settings{1300, false}));
        shell("ip link set v1 promisc on");
        {
            const port open = port::open(GetParam());
            shell("ip link set v1 promisc off");
        }
        EXPECT_EQ(settings::of("v1"), (settings{1300, false}));
    });
}

TEST_P(Settings, AreBackAfterARefusal)
{
    in_own_network(missed, [] {
        const settings before = settings::of("v1");
        error_of([] { port::open(GetParam(), {.realtime = 100, .mtu = 1400}); });
        EXPECT_EQ(settings::of("v1"), before);
    });
}

} // namespace
} // namespace weftio::test
