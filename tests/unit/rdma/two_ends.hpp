// Two connected queue pairs: of two ports on a wire, or of one port.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "end_memory.hpp"
#include "fake_pair.hpp"
#include "net/roce_headers.hpp"
#include "patience.hpp"
#include "seen_wire.hpp"
#include "weftio/weftio.hpp"

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

namespace weftio::test {

/// Two DPDK ports; each receives the frames that the other sends. In inline mode only turn() runs the engines. With
/// several engines, what an engine sends arrives at the next engine of the other port, as with an RSS that is wrong for
/// every queue pair.
class wired_ports {
 public:
    explicit wired_ports(engine_mode mode, bool rdma_by_packet = false, unsigned engines = 1);
    wired_ports(const wired_ports&) = delete;
    wired_ports& operator=(const wired_ports&) = delete;
    ~wired_ports();

    const port& get(unsigned number) const { return *ports_[number]; }
    port& get(unsigned number) { return *ports_[number]; }
    /// Puts a frame on the wire to a port.
    void send_to(unsigned number, const std::vector<std::uint8_t>& frame) const;
    /// The frames on the wire to a port; they do not arrive.
    std::vector<std::vector<std::uint8_t>> take(unsigned number) const;

 private:
    std::string name_;
    rte_mempool* pool_;
    std::array<std::vector<rte_ring*>, 2> wires_; ///< wires_[n][e] carries frames to engine e of port n
    std::array<std::optional<port>, 2> ports_;
    std::array<seen_wire, 2> seen_;
};

/// The ports of the ends.
struct ends_at {
    ends_at(bool at_one_port, bool by_packet = false, unsigned engines_of_a_port = 1)
        : one_port(at_one_port), packets(by_packet), engines(engines_of_a_port)
    {}
    bool one_port;    ///< both at the first port; at different engines, if it has several
    bool packets;     ///< port_options::rdma_by_packet
    unsigned engines; ///< of each port
};
inline const std::array<ends_at, 5> all_ends{ends_at(false), ends_at(true), ends_at(true, true),
                                             ends_at(false, false, 2), ends_at(true, false, 2)};
inline std::string name_of(const ends_at& where)
{
    const std::string name = where.packets ? "OnePortByPacket" : where.one_port ? "OnePort" : "TwoPorts";
    return where.engines == 1 ? name : name + "OfSeveralEngines";
}

class two_ends {
 public:
    static constexpr std::size_t memory_bytes = 65536;

    explicit two_ends(ends_at where, std::uint32_t depth = 64, std::uint32_t receive_depth = 64,
                      engine_mode mode = engine_mode::inline_worker, rdma_service service = rdma_service::reliable)
        : ports(mode, where.packets, where.engines), places{0, where.one_port ? 0u : 1u}
    {
        for (unsigned end = 0; end < 2; ++end) {
            memories[end].emplace(at(end), cpu, memory_bytes, region_options{.rights = all_rights});
            queues[end] = std::make_unique<fake_pair>(at(end), depth, receive_depth, protection_domain{}, service);
            homes[end] = queues[end]->nic().dump().engine;
        }
    }

    two_ends(ends_at where, rdma_service service) : two_ends(where, 64, 64, engine_mode::inline_worker, service) {}

    port& at(unsigned end) { return ports.get(places[end]); }
    nic::rdma_connection connection(unsigned end) const
    {
        nic::rdma_connection to;
        to.path.source_mac = mac_of(end);
        to.path.source = address_of(end);
        to.path.destination_mac = mac_of(1 - end);
        to.path.destination = address_of(1 - end);
        to.peer_queue = queues[1 - end]->number();
        to.send_psn = first_psn_of(end);
        to.receive_psn = first_psn_of(1 - end);
        to.timeout = timeout;
        return to;
    }
    static std::array<std::uint8_t, 6> mac_of(unsigned end) { return {2, 0, 0, 0, 0, static_cast<std::uint8_t>(end)}; }
    net::roce_gid address_of(unsigned end) const
    {
        const auto last = static_cast<std::uint8_t>(end + 1);
        if (ipv6)
            return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
        return net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 0, 0, last});
    }
    static std::uint32_t first_psn_of(unsigned end) { return 0xfffff0 + end; } ///< PSNs wrap soon
    void connect()
    {
        for (unsigned end = 0; end < 2; ++end)
            queues[end]->connect(connection(end));
    }
    /// Runs the ports until nothing moves.
    void run()
    {
        for (unsigned still = 0; still < 8;)
            still = ports.get(0).turn() + ports.get(1).turn() != 0 ? 0 : still + 1;
    }
    /// Runs the ports until `done`, within `patience`.
    template <class Done>
    bool run_until(Done&& done)
    {
        for (auto end = std::chrono::steady_clock::now() + patience; !done() && std::chrono::steady_clock::now() < end;)
            run();
        return done();
    }
    fake_pair& queue(unsigned end) { return *queues[end]; }
    end_memory& memory(unsigned end) { return *memories[end]; }
    /// The engine of the queue pair, and its unit. The queue pair may be closed.
    unsigned engine(unsigned end) const { return homes[end]; }
    nic::soft::rdma_unit& unit(unsigned end) { return software_nic(at(end)).rdma(engine(end)); }

    bool ipv6 = false;
    std::uint8_t timeout = nic::rdma_connection().timeout;
    wired_ports ports;
    device cpu = device::open("cpu");
    std::array<unsigned, 2> places, homes{};
    std::array<std::optional<end_memory>, 2> memories;
    std::array<std::unique_ptr<fake_pair>, 2> queues;
};

/// Expects that every entry and every packet was counted once. @pre no entry and no packet is in flight
inline void expect_conserved(const nic::rdma_counters& count)
{
    EXPECT_EQ(count.enqueued, count.done + count.skipped + count.failed + count.flushed);
    EXPECT_EQ(count.received, count.filled + count.receive_failed + count.receive_flushed);
    EXPECT_EQ(count.requests, count.executed + count.duplicate_request + count.out_of_sequence + count.not_ready +
                                  count.refused + count.ignored);
}
inline void expect_conserved(const nic::soft::rdma_unit& unit)
{
    EXPECT_EQ(unit.claimed.value(), unit.neighbor.value() + unit.delivered.value() + unit.malformed.value() +
                                        unit.wrong_ip_checksum.value() + unit.wrong_udp_checksum.value() +
                                        unit.rx_icrc_encapsulated.value() + unit.for_nobody.value() +
                                        unit.not_from_peer.value() + unit.other_mac.value() + unit.congestion.value() +
                                        unit.inbox_full.value());
}

} // namespace weftio::test
