// The XDP hook of an interface: another program's is never replaced or detached, and the loss of ours is reported.
#include <sys/mount.h>

#include <filesystem>

#include "taken.hpp"

namespace weftio::test {
namespace {

using testing::Contains, testing::AllOf, testing::HasSubstr;

constexpr const char* missed = "XDP programs of others";

/// Runs `body` in a network of its own if a foreign program can be attached there and AF_XDP works.
void with_foreign_program(const std::function<void(const foreign_program&)>& body)
{
    const foreign_program foreign;
    if (foreign.file().empty())
        GTEST_SKIP() << "missed: " << missed << "; clang, which compiles one, is not installed";
    in_own_network(missed, [&] {
        if (port::open("iface:v1", {.mode = engine_mode::inline_worker}).driver() != "net_af_xdp")
            GTEST_SKIP() << "missed: " << missed << "; AF_XDP is unavailable here";
        body(foreign);
    });
}

class ForeignProgram : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(In, ForeignProgram, testing::Values("xdpdrv", "xdpgeneric"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ForeignProgram, StaysWhileAPortIsOpenAndAfterwards)
{
    with_foreign_program([](const foreign_program& foreign) {
        foreign.attach("v1", GetParam());
        const std::string before = program_on("v1");
        ASSERT_NE(before, "");
        const lines_logged warnings(log_level::warning);
        {
            const port opened = port::open("iface:v1");
            EXPECT_EQ(opened.driver(), "net_af_packet");
            EXPECT_EQ(program_on("v1"), before);
        }
        EXPECT_EQ(program_on("v1"), before);
        EXPECT_THAT(warnings.of_weftio(),
                    Contains(AllOf(HasSubstr("another program has an XDP program on v1"), HasSubstr("name pass"),
                                   HasSubstr("falling back to net_af_packet"))));
    });
}

TEST_P(ForeignProgram, RefusesAPortThatMustBeAfXdp)
{
    with_foreign_program([](const foreign_program& foreign) {
        foreign.attach("v1", GetParam());
        const std::string before = program_on("v1");
        for (const char* spec : {"iface:v1,xdp=only", "net_af_xdp_hook,iface=v1"}) {
            try {
                port::open(spec);
                ADD_FAILURE() << spec << " was opened";
            } catch (const error& refused) {
                EXPECT_EQ(refused.code(), errc::in_use) << refused.what();
                EXPECT_THAT(refused.what(), AllOf(HasSubstr("name pass"), HasSubstr("ip link set v1 xdp off")));
            }
            EXPECT_EQ(program_on("v1"), before) << spec;
        }
    });
}

/// Until the port has noticed, and said, that it receives nothing any more.
void expect_end_of(const port& port, const lines_logged& errors)
{
    EXPECT_TRUE(eventually([&] { return port.gone(); }));
    EXPECT_TRUE(eventually([&] { return !errors.of_weftio().empty(); }));
    EXPECT_THAT(errors.of_weftio(), Contains(HasSubstr("another program has detached or replaced its XDP program")));
}

TEST(OwnProgram, ThatIsDetachedMeanwhileEndsThePort)
{
    with_foreign_program([](const foreign_program&) {
        const lines_logged errors(log_level::error);
        const port opened = port::open("iface:v1");
        ASSERT_NE(program_on("v1"), "");
        shell("ip link set v1 promisc on && ip link set v1 promisc off"); // other news of the interface end nothing
        EXPECT_FALSE(opened.gone());
        shell("ip link set v1 xdp off");
        expect_end_of(opened, errors);
    });
}

TEST(OwnProgram, ThatIsReplacedMeanwhileEndsThePortAndTheNewOneStays)
{
    with_foreign_program([](const foreign_program& foreign) {
        std::string before;
        {
            const lines_logged errors(log_level::error);
            const port opened = port::open("iface:v1");
            foreign.attach("v1");
            before = program_on("v1");
            expect_end_of(opened, errors);
        }
        EXPECT_NE(before, "");
        EXPECT_EQ(program_on("v1"), before) << "after the port has closed";
    });
}

TEST(OwnProgram, IsGoneWithItsPort)
{
    with_foreign_program([](const foreign_program&) {
        for (int time = 0; time < 3; ++time) {
            std::optional<port> opened(port::open("iface:v1"));
            EXPECT_EQ(opened->driver(), "net_af_xdp");
            EXPECT_NE(program_on("v1"), "");
            opened.reset();
            EXPECT_EQ(program_on("v1"), "");
        }
    });
}

/// With a file system for BPF, as most machines have, libxdp attaches a dispatcher, which has files there.
TEST(OwnProgram, IsGoneWithItsPortWhereLibxdpAttachesItsDispatcher)
{
    with_foreign_program([](const foreign_program& foreign) {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("bpf", "/sys/fs/bpf", "bpf", 0, nullptr) != 0)
            GTEST_SKIP() << "missed: libxdp's dispatcher; a file system for BPF cannot be mounted";
        for (int time = 0; time < 2; ++time) {
            std::optional<port> opened(port::open("iface:v1", {.mode = engine_mode::inline_worker}));
            EXPECT_EQ(opened->driver(), "net_af_xdp");
            if (output_of("ip -d link show v1 | grep -o xdp_dispatcher").empty())
                GTEST_SKIP() << "missed: libxdp's dispatcher; libxdp does not use it with this kernel";
            opened.reset();
            EXPECT_EQ(program_on("v1"), "");
            EXPECT_EQ(output_of("find /sys/fs/bpf/xdp -name 'dispatch-*'"), "");
        }
        std::optional<port> opened(port::open("iface:v1", {.mode = engine_mode::inline_worker}));
        foreign.attach("v1");
        const std::string others = program_on("v1");
        opened.reset();
        EXPECT_EQ(program_on("v1"), others);
    });
}

} // namespace
} // namespace weftio::test
