// Which packets go to which queue.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weftio/eth_rxq.hpp"
#include "weftio/port.hpp"

namespace weftio {

struct ipv4_prefix {
    std::array<std::uint8_t, 4> address{};
    std::uint8_t length = 32; ///< leading bits that count
};
struct ipv6_prefix {
    std::array<std::uint8_t, 16> address{};
    std::uint8_t length = 128;
};
struct port_range {
    std::uint16_t first = 0;
    std::uint16_t last = 0; ///< inclusive
};
struct tcp_flags_match {
    std::uint8_t value = 0;
    std::uint8_t mask = 0xff; ///< bits that count
};

/// What a packet must be; fields left out match everything. Ports and TCP flags match only packets that carry that
/// header: not the later fragments of a datagram.
struct flow_match {
    std::optional<std::uint16_t> ether_type{}; ///< after all VLAN tags
    std::optional<std::uint16_t> vlan{};       ///< id of the outermost tag, stripped or not; 0xffff: untagged
    std::optional<ipv4_prefix> ipv4_source{};
    std::optional<ipv4_prefix> ipv4_destination{};
    std::optional<ipv6_prefix> ipv6_source{};
    std::optional<ipv6_prefix> ipv6_destination{};
    std::optional<std::uint8_t> ip_protocol{}; ///< IPv4 protocol, or the IPv6 next header behind all extension headers
    std::optional<port_range> source_port{};   ///< UDP or TCP
    std::optional<port_range> destination_port{};
    std::optional<tcp_flags_match> tcp_flags{};
};

/// The Toeplitz key of Microsoft's RSS specification, or one that sends both directions of a connection to one queue.
enum class rss_key { standard, symmetric };

/// Where packets go. Names queues by the objects that stand for them: those stay where they are until a flow has been
/// made of it, and may be moved afterwards.
struct flow_action {
    enum class kind { queue, rss, drop } what = kind::drop;
    std::vector<const eth_rxq*> queues{};
    rss_key key = rss_key::standard;

    static flow_action to(const eth_rxq& queue) { return {kind::queue, {&queue}, rss_key::standard}; }
    static flow_action to(const eth_rxq&& queue) = delete; ///< a temporary: the queue would end before the first packet
    /// By Toeplitz hash over addresses, and ports where there are any; packets without an IP header go to the first
    /// queue.
    static flow_action rss(std::vector<const eth_rxq*> queues, rss_key key = rss_key::standard)
    {
        return {kind::rss, std::move(queues), key};
    }
    static flow_action drop() { return {}; }
};

struct flow_hits {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
};

/// Who carries a rule out.
enum class flow_place {
    driver,  ///< the port's own hardware or driver, through rte_flow
    software ///< the engine
};

/// A rule of a port: packets that match are given to queues, or dropped. The matching rule of the lowest `priority`
/// number decides; among equals the one made first.
///
/// - Ownership: move-only; the rule ends with the object. Keeps the port alive; a queue that ends first leaves the rule
///   dropping what it matches, counted as `queue_closed`.
/// - Threads: any, one at a time, while the port runs.
class flow {
 public:
    /// @throws weftio::error errc::invalid_argument
    ///     - no queue given, more than the action takes (to: 1, rss: 128, drop: none), a null one, one that has been
    ///       moved from, one of another port
    ///     - a prefix longer than its address, IPv4 and IPv6 addresses in one rule, or addresses that `ether_type` does
    ///       not carry
    ///     - a port range that ends before it starts, ports with an `ip_protocol` other than UDP or TCP
    ///     - `tcp_flags` with an `ip_protocol` other than TCP
    ///     - a `vlan` in 4096..0xfffe
    [[nodiscard]] flow(const port& port, const flow_match& match, const flow_action& action,
                       std::uint32_t priority = 0);
    flow(flow&&) noexcept;
    flow& operator=(flow&&) noexcept;
    ~flow();

    flow_hits hits() const;
    flow_place where() const noexcept;

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
