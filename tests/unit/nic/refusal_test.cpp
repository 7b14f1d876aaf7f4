// What set-up refuses: the right code, and a sentence with the value and what to do about it.
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "capture_files.hpp"
#include "injected_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

/// A refused call: `value` and `advice` must be in the text.
struct refusal {
    const char* name; ///< of the case
    std::string spec;
    errc code;
    std::string value;
    std::string advice;
    port_options options{};
};

void PrintTo(const refusal& tried, std::ostream* out)
{
    *out << tried.spec;
}

void expect_refusal(const error& refused, const refusal& expected)
{
    std::string text = refused.what();
    EXPECT_EQ(refused.code(), expected.code) << text;
    EXPECT_TRUE(text.starts_with("weftio: ")) << text;
    EXPECT_THAT(text, HasSubstr(expected.value));
    EXPECT_THAT(text, HasSubstr(expected.advice));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

const scratch_folder& folder()
{
    static const scratch_folder instance;
    return instance;
}

std::vector<refusal> spec_refusals()
{
    std::string cooked = folder().write("cooked.pcap", pcap_file({}, {.link_type = 113}));
    std::string cooked_ng = folder().write("cooked.pcapng", pcapng_file({}, 113));
    std::string text = folder().write("text.pcap", frames::bytes(100, 'x'));
    std::string empty = folder().write("empty.pcap", {});
    std::string comma = folder().write("a,b.pcap", pcap_file({}));
    std::string missing = folder() / "missing.pcap", unwritable = folder() / "no/such/out.pcap";
    std::string pipe = folder() / "pipe";
    mkfifo(pipe.c_str(), 0600);
    return {
        {"empty", "", errc::invalid_argument, "\"\"", "write pcap:FILE"},
        {"unknown_form", "bogus:thing", errc::invalid_argument, "bogus:thing", "write pcap:FILE"},
        {"spaces", "two words", errc::invalid_argument, "two words", "write pcap:FILE"},
        {"no_file", "pcap:", errc::invalid_argument, "pcap:", "write pcap:FILE"},
        {"no_files", "pcap:rx=,tx=", errc::invalid_argument, "pcap:rx=,tx=", "write pcap:FILE"},
        {"missing_file", "pcap:" + missing, errc::not_found, missing, "name an existing capture"},
        {"missing_rx_file", "pcap:rx=" + missing + ",tx=/dev/null", errc::not_found, missing,
         "name an existing capture"},
        {"unwritable", "pcap:tx=" + unwritable, errc::not_found, unwritable, "No such file or directory"},
        {"comma", "pcap:" + comma, errc::invalid_argument, comma, "use another name"},
        {"directory", "pcap:/tmp", errc::invalid_argument, "a directory", "name a capture file"},
        {"pipe", "pcap:" + pipe, errc::invalid_argument, pipe, "name a capture file"},
        {"empty_file", "pcap:" + empty, errc::invalid_argument, empty, "capinfos"},
        {"wrong_magic", "pcap:" + text, errc::invalid_argument, text, "capinfos"},
        {"not_ethernet", "pcap:" + cooked, errc::not_supported, "113", "convert it"},
        {"not_ethernet_ng", "pcap:" + cooked_ng, errc::not_supported, "113", "convert it"},
        {"no_interface", "iface:", errc::invalid_argument, "iface:", "name one of"},
        {"missing_interface", "iface:nosuch0", errc::not_found, "nosuch0", "ip link add nosuch0"},
        {"long_interface", "iface:abcdefghijklmnop", errc::invalid_argument, "abcdefghijklmnop", "name one of"},
        {"missing_devargs_interface", "net_af_packet7,iface=nosuch0", errc::not_found, "nosuch0",
         "ip link add nosuch0"},
        {"no_devargs_interface", "net_af_packet8", errc::invalid_argument, "net_af_packet8",
         "check the driver's arguments"},
        {"tap_without_name", "tap:", errc::invalid_argument, "tap:", "1 to 15 characters"},
        {"tap_in_use", "tap:lo", errc::in_use, "lo", "choose another name"},
        {"unknown_driver", "net_nosuch0", errc::not_found, "net_nosuch0", "install the drivers that belong to /"},
        {"unknown_argument", "net_null9,nosuch=1", errc::invalid_argument, "net_null9,nosuch=1",
         "check the driver's arguments"},
        {"missing_pci", "0000:ff:1f.7", errc::not_found, "0000:ff:1f.7", "check the driver's arguments"},
    };
}

std::vector<refusal> option_refusals()
{
    return {
        {"mtu_of_a_driver_without", "pcap:builtin", errc::not_supported, "mtu is 5000", "set mtu to 0", {.mtu = 5000}},
        {"mtu_of_1", "null", errc::invalid_argument, "mtu is 1;", "68 to 16362", {.mtu = 1}},
        {"mtu_of_67", "null", errc::invalid_argument, "mtu is 67;", "68 to 16362", {.mtu = 67}},
        {"mtu_of_65535", "null", errc::invalid_argument, "mtu is 65535;", "68 to 16362", {.mtu = 65535}},
        {"mtu_of_a_file", "pcap:tx=/dev/null", errc::invalid_argument, "mtu is 65514;", "68 to 65513", {.mtu = 65514}},
        {"no_engines", "null", errc::invalid_argument, "engines is 0;", "1 to 64", {.engines = 0}},
        {"engines_65", "null", errc::invalid_argument, "engines is 65;", "1 to 64", {.engines = 65}},
        {"core_below_any", "null", errc::invalid_argument, "core is -2;", "-1 for any", {.core = -2}},
        {"core_that_is_not", "null", errc::invalid_argument, "core 1023", "lscpu -e", {.core = 1023}},
        {"core_beyond_all", "null", errc::invalid_argument, "core 2147483647", "lscpu -e", {.core = 2147483647}},
        {"mode", "null", errc::invalid_argument, "mode is 7;", "engine_mode::", {.mode = static_cast<engine_mode>(7)}},
        {"idle", "null", errc::invalid_argument, "idle is 7;", "idle_policy::", {.idle = static_cast<idle_policy>(7)}},
        {"hold",
         "null",
         errc::invalid_argument,
         "hold_when_full is 7;",
         "hold::automatic",
         {.hold_when_full = static_cast<port_options::hold>(7)}},
        {"realtime", "null", errc::invalid_argument, "priority 100", "1 to 99", {.realtime = 100}},
    };
}

class PortRefusal : public testing::TestWithParam<refusal> {};

TEST_P(PortRefusal, SaysWhatAndWhy)
{
    expect_refusal(error_of([] { port::open(GetParam().spec, GetParam().options); }), GetParam());
}

TEST_P(PortRefusal, LeavesTheWayFreeForTheNextPort)
{
    error_of([] { port::open(GetParam().spec, GetParam().options); });
    EXPECT_EQ(port::open("null").driver(), "net_null");
}

INSTANTIATE_TEST_SUITE_P(Of, PortRefusal, testing::ValuesIn(spec_refusals()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });
INSTANTIATE_TEST_SUITE_P(OfOptions, PortRefusal, testing::ValuesIn(option_refusals()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(PortRefusals, OfADpdkPortThatIsOpenAlreadyNameIt)
{
    port first = port::open("net_null3,size=64");
    expect_refusal(error_of([] { port::open("net_null3,size=64"); }),
                   {"", "", errc::in_use, "net_null3,size=64", "close that port first"});
    EXPECT_EQ(first.driver(), "net_null");
}

TEST(PortRefusals, ShowControlCharactersOfNames)
{
    for (const char* spec : {"iface:eth\n\x1b[31m", "pcap:/nowhere/a\n\x1b[31mb", "pcap:tx=/nowhere/\n\x1b[31m/b",
                             "net_\n\x1b[31m", "no\n\x1b[31mport", "net_null0,size=\n\x1b[31m"}) {
        const std::string text = error_of([spec] { port::open(spec); }).what();
        EXPECT_EQ(text.find_first_of("\n\x1b"), text.npos) << text;
        EXPECT_THAT(text, testing::HasSubstr("\\n\\x1b[31m"));
    }
}

TEST(QueueRefusals, NameTheValueAndTheRange)
{
    device cpu = device::open("cpu");
    port null = port::open("null");
    for (std::uint32_t packets : {0u, 1u, 32u, 63u, 100u, 1000u, 65535u, 131072u, 0x80000000u, 0xffffffffu})
        expect_refusal(error_of([&] { eth_rxq(null, cpu, {.packets = packets}); }),
                       {"", "", errc::invalid_argument, fmt::format("packets is {}", packets), "64 to 65536"});
    for (std::uint32_t max_bytes : {0u, 63u, 16385u, 0xffffffffu})
        expect_refusal(
            error_of([&] { eth_rxq(null, cpu, {.max_packet_bytes = max_bytes}); }),
            {"", "", errc::invalid_argument, fmt::format("max_packet_bytes is {}", max_bytes), "64 to 16384"});
    expect_refusal(error_of([&] { eth_rxq(null, cpu, {.buffers = memory_kind::device}); }),
                   {"", "", errc::not_supported, "device cpu: no copy engine", "use memory_kind::cpu_device"});
    expect_refusal(error_of([&] { eth_rxq(null, cpu, {.buffers = memory_kind::device_cpu}); }),
                   {"", "", errc::invalid_argument, "buffers is device_cpu", "use memory_kind::cpu_device, or device"});
    expect_refusal(error_of([&] { eth_rxq(null, cpu, {.buffers = static_cast<memory_kind>(9)}); }),
                   {"", "", errc::invalid_argument, "buffers is 9", "use memory_kind::cpu_device"});
}

TEST(QueueRefusals, LeaveOutTheEndsOfTheRange)
{
    device cpu = device::open("cpu");
    port null = port::open("null");
    EXPECT_EQ(eth_rxq(null, cpu, {.packets = 64, .max_packet_bytes = 16384}).packets(), 64u);
    EXPECT_EQ(eth_rxq(null, cpu, {.packets = 32768, .max_packet_bytes = 64}).packets(), 32768u);
}

TEST(FlowRefusals, SayWhatIsWrongWithTheAction)
{
    device cpu = device::open("cpu");
    port here = port::open("null"), there = port::open("null");
    eth_rxq foreign(there, cpu);
    expect_refusal(error_of([&] { (void)flow(here, {}, flow_action::to(foreign)); }),
                   {"", "", errc::invalid_argument, "another port", "queue's own port"});
    expect_refusal(error_of([&] { (void)flow(here, {}, flow_action::rss({})); }),
                   {"", "", errc::invalid_argument, "has no queue", "name at least one"});
}

TEST(FlowRefusals, SayWhatIsWrongWithTheMatch)
{
    port null = port::open("null");
    auto refused = [&](const flow_match& match) {
        return error_of([&] { (void)flow(null, match, flow_action::drop()); });
    };
    expect_refusal(refused({.ipv4_source = ipv4_prefix{{}, 33}}),
                   {"", "", errc::invalid_argument, "33", "set 0 to 32"});
    expect_refusal(refused({.ipv6_source = ipv6_prefix{{}, 129}}),
                   {"", "", errc::invalid_argument, "129", "set 0 to 128"});
    expect_refusal(refused({.source_port = port_range{9, 8}}), {"", "", errc::invalid_argument, "9 to 8", "swap"});
    expect_refusal(refused({.ipv4_source = ipv4_prefix{}, .ipv6_source = ipv6_prefix{}}),
                   {"", "", errc::invalid_argument, "IPv4 and IPv6", "make two rules"});
    expect_refusal(refused({.vlan = 4096}), {"", "", errc::invalid_argument, "4096", "0 to 4095"});
}

TEST(RegionRefusals, NeedMemoryThatIsThere)
{
    port null = port::open("null");
    expect_refusal(error_of([&] { memory_region(null, memory{}); }),
                   {"", "", errc::invalid_argument, "empty", "allocate it first"});
}

TEST(BufferArrayRefusals, NameTheValues)
{
    device cpu = device::open("cpu");
    port null = port::open("null");
    auto refused = [&](buf_arr_options options) { return error_of([&] { buf_arr(null, cpu, options); }); };
    expect_refusal(refused({.count = 0, .buffer_bytes = 64}),
                   {"", "", errc::invalid_argument, "0 buffers of 64", "at least 1"});
    expect_refusal(refused({.count = 5, .buffer_bytes = 0}),
                   {"", "", errc::invalid_argument, "5 buffers of 0", "at least 1"});
    expect_refusal(refused({.count = 5, .buffer_bytes = 100, .stride_bytes = 99}),
                   {"", "", errc::invalid_argument, "stride_bytes is 99", "leave it 0"});
    expect_refusal(refused({.count = 1, .buffer_bytes = 0xffffffff}),
                   {"", "", errc::invalid_argument, "4294967295", "set 4294967232 at most"});
    expect_refusal(refused({.count = 0xffffffff, .buffer_bytes = 0xffffffc0}), {"", "", errc::out_of_memory, "", ""});
}

TEST(Regions, AreKnownToTheNicByTheirKeyWhileTheyLive)
{
    device cpu = device::open("cpu");
    port null = port::open("null");
    memory some = cpu.allocate(4096, memory_kind::cpu_device);
    std::optional<memory_region> region(std::in_place, null, some);
    std::uint32_t old_key = region->lkey();
    EXPECT_EQ(region->bytes(), 4096u);
    EXPECT_EQ(region->device_address(), some.device_address());
    region.reset();
    memory_region next(null, some);
    EXPECT_NE(next.lkey(), old_key);
}

} // namespace
} // namespace weftio::test
