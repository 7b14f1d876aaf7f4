// A requester to which a test passes single response packets.
#pragma once

#include "ends.hpp"

namespace roce_ends::asking {

using namespace weftio::net;
using enum roce_opcode;
using ends = std::vector<fake_sends::ended>;

inline constexpr std::uint32_t first = 0xffffff, mtu = 256; // the first PSN: the next one is 0

/// The fields of a sent packet that tests compare.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    bool ack_request;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << (one.ack_request ? " asks" : "");
    }
};
using packets = std::vector<seen>;

class at_requester {
 public:
    /// @param memory  most bytes of memory for requests in flight
    explicit at_requester(roce_connection settings = {}, std::size_t memory = SIZE_MAX,
                          weftio::rdma_service service = weftio::rdma_service::reliable)
        : shared{.found = {}, .pool = block_pool(memory)}, ours(service, finished(settings), sends, shared)
    {}
    explicit at_requester(weftio::rdma_service service) : at_requester({}, SIZE_MAX, service) {}

    std::vector<roce_packet> sent(unsigned most = 1000)
    {
        ours.send(wire, most, now);
        return wire.read();
    }
    packets sent_packets(unsigned most = 1000)
    {
        packets all;
        for (const roce_packet& packet : sent(most))
            all.push_back({packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.bth.ack_request});
        return all;
    }
    void answer(roce_opcode opcode, std::uint32_t psn, std::uint8_t syndrome = 0x1f, const bytes& payload = {},
                std::uint64_t original = 0)
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .psn = psn & psn_mask};
        packet.headers.syndrome = syndrome;
        packet.headers.original = original;
        packet.payload = payload;
        ours.receive(packet, now);
    }
    void ack(std::uint32_t psn) { answer(rc_acknowledge, psn); }
    /// Posts a WRITE of `count` packets. @param more  whether more entries follow
    void post_write(std::size_t count, bool more = false) { sends.post(write_to(0), stamped(count * mtu, 1), more); }

    fake_sends sends;
    fake_wire wire;
    workspace shared;
    requester ours;
    std::uint64_t now = 1'000'000;

 private:
    static roce_connection finished(roce_connection settings)
    {
        settings.path_mtu = mtu;
        settings.send_psn = first;
        return settings;
    }
};

} // namespace roce_ends::asking
