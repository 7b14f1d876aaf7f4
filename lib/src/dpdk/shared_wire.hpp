// A wire in shared memory as a DPDK port uses it: mbufs become frames, and frames mbufs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "dpdk/port_queue.hpp"
#include "wires/loss.hpp"
#include "wires/member.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace weftio::dpdk {

/// - Threads: the engine of the port calls give(), lose_some() and take(). Any thread calls the others.
class shared_wire {
 public:
    /// Joins. Throws what wires::member throws. @param spec  of the port, for errors
    /// @param lost  of frames that are sent
    shared_wire(std::string_view spec, const std::string& name, const wires::loss& lost = {});
    shared_wire(const shared_wire&) = delete;
    shared_wire& operator=(const shared_wire&) = delete;
    ~shared_wire();

    /// Takes mbufs for received frames there from now on. @param pool  must outlive this
    void receive_into(rte_mempool& pool) noexcept { pool_ = &pool; }
    /// Sends frames in order and frees their mbufs, until a lane is full. Never blocks. Returns how many it took.
    std::uint16_t give(rte_mbuf** frames, std::uint16_t count) noexcept;
    /// Whether frames are lost on purpose.
    bool is_lossy() const noexcept { return loss_.takes_any(); }
    /// Loses and frees some of the frames, if it is_lossy(), as give() does. Keeps the others in order, at the front.
    /// Returns how many.
    std::uint16_t lose_some(rte_mbuf** frames, std::uint16_t count) noexcept;
    /// Receives at most `most` frames into new mbufs. Never blocks. Returns how many.
    std::uint16_t take(rte_mbuf** frames, std::uint16_t most) noexcept;

    wires::member& member() noexcept { return member_; }
    const wires::member& member() const noexcept { return member_; }
    /// Frames that were lost on purpose. Any thread.
    std::uint64_t lost() const noexcept { return lost_.value(); }
    /// Frames that came and were not received: longer than an mbuf, for an earlier member of the slot, or in a lane
    /// that made no sense, which counts once. Any thread.
    std::uint64_t missed() const noexcept { return too_long_.value() + member_.stray() + member_.damaged(); }

 private:
    wires::member::outcome send(const rte_mbuf& frame) noexcept;
    bool has_spare() noexcept;

    static constexpr std::uint16_t mbufs_at_once = 32;

    wires::member member_;
    wires::loss loss_;
    core::counter lost_;
    rte_mempool* pool_ = nullptr;
    std::array<rte_mbuf*, mbufs_at_once> spares_{}; ///< empty mbufs in [0, spare_)
    std::uint16_t spare_ = 0;
    core::counter too_long_;
};

} // namespace weftio::dpdk
