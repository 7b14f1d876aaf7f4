// Messages of connection management in the captures of tests/captures/roce.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <pcap/pcap.h>

#include "cm/messages.hpp"
#include "net/roce_headers.hpp"
#include "source_folder.hpp"

namespace cm_captured {

using bytes = std::vector<std::uint8_t>;

/// The bytes of hexadecimal digits; spaces are ignored.
inline bytes hex(std::string_view digits)
{
    bytes data;
    std::string pair;
    for (char digit : digits) {
        if (digit == ' ')
            continue;
        pair += digit;
        if (pair.size() == 2) {
            data.push_back(static_cast<std::uint8_t>(std::stoul(pair, nullptr, 16)));
            pair.clear();
        }
    }
    return data;
}

/// One message: in which frame, counted from 1, and between which addresses.
struct datagram {
    std::size_t frame = 0;
    weftio::net::roce_gid source{}, destination{};
    bytes mad;
};

/// All packets to queue pair 1, in order. @param name  "rxe-cm"
inline std::vector<datagram> datagrams_of(const std::string& name)
{
    const auto path = weftio::test::source_folder() / "tests/captures/roce" / (name + ".pcap");
    std::string why(PCAP_ERRBUF_SIZE, '\0');
    const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(path.c_str(), why.data()), pcap_close);
    if (file == nullptr)
        throw std::runtime_error(why.c_str());
    std::vector<datagram> found;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    for (std::size_t frame = 1; pcap_next_ex(file.get(), &header, &data) == 1; ++frame) {
        weftio::net::roce_packet packet;
        if (weftio::net::parse_roce({data, header->caplen}, packet) != weftio::net::roce_refusal::none ||
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
