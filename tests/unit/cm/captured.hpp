// Messages of connection management in the captures of tests/captures/roce.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "cm/messages.hpp"
#include "net/roce_headers.hpp"
#include "unit/roce/reading.hpp"

namespace cm_captured {

using roce_reading::bytes;
using roce_reading::hex;

/// One message: in which frame, counted from 1, and between which addresses.
struct datagram {
    std::size_t frame = 0;
    weftio::net::roce_gid source{}, destination{};
    bytes mad;
};

/// All packets to queue pair 1, in order. @param name  "rxe-cm"
inline std::vector<datagram> datagrams_of(const std::string& name)
{
    std::vector<datagram> found;
    std::size_t frame = 0;
    for (const bytes& all :
         roce_reading::frames_of(weftio::test::source_folder() / "tests/captures/roce" / (name + ".pcap"))) {
        ++frame;
        weftio::net::roce_packet packet;
        if (weftio::net::parse_roce(all, packet) != weftio::net::roce_refusal::none ||
            packet.headers.bth.destination_qp != weftio::cm::mad_queue)
            continue;
        if (packet.headers.queue_key != weftio::cm::mad_queue_key || packet.headers.source_qp != weftio::cm::mad_queue)
            throw std::runtime_error("a message that is not of queue pair 1");
        found.push_back(
            {frame, packet.path.source, packet.path.destination, bytes(packet.payload.begin(), packet.payload.end())});
    }
    return found;
}

inline bytes frame_of(const std::string& name, std::size_t frame)
{
    for (const datagram& one : datagrams_of(name)) {
        if (one.frame == frame)
            return one.mad;
    }
    throw std::runtime_error("no such frame");
}

} // namespace cm_captured
