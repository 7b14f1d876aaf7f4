// Opcodes of RoCEv2 packets, and what each says of its packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weftio/rdma_state.hpp"

namespace weftio::net {

/// Byte 0 of the base transport header. A value that has no name here is no opcode that Weftio speaks.
enum class roce_opcode : std::uint8_t {
    rc_send_first = 0x00,
    rc_send_middle = 0x01,
    rc_send_last = 0x02,
    rc_send_last_immediate = 0x03,
    rc_send_only = 0x04,
    rc_send_only_immediate = 0x05,
    rc_write_first = 0x06,
    rc_write_middle = 0x07,
    rc_write_last = 0x08,
    rc_write_last_immediate = 0x09,
    rc_write_only = 0x0a,
    rc_write_only_immediate = 0x0b,
    rc_read_request = 0x0c,
    rc_read_response_first = 0x0d,
    rc_read_response_middle = 0x0e,
    rc_read_response_last = 0x0f,
    rc_read_response_only = 0x10,
    rc_acknowledge = 0x11,
    rc_atomic_acknowledge = 0x12,
    rc_compare_swap = 0x13,
    rc_fetch_add = 0x14,
    rc_send_last_invalidate = 0x16,
    rc_send_only_invalidate = 0x17,
    uc_send_first = 0x20,
    uc_send_middle = 0x21,
    uc_send_last = 0x22,
    uc_send_last_immediate = 0x23,
    uc_send_only = 0x24,
    uc_send_only_immediate = 0x25,
    uc_write_first = 0x26,
    uc_write_middle = 0x27,
    uc_write_last = 0x28,
    uc_write_last_immediate = 0x29,
    uc_write_only = 0x2a,
    uc_write_only_immediate = 0x2b,
    ud_send_only = 0x64,
    ud_send_only_immediate = 0x65,
    cnp = 0x81,
};

/// `none` of an unknown opcode; `congestion` of a congestion notification packet (CNP), which belongs to no service.
enum class roce_service : std::uint8_t { none, rc, uc, ud, congestion };

enum class roce_operation : std::uint8_t {
    none,
    send,
    write,
    read_request,
    read_response,
    acknowledge,
    atomic_acknowledge,
    compare_swap,
    fetch_add,
    congestion,
};

/// Where in its message a packet stands. Requests and answers of one packet are `only`.
enum class roce_position : std::uint8_t { first, middle, last, only };

/// What the last packet of a message carries beside its payload.
enum class roce_extra : std::uint8_t { none, immediate, invalidate };

/// What an opcode says of its packet. Extended headers are in the order of the wire.
struct roce_shape {
    roce_service service = roce_service::none;
    roce_operation operation = roce_operation::none;
    roce_position position = roce_position::only;
    bool has_deth = false;
    bool has_reth = false;
    bool has_atomic = false;
    bool has_aeth = false;
    bool has_atomic_ack = false;
    bool has_immediate = false;
    bool has_invalidate = false;
    bool takes_payload = false;      ///< false: there is none, and no pad
    std::uint8_t extended_bytes = 0; ///< of the headers between the base transport header and the payload

    constexpr bool known() const noexcept { return service != roce_service::none; }
    constexpr bool begins() const noexcept
    {
        return position == roce_position::first || position == roce_position::only;
    }
    constexpr bool ends() const noexcept { return position == roce_position::last || position == roce_position::only; }
    /// Goes from the responder to the requester.
    constexpr bool is_response() const noexcept
    {
        return operation == roce_operation::read_response || operation == roce_operation::acknowledge ||
               operation == roce_operation::atomic_acknowledge;
    }
    /// Goes from the requester to the responder.
    constexpr bool is_request() const noexcept
    {
        return known() && !is_response() && operation != roce_operation::congestion;
    }
};

/// The service that the upper three bits of an opcode name, also of one that is reserved.
constexpr roce_service service_of(roce_opcode opcode) noexcept
{
    switch (static_cast<std::uint8_t>(opcode) >> 5) {
        case 0: return roce_service::rc;
        case 1: return roce_service::uc;
        case 3: return roce_service::ud;
        case 4: return roce_service::congestion;
        default: return roce_service::none;
    }
}

/// One for each value that byte 0 can have.
extern const std::array<roce_shape, 256> roce_shapes;

/// Any thread; never blocks.
inline const roce_shape& shape_of(roce_opcode opcode) noexcept
{
    return roce_shapes[static_cast<std::uint8_t>(opcode)];
}

/// Whether a packet of this shape may carry `payload_bytes` bytes: the whole path MTU in a first or middle packet, 1 to
/// the MTU in a last one, 0 to the MTU in an only one, 16 in a CNP. A responder answers any other length with
/// roce_nak::invalid_request.
bool payload_fits(const roce_shape& shape, std::size_t payload_bytes, std::uint32_t path_mtu) noexcept;

/// The opcodes that queue pairs of a service exchange.
constexpr roce_service opcodes_of(rdma_service service) noexcept
{
    switch (service) {
        case rdma_service::reliable: return roce_service::rc;
        case rdma_service::unreliable: return roce_service::uc;
        case rdma_service::datagram: return roce_service::ud;
    }
    return roce_service::none;
}

/// Whether the peer acknowledges what it has executed.
constexpr bool is_reliable(rdma_service service) noexcept
{
    return opcodes_of(service) == roce_service::rc;
}

/// The opcode of such a packet; nothing when there is none.
std::optional<roce_opcode> opcode_of(roce_service service, roce_operation operation, roce_position position,
                                     roce_extra extra = roce_extra::none) noexcept;

} // namespace weftio::net
