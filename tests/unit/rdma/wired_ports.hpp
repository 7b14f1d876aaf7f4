// Two DPDK ports that are joined by a wire of DPDK rings.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
    /// The ports of two ends: one each, or the first for both.
    std::array<port*, 2> of_ends(bool one_port) { return {&get(0), &get(one_port ? 0 : 1)}; }
    /// In inline mode: runs both ports until nothing moves, `most` times at most.
    void run(std::size_t most = SIZE_MAX)
    {
        for (std::size_t still = 0, turns = 0; still < 8 && turns < most; ++turns)
            still = get(0).turn() + get(1).turn() != 0 ? 0 : still + 1;
    }
    /// Runs the ports until `done`, within `patience`.
    template <class Done>
    bool run_until(Done&& done, std::size_t most = SIZE_MAX)
    {
        for (auto end = std::chrono::steady_clock::now() + patience; !done() && std::chrono::steady_clock::now() < end;)
            run(most);
        return done();
    }
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

} // namespace weftio::test
