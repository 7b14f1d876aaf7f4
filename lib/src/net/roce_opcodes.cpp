#include "net/roce_opcodes.hpp"

#include <array>

namespace weftio::net {
namespace {

using enum roce_operation;
using enum roce_position;

constexpr std::size_t cnp_payload_bytes = 16;

/// What a packet has behind its base transport header.
enum : unsigned {
    deth = 1,
    reth = 2,
    atomic = 4,
    aeth = 8,
    atomic_ack = 16,
    immediate = 32,
    invalidate = 64,
    payload = 128
};

struct row {
    roce_opcode opcode;
    roce_operation operation;
    roce_position position;
    unsigned parts;
};

/// SEND and WRITE: opcodes of RC, to which UC adds 0x20.
constexpr std::array messages{
    row{roce_opcode::rc_send_first, send, first, payload},
    row{roce_opcode::rc_send_middle, send, middle, payload},
    row{roce_opcode::rc_send_last, send, last, payload},
    row{roce_opcode::rc_send_last_immediate, send, last, immediate | payload},
    row{roce_opcode::rc_send_only, send, only, payload},
    row{roce_opcode::rc_send_only_immediate, send, only, immediate | payload},
    row{roce_opcode::rc_write_first, write, first, reth | payload},
    row{roce_opcode::rc_write_middle, write, middle, payload},
    row{roce_opcode::rc_write_last, write, last, payload},
    row{roce_opcode::rc_write_last_immediate, write, last, immediate | payload},
    row{roce_opcode::rc_write_only, write, only, reth | payload},
    row{roce_opcode::rc_write_only_immediate, write, only, reth | immediate | payload},
};

constexpr std::array others{
    row{roce_opcode::rc_read_request, read_request, only, reth},
    row{roce_opcode::rc_read_response_first, read_response, first, aeth | payload},
    row{roce_opcode::rc_read_response_middle, read_response, middle, payload},
    row{roce_opcode::rc_read_response_last, read_response, last, aeth | payload},
    row{roce_opcode::rc_read_response_only, read_response, only, aeth | payload},
    row{roce_opcode::rc_acknowledge, acknowledge, only, aeth},
    row{roce_opcode::rc_atomic_acknowledge, atomic_acknowledge, only, aeth | atomic_ack},
    row{roce_opcode::rc_compare_swap, compare_swap, only, atomic},
    row{roce_opcode::rc_fetch_add, fetch_add, only, atomic},
    row{roce_opcode::rc_send_last_invalidate, send, last, invalidate | payload},
    row{roce_opcode::rc_send_only_invalidate, send, only, invalidate | payload},
    row{roce_opcode::ud_send_only, send, only, deth | payload},
    row{roce_opcode::ud_send_only_immediate, send, only, deth | immediate | payload},
    row{roce_opcode::cnp, congestion, only, payload},
};

constexpr roce_shape shape_of_row(roce_service service, const row& from) noexcept
{
    const auto has = [&from](unsigned part) { return (from.parts & part) != 0; };
    const int bytes = 8 * has(deth) + 16 * has(reth) + 28 * has(atomic) + 4 * has(aeth) + 8 * has(atomic_ack) +
                      4 * has(immediate) + 4 * has(invalidate);
    return {.service = service,
            .operation = from.operation,
            .position = from.position,
            .has_deth = has(deth),
            .has_reth = has(reth),
            .has_atomic = has(atomic),
            .has_aeth = has(aeth),
            .has_atomic_ack = has(atomic_ack),
            .has_immediate = has(immediate),
            .has_invalidate = has(invalidate),
            .takes_payload = has(payload),
            .extended_bytes = static_cast<std::uint8_t>(bytes)};
}

constexpr auto shapes = [] {
    std::array<roce_shape, 256> table{};
    const auto add = [&table](std::size_t opcode, const row& from) {
        table[opcode] = shape_of_row(service_of(static_cast<roce_opcode>(opcode)), from);
    };
    for (const row& from : messages) {
        add(static_cast<std::size_t>(from.opcode), from);
        add(static_cast<std::size_t>(from.opcode) + 0x20, from);
    }
    for (const row& from : others)
        add(static_cast<std::size_t>(from.opcode), from);
    return table;
}();

constexpr std::size_t places = 5 * 10 * 4 * 3; // services, operations, positions, extras
constexpr std::uint8_t no_opcode = 0xff;

constexpr std::size_t place_of(roce_service service, roce_operation operation, roce_position position,
                               roce_extra extra) noexcept
{
    return ((static_cast<std::size_t>(service) * 10 + static_cast<std::size_t>(operation)) * 4 +
            static_cast<std::size_t>(position)) *
               3 +
           static_cast<std::size_t>(extra);
}

/// The way back: from what a packet is to its opcode.
constexpr auto opcodes = [] {
    std::array<std::uint8_t, places> table{};
    table.fill(no_opcode);
    for (std::size_t opcode = 0; opcode < shapes.size(); ++opcode) {
        const roce_shape& shape = shapes[opcode];
        if (!shape.known())
            continue;
        const roce_extra extra = shape.has_immediate    ? roce_extra::immediate
                                 : shape.has_invalidate ? roce_extra::invalidate
                                                        : roce_extra::none;
        table[place_of(shape.service, shape.operation, shape.position, extra)] = static_cast<std::uint8_t>(opcode);
    }
    return table;
}();

} // namespace

constinit const std::array<roce_shape, 256> roce_shapes = shapes;

bool payload_fits(const roce_shape& shape, std::size_t payload_bytes, std::uint32_t path_mtu) noexcept
{
    if (!shape.takes_payload)
        return payload_bytes == 0;
    if (shape.operation == congestion)
        return payload_bytes == cnp_payload_bytes;
    switch (shape.position) {
        case first:
        case middle: return payload_bytes == path_mtu;
        case last: return payload_bytes > 0 && payload_bytes <= path_mtu;
        case only: return payload_bytes <= path_mtu;
    }
    return false;
}

std::optional<roce_opcode> opcode_of(roce_service service, roce_operation operation, roce_position position,
                                     roce_extra extra) noexcept
{
    const std::uint8_t opcode = opcodes[place_of(service, operation, position, extra)];
    return opcode == no_opcode ? std::nullopt : std::optional(static_cast<roce_opcode>(opcode));
}

} // namespace weftio::net
