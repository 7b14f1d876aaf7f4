// A responder to which a test passes single request packets.
#pragma once

#include <functional>

#include "ends.hpp"

namespace roce_ends::responding {

using namespace weftio::net;
using enum roce_opcode;

inline constexpr std::uint32_t first = 0xffffff, mtu = 256; // the first PSN: the next one is 0

/// The fields of a response packet that tests compare.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    std::uint8_t syndrome;
    std::uint32_t msn;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << " syndrome " << int(one.syndrome)
            << " msn " << one.msn;
    }
};
using answers = std::vector<seen>;

inline seen ack(std::uint32_t psn, std::uint32_t msn)
{
    return {rc_acknowledge, psn & psn_mask, 0x1f, msn};
}
inline seen nak(std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn = 0)
{
    return {rc_acknowledge, psn & psn_mask, syndrome, msn};
}

/// A responder with 4,096 bytes of memory.
class at_responder {
 public:
    /// @param limit  most bytes of memory for requests in flight
    explicit at_responder(roce_connection settings = {}, std::size_t limit = SIZE_MAX,
                          weftio::rdma_service service = weftio::rdma_service::reliable)
        : shared{.found = {}, .pool = block_pool(limit)}, ours(service, finished(settings), memory, receives, shared)
    {}
    explicit at_responder(weftio::rdma_service service) : at_responder({}, SIZE_MAX, service) {}

    /// Passes a packet to it. @param more  sets the header fields that the opcode needs besides a PSN
    void ask(roce_opcode opcode, std::uint32_t psn, std::size_t payload_bytes = 0,
             const std::function<void(roce_headers&)>& more = {})
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .ack_request = true, .psn = psn & psn_mask};
        packet.headers.remote_key = fake_memory::key;
        packet.headers.address = fake_memory::begin;
        packet.headers.dma_bytes = static_cast<std::uint32_t>(payload_bytes);
        if (more)
            more(packet.headers);
        const bytes payload(payload_bytes, 0xee);
        packet.payload = payload;
        ours.receive(packet);
    }
    /// Passes a malformed packet, of which only the BTH is known.
    void ask_badly(roce_opcode opcode, std::uint32_t psn, roce_refusal form)
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .ack_request = true, .psn = psn & psn_mask};
        packet.form = form;
        ours.receive(packet);
    }
    answers answered(unsigned most = 1000)
    {
        ours.send(wire, most);
        answers all;
        for (const roce_packet& packet : wire.read())
            all.push_back(
                {packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.syndrome, packet.headers.msn});
        return all;
    }
    std::size_t bytes_written()
    {
        return static_cast<std::size_t>(std::count(memory.all().begin(), memory.all().end(), 0xee));
    }

    fake_memory memory{4096};
    fake_receives receives;
    fake_wire wire;
    workspace shared;
    responder ours;

 private:
    static roce_connection finished(roce_connection settings)
    {
        settings.path_mtu = mtu;
        settings.receive_psn = first;
        return settings;
    }
};

inline auto dma(std::uint32_t count, std::uint64_t offset = 0, std::uint32_t key = fake_memory::key)
{
    return [=](roce_headers& headers) {
        headers.dma_bytes = count;
        headers.address = fake_memory::begin + offset;
        headers.remote_key = key;
    };
}

} // namespace roce_ends::responding
