// Compares our parser with DPDK's on the same frame: rte_net_get_ptype() and the checksums of rte_ip.h. Intended
// differences are documented here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <netinet/in.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "expect.hpp"
#include "net/checksum.hpp"

namespace weftio::fuzz {

using bytes = std::span<const std::uint8_t>;

inline std::uint16_t half_at(bytes data, std::size_t at)
{
    return static_cast<std::uint16_t>(data[at] << 8 | data[at + 1]);
}

struct dpdk_reading {
    rte_net_hdr_lens lengths{};
    std::uint32_t type = 0;

    explicit dpdk_reading(bytes frame)
    {
        rte_mbuf mbuf{};
        mbuf.buf_addr = const_cast<std::uint8_t*>(frame.data());
        mbuf.nb_segs = 1;
        mbuf.data_len = static_cast<std::uint16_t>(frame.size());
        mbuf.pkt_len = static_cast<std::uint32_t>(frame.size());
        mbuf.buf_len = mbuf.data_len;
        type = rte_net_get_ptype(&mbuf, &lengths, RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK);
    }
    std::uint32_t l3() const { return type & RTE_PTYPE_L3_MASK; }
    std::uint32_t l4() const { return type & RTE_PTYPE_L4_MASK; }
    bool ipv4() const { return l3() == RTE_PTYPE_L3_IPV4 || l3() == RTE_PTYPE_L3_IPV4_EXT; }
    bool ipv6() const { return l3() == RTE_PTYPE_L3_IPV6 || l3() == RTE_PTYPE_L3_IPV6_EXT; }
};

/// Whether DPDK parses the extension headers of this packet as we do. DPDK does not know AH and mobility headers, stops
/// at a fragment header even if the datagram is not fragmented, and stops at the fifth header.
inline bool dpdk_walks(bytes frame, const net::packet_headers& headers)
{
    std::uint8_t next = frame[headers.l3_offset + 6u];
    unsigned count = 0;
    for (std::size_t at = headers.l3_offset + 40u; at < headers.l4_offset; ++count) {
        if (next == IPPROTO_AH || next == IPPROTO_MH || next == IPPROTO_FRAGMENT)
            return false;
        next = frame[at];
        at += (frame[at + 1] + 1u) * 8u;
    }
    return count < 5;
}

/// Compares the L4 headers after the same L3 header. DPDK checks neither the length of the IP packet nor that the UDP
/// header, or the TCP options, are complete. It accepts a TCP data offset below 5.
inline void agree_on_l4(bytes frame, const net::packet_headers& headers, const dpdk_reading& dpdk)
{
    using net::l4_kind;
    const std::size_t end = std::min<std::size_t>(frame.size(), headers.l3_end), at = headers.l4_offset;
    if (dpdk.l4() == RTE_PTYPE_L4_FRAG || headers.fragment) {
        expect(dpdk.l4() == RTE_PTYPE_L4_FRAG && headers.fragment, "DPDK sees a fragment where we do");
        return;
    }
    if (headers.l4 != l4_kind::none)
        expect(dpdk.l4() == (headers.l4 == l4_kind::udp ? RTE_PTYPE_L4_UDP : RTE_PTYPE_L4_TCP),
               "DPDK sees the L4 header that we see");
    if (dpdk.l4() == RTE_PTYPE_L4_UDP && at + 8 <= end)
        expect(headers.l4 == l4_kind::udp, "we see the UDP header that DPDK sees");
    if (dpdk.l4() == RTE_PTYPE_L4_TCP && dpdk.lengths.l4_len >= 20 && at + dpdk.lengths.l4_len <= end)
        expect(headers.l4 == l4_kind::tcp, "we see the TCP header that DPDK sees");
}

/// DPDK parses one VLAN tag, or 0x88a8 and a second tag. It gets the frame without tags, and also with tags if it knows
/// them. DPDK also parses behind MPLS labels and behind a fifth tag; we do not.
inline void agree_with_dpdk(bytes frame, const net::packet_headers& headers)
{
    using net::l3_kind;
    const auto goes_on = {RTE_ETHER_TYPE_VLAN, RTE_ETHER_TYPE_QINQ, RTE_ETHER_TYPE_MPLS, RTE_ETHER_TYPE_MPLSM};
    if (headers.l3_offset == 0 || std::ranges::find(goes_on, headers.ether_type) != goes_on.end())
        return;
    std::vector<std::uint8_t> plain(frame.begin(), frame.begin() + 12);
    plain.insert(plain.end(), frame.begin() + headers.l3_offset - 2, frame.end());
    const dpdk_reading dpdk(plain), tagged(frame);
    const bool known_tags =
        headers.l3_offset == 14 || (headers.l3_offset == 18 && half_at(frame, 12) == RTE_ETHER_TYPE_VLAN);
    if (known_tags && (tagged.ipv4() || tagged.ipv6()))
        expect(tagged.lengths.l2_len == headers.l3_offset, "DPDK sees the IP header where we see it");

    // DPDK accepts an IPv4 header length beyond the end of the frame, and does not check the version of IPv6.
    if (dpdk.ipv4() && dpdk.lengths.l2_len + dpdk.lengths.l3_len <= plain.size())
        expect(headers.l3 == l3_kind::ipv4, "we see the IPv4 header that DPDK sees");
    if (dpdk.ipv6() && plain[14] >> 4 == 6)
        expect(headers.l3 == l3_kind::ipv6, "we see the IPv6 header that DPDK sees");
    if (headers.l3 == l3_kind::none)
        return;
    expect(headers.l3 == l3_kind::ipv4 ? dpdk.ipv4() : dpdk.ipv6(), "DPDK sees the IP header that we see");
    if (!headers.has_protocol || (headers.l3 == l3_kind::ipv6 && !dpdk_walks(frame, headers)))
        return;
    expect(dpdk.lengths.l3_len == headers.l4_offset - headers.l3_offset, "DPDK sees L4 where we see it");
    agree_on_l4(frame, headers, dpdk);
}

/// DPDK takes the length of L4 from the IP packet, ignores the length in the UDP header, and expects L4 right after the
/// fixed IPv6 header. We also accept a checksum field with the sum of the pseudo header alone, which Linux leaves for a
/// NIC to complete.
inline void agree_with_dpdk_on_checksums(bytes frame, const net::packet_headers& headers,
                                         const net::checksum_verdict& verdict)
{
    if (headers.l4 == net::l4_kind::none || headers.fragment || headers.l3_end > frame.size())
        return;
    const bool udp = headers.l4 == net::l4_kind::udp, ipv4 = headers.l3 == net::l3_kind::ipv4;
    const std::size_t at = headers.l4_offset + (udp ? 6u : 16u);
    std::vector<std::uint8_t> copy(frame.begin(), frame.end());
    const std::uint16_t stated = half_at(copy, at);
    const bool other_length = udp && half_at(copy, headers.l4_offset + 4u) != headers.l3_end - headers.l4_offset;
    if (other_length || (udp && stated == 0) || (!ipv4 && headers.l4_offset != headers.l3_offset + 40u))
        return;
    copy[at] = copy[at + 1] = 0;
    const void* l3 = &copy[headers.l3_offset];
    const void* l4 = &copy[headers.l4_offset];
    const auto* ip4 = static_cast<const rte_ipv4_hdr*>(l3);
    const auto* ip6 = static_cast<const rte_ipv6_hdr*>(l3);
    const std::uint16_t sum_be = ipv4 ? rte_ipv4_udptcp_cksum(ip4, l4) : rte_ipv6_udptcp_cksum(ip6, l4);
    const std::uint16_t pseudo_be = ipv4 ? rte_ipv4_phdr_cksum(ip4, 0) : rte_ipv6_phdr_cksum(ip6, 0);
    const auto zero_is_ones = [](std::uint16_t sum) { return sum == 0 ? std::uint16_t{0xffff} : sum; };
    const bool partial = __builtin_bswap16(pseudo_be) == stated;
    expect(verdict.l4_good == (partial || zero_is_ones(__builtin_bswap16(sum_be)) == zero_is_ones(stated)),
           "DPDK finds the checksum that we find");
}

} // namespace weftio::fuzz
