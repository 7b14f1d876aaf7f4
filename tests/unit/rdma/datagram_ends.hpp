// Two queue pairs of datagrams (UD), whose rings the test writes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <arpa/inet.h>

#include "posted_ends.hpp"

namespace weftio::test {

inline constexpr std::uint32_t usual_key = 0x11111111;

struct datagram_peer {
    std::string address;
    std::uint32_t queue = 0;
    std::uint32_t queue_key = usual_key;
    unsigned gid_index = 0;
    std::array<std::uint8_t, 6> mac{};
};

/// The three segments that name the peer of a datagram.
inline std::vector<segment> named(const datagram_peer& to)
{
    const auto word = [](const std::uint8_t* at) {
        return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
    };
    std::array<std::uint8_t, 16> gid{};
    if (inet_pton(AF_INET, to.address.c_str(), &gid[12]) == 1)
        gid[10] = gid[11] = 0xff;
    else
        inet_pton(AF_INET6, to.address.c_str(), gid.data());
    constexpr std::uint32_t traffic_class = 8, hop_limit = 3;
    return {{{to.queue_key, 0, WEFTIO_DATAGRAM_EXTENDED | to.queue, 0}},
            {{0, word(to.mac.data()),
              std::uint32_t{to.mac[4]} << 24 | std::uint32_t{to.mac[5]} << 16 | traffic_class << 8 | hop_limit,
              to.gid_index << 20}},
            {{word(&gid[0]), word(&gid[4]), word(&gid[8]), word(&gid[12])}}};
}

class datagram_ends : public verbs_ends {
 public:
    static constexpr std::uint32_t first_psn = 0xffffff; // the second one wraps
    static constexpr std::size_t header_bytes = 40;
    static constexpr const char* addresses[] = {"10.0.0.1", "10.0.0.2"};

    explicit datagram_ends(bool one_port, unsigned engines = 1)
        : verbs_ends({.service = rdma_service::datagram, .one_port = one_port, .engines = engines})
    {}
    void start(unsigned end)
    {
        pair(end)->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .queue_key = usual_key});
        pair(end)->modify(rdma_state::ready_to_receive);
        pair(end)->modify(rdma_state::ready_to_send, {.send_psn = first_psn});
    }
    void start()
    {
        start(0);
        start(1);
    }
    datagram_peer peer(unsigned end)
    {
        return {.address = addresses[end], .queue = pair(end)->number(), .mac = devices[end]->mac_of(addresses[end])};
    }
    /// Posts a datagram from one end; its payload is the begin of the memory there.
    std::uint32_t send_to(const datagram_peer& to, std::uint32_t bytes, unsigned from = 0,
                          std::uint32_t opcode = WEFTIO_OPCODE_SEND, std::uint32_t immediate = 0)
    {
        std::vector<segment> body = named(to);
        if (bytes != 0)
            body.push_back(memory(from).local(0, bytes));
        return pair(from).post(opcode, body, WEFTIO_CE_ALWAYS, immediate);
    }
    /// Bytes of a receive: the place of the header, and the payload behind it.
    std::vector<std::uint8_t> bytes_at(unsigned end, std::size_t from, std::size_t count)
    {
        const auto all = memory(end).copy();
        return {all.begin() + static_cast<std::ptrdiff_t>(from),
                all.begin() + static_cast<std::ptrdiff_t>(from + count)};
    }
};

} // namespace weftio::test
