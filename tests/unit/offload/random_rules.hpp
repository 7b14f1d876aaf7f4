// Random frames and matches with few different values, so that they often match.
#pragma once

#include <random>

#include "net/packet_headers.hpp"
#include "nic/soft/receive/steering.hpp"
#include "unit/steering/frames.hpp"
#include "weftio/error.hpp"
#include "weftio/flow.hpp"

#include "flows/validate.hpp"

namespace weftio::test {

using frames::bytes;

class random_rules {
 public:
    explicit random_rules(unsigned seed) : random_(seed) {}

    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

    bytes frame()
    {
        switch (below(8)) {
            case 0: return frames::ethernet({}, 0x0806, bytes(28));
            case 1: return ip({tag()});
            case 2: return ip({{0x88a8, id()}, tag()});
            default: return ip({});
        }
    }
    /// A match that flow() accepts.
    flow_match match()
    {
        for (;;) {
            const flow_match wanted = any_match();
            try {
                flows::validate("weftio: flow", wanted);
                return wanted;
            } catch (const error&) {
            }
        }
    }

 private:
    bool once_in(std::uint32_t times) { return below(times) == 0; }
    std::uint16_t id() { return static_cast<std::uint16_t>(below(3)); }
    frames::tag tag() { return {0x8100, id()}; }
    std::uint16_t port() { return static_cast<std::uint16_t>(below(5)); }
    std::uint8_t protocol()
    {
        constexpr std::uint8_t some[] = {17, 6, 17, 6, 1, 0, 44};
        return some[below(std::size(some))];
    }
    std::uint8_t flags() { return static_cast<std::uint8_t>(below(4)); }
    frames::address4 address4() { return {10, 0, static_cast<std::uint8_t>(below(2) * 128), 1}; }
    frames::address6 address6()
    {
        frames::address6 address{0x20, 1};
        address[15] = static_cast<std::uint8_t>(below(2) * 128);
        return address;
    }

    bytes payload(std::uint8_t number)
    {
        return number == 17  ? frames::udp(port(), port())
               : number == 6 ? frames::tcp(port(), port(), flags())
                             : bytes(16);
    }
    bytes ip(std::initializer_list<frames::tag> tags)
    {
        const std::uint8_t number = protocol();
        if (once_in(2))
            return frames::ethernet(tags, 0x0800,
                                    frames::ipv4({.protocol = number,
                                                  .source = address4(),
                                                  .destination = address4(),
                                                  .fragment = static_cast<std::uint16_t>(once_in(4) ? 5 : 0)},
                                                 payload(number)));
        frames::ipv6_fields fields{.protocol = number == 17 || number == 6 ? number : std::uint8_t{58},
                                   .source = address6(),
                                   .destination = address6()};
        if (once_in(4))
            fields.extensions.push_back(once_in(2) ? frames::hop_by_hop() : frames::fragment(8));
        return frames::ethernet(tags, 0x86dd, frames::ipv6(fields, payload(fields.protocol)));
    }

    flow_match any_match()
    {
        flow_match match;
        constexpr std::uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100};
        constexpr std::uint16_t ids[] = {0, 1, 2, 0xffff};
        if (once_in(6))
            match.ether_type = types[below(4)];
        if (once_in(5))
            match.vlan = ids[below(4)];
        add_addresses(match);
        if (once_in(4))
            match.ip_protocol = protocol();
        if (once_in(5))
            match.source_port = range();
        if (once_in(5))
            match.destination_port = range();
        if (once_in(6))
            match.tcp_flags = {flags(), flags()};
        return match;
    }
    void add_addresses(flow_match& match)
    {
        constexpr std::uint8_t lengths[] = {0, 8, 16, 17, 32, 128};
        if (once_in(6))
            match.ipv4_source = {address4(), lengths[below(5)]};
        if (once_in(6))
            match.ipv4_destination = {address4(), lengths[below(5)]};
        if (once_in(9))
            match.ipv6_source = {address6(), lengths[below(6)]};
        if (once_in(9))
            match.ipv6_destination = {address6(), lengths[below(6)]};
    }
    port_range range()
    {
        const std::uint16_t first = port();
        return {first, static_cast<std::uint16_t>(once_in(2) ? first : first + below(4))};
    }

    std::minstd_rand random_;
};

/// Whether the engine's rules find that the frame matches.
inline bool engine_matches(const flow_match& match, const bytes& frame)
{
    nic::soft::steering alone;
    auto rule = std::make_shared<nic::soft::steering_rule>();
    rule->match = match;
    alone.add(rule);
    alone.decide({.start = frame, .bytes = static_cast<std::uint32_t>(frame.size())}, nullptr);
    return rule->packets.value() != 0;
}

} // namespace weftio::test
