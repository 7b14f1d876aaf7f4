// Where what lies in a RoCEv2 packet, for those who read and those who write one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/packet_headers.hpp"
#include "net/roce_opcodes.hpp"
#include "net/roce_rules.hpp"

namespace weftio::net {

inline constexpr std::size_t mac_bytes = 6, tag_bytes = 4, udp_bytes = 8, bth_bytes = 12;

constexpr std::size_t ip_bytes_of(l3_kind l3) noexcept
{
    return l3 == l3_kind::ipv4 ? ipv4_header_bytes : ipv6_header_bytes;
}

/// Reads or writes each field of the extended headers of a packet, in the order of the wire, by `step<bytes>(field)`.
template <class Headers, class Step>
void for_each_field(const roce_shape& shape, Headers& headers, Step step) noexcept
{
    std::uint8_t reserved = 0;
    if (shape.has_deth) {
        step.template operator()<4>(headers.queue_key);
        step.template operator()<1>(reserved);
        step.template operator()<3>(headers.source_qp);
    }
    if (shape.has_reth || shape.has_atomic) {
        step.template operator()<8>(headers.address);
        step.template operator()<4>(headers.remote_key);
    }
    if (shape.has_reth)
        step.template operator()<4>(headers.dma_bytes);
    if (shape.has_atomic) {
        step.template operator()<8>(headers.swap_or_add);
        step.template operator()<8>(headers.compare);
    }
    if (shape.has_aeth) {
        step.template operator()<1>(headers.syndrome);
        step.template operator()<3>(headers.msn);
    }
    if (shape.has_atomic_ack)
        step.template operator()<8>(headers.original);
    if (shape.has_immediate)
        step.template operator()<4>(headers.immediate);
    if (shape.has_invalidate)
        step.template operator()<4>(headers.invalidate_key);
}

inline bool payload_possible(const roce_shape& shape, std::size_t payload_bytes) noexcept
{
    if (shape.operation == roce_operation::congestion || !shape.takes_payload)
        return payload_fits(shape, payload_bytes, largest_path_mtu);
    return payload_bytes <= largest_path_mtu;
}

} // namespace weftio::net
