// Captures that other projects ship, and what tshark 4.0 counts in them (outermost IP header, no reassembly):
//   tshark -r FILE -o ip.defragment:FALSE -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -o
//   tcp.check_checksum:TRUE
//          -T fields -E occurrence=f -e frame.protocols -e ip.checksum.status -e udp.checksum.status -e
//          tcp.checksum.status
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <pcap/pcap.h>

#include "net/checksum.hpp"

namespace {

using weftio::net::l3_kind;
using weftio::net::l4_kind;

struct counts {
    unsigned packets = 0;
    unsigned ipv4 = 0;
    unsigned ipv6 = 0;
    unsigned udp = 0; ///< no fragments among them, nor among `tcp`
    unsigned tcp = 0;
    unsigned vlan = 0;
    unsigned l3_good = 0; ///< IPv4 only
    unsigned l4_good = 0;

    bool operator==(const counts&) const = default;
};

void PrintTo(const counts& c, std::ostream* out)
{
    *out << c.packets << " packets, IPv4 " << c.ipv4 << ", IPv6 " << c.ipv6 << ", UDP " << c.udp << ", TCP " << c.tcp
         << ", VLAN " << c.vlan << ", L3 good " << c.l3_good << ", L4 good " << c.l4_good;
}

struct capture {
    const char* name;
    const char* path;
    counts expected;
};

void count(counts& total, std::span<const std::uint8_t> frame)
{
    const auto headers = weftio::net::parse(frame, {});
    const auto verdict = weftio::net::verify_checksums(frame, headers);
    ++total.packets;
    total.ipv4 += headers.l3 == l3_kind::ipv4;
    total.ipv6 += headers.l3 == l3_kind::ipv6;
    total.udp += headers.l4 == l4_kind::udp && !headers.fragment;
    total.tcp += headers.l4 == l4_kind::tcp && !headers.fragment;
    total.vlan += headers.vlan_tags > 0;
    total.l3_good += headers.l3 == l3_kind::ipv4 && verdict.l3_good;
    total.l4_good += verdict.l4_good;
}

class Captures : public testing::TestWithParam<capture> {};

TEST_P(Captures, HoldWhatTsharkFindsInThem)
{
    std::string why(PCAP_ERRBUF_SIZE, '\0');
    const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(GetParam().path, why.data()),
                                                              pcap_close);
    if (file == nullptr)
        GTEST_SKIP() << why.c_str();
    ASSERT_EQ(pcap_datalink(file.get()), DLT_EN10MB);
    counts total;
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    while (pcap_next_ex(file.get(), &header, &bytes) == 1)
        count(total, {bytes, header->caplen});
    EXPECT_EQ(total, GetParam().expected);
}

#define DPKT "/usr/share/doc/python3-dpkt/examples/data/"
#define GOPACKET "/usr/share/gocode/src/github.com/google/gopacket/"

INSTANTIATE_TEST_SUITE_P(
    Shipped, Captures,
    testing::Values(
        capture{"RtpOfG711", "/usr/share/sip-tester/g711a.pcap", {236, 236, 0, 236, 0, 0, 236, 236}},
        capture{"RtpOfDtmf", "/usr/share/sip-tester/dtmf_2833_star.pcap", {10, 10, 0, 10, 0, 0, 10, 10}},
        capture{"DnsAndIcmp", DPKT "dns_icmp.pcap", {32, 32, 0, 10, 0, 0, 32, 10}},
        capture{"Http", DPKT "http.pcap", {43, 43, 0, 2, 41, 0, 43, 43}},
        capture{"HttpAmongOtherProtocols", DPKT "nb6-http.pcap", {62, 10, 0, 0, 10, 0, 10, 10}},
        capture{"TruncatedDns", DPKT "truncated_dns.pcap", {1, 1, 0, 1, 0, 0, 0, 0}},
        capture{"TcpOfGopacket", GOPACKET "pcap/test_ethernet.pcap", {10, 10, 0, 0, 10, 0, 10, 10}},
        capture{"DnsOfGopacket", GOPACKET "pcap/test_dns.pcap", {10, 10, 0, 10, 0, 0, 10, 10}},
        capture{"BadIpv4ChecksumsInPcapng", GOPACKET "pcapgo/tests/le/test001.pcapng", {4, 4, 0, 4, 0, 0, 2, 4}},
        capture{
            "BadUdpChecksumsInBigEndianPcapng", GOPACKET "pcapgo/tests/be/test012.pcapng", {4, 4, 0, 4, 0, 0, 2, 2}}),
    [](const auto& tested) { return std::string(tested.param.name); });

} // namespace
