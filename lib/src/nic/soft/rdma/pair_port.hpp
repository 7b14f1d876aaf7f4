// What queue pairs have in common: the port that they are at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "nic/soft/rdma/rdma_wire.hpp"
#include "nic/soft/rdma/rdma_work.hpp"
#include "roce/transport.hpp"
#include "roce/workspace.hpp"

namespace weftio::nic::soft {

class queue_pair;

/// What each queue pair may send in its turn. While one is in a hurry, or another unit of the engine has work, the share of
/// all is one packet, so that the next turn comes soon; else it grows, so that a packet costs less.
///
/// Those that copy within the port wait then, and for some turns longer (work_list::defer): one of them has a turn in each
/// `turns_to_a_deferred`. What that costs beside its bytes is little beside so many turns, and its bytes are what all of
/// them would have copied in these.
class turn_shares {
 public:
    static constexpr std::uint32_t least_bytes = 1,
                                   most_bytes = 16 * (net::largest_path_mtu + roce::allowance::of_a_packet),
                                   most_bytes_alone = 4 * most_bytes;
    static constexpr std::uint32_t turns_to_a_deferred = 6, bytes_of_a_deferred = 1024, turns_until_calm = 32;

    /// Of a queue pair in this turn, as roce::allowance counts them.
    std::uint32_t bytes() const noexcept { return deferred_bytes_ != 0 ? deferred_bytes_ : bytes_; }
    /// Whether somebody was in a hurry lately, or had work.
    bool are_short() const noexcept { return calm_turns_ < turns_until_calm; }
    /// A queue pair has had its turn. @param moved  what of it
    void count(bool moved, bool in_a_hurry) noexcept
    {
        active_ += moved || in_a_hurry;
        hurried_ = hurried_ || in_a_hurry;
    }
    /// Whether it is time for the turn of one that is deferred, of so many. bytes() is for that one then.
    bool begin_deferred(std::uint32_t of) noexcept
    {
        if (of == 0 || ++turns_ < turns_to_a_deferred)
            return false;
        turns_ = 0;
        deferred_bytes_ = static_cast<std::uint32_t>(
            std::min(std::uint64_t{of} * turns_to_a_deferred * bytes_of_a_deferred, std::uint64_t{most_bytes_alone}));
        return true;
    }
    /// All have had their turn. @param deferred  how many wait for theirs
    void next_turn(bool others_have_work, std::uint32_t deferred) noexcept
    {
        active_ += deferred;
        const bool soon = others_have_work || (hurried_ && active_ > 1);
        bytes_ = soon ? least_bytes : std::min(bytes_ * 2, active_ > 1 ? most_bytes : most_bytes_alone);
        calm_turns_ = soon ? 0 : std::min(calm_turns_ + 1, turns_until_calm);
        deferred_bytes_ = active_ = 0;
        hurried_ = false;
    }

 private:
    std::uint32_t bytes_ = most_bytes, deferred_bytes_ = 0;
    std::uint32_t active_ = 0, turns_ = 0, calm_turns_ = turns_until_calm;
    bool hurried_ = false;
};

/// One for the queue pairs of an engine.
class pair_port {
 public:
    explicit pair_port(const dpdk::wire& to_driver) : wire(to_driver) {}

    /// Has a queue pair of this port execute a packet, at once. @param partner  nullptr: there is none of that number with
    /// that peer, and the packet is lost
    /// @return false: the payload has gone away, and nothing was executed
    virtual bool execute(queue_pair* partner, const roce::roce_headers& headers,
                         std::span<const roce::piece> payload) = 0;
    /// The queue pair has a turn soon.
    virtual void wake(std::uint32_t number) noexcept = 0;

    rdma_wire wire;
    turn_shares shares;
    entry_copies copies;
    roce::workspace work;

 protected:
    ~pair_port() = default;
};

/// The sink of a connection between two queue pairs of one port: no packet is built.
class own_sink final : public roce::packet_sink {
 public:
    /// Packets that are executed as one. Their payload is what a copy takes in some microseconds.
    static constexpr std::uint32_t most_packets_at_once = 16;

    own_sink(pair_port& port, queue_pair* partner) noexcept : port_(port), partner_(partner) {}

    bool send(const roce::roce_headers& headers, std::span<const roce::piece> payload) override
    {
        payload_gone_ = !port_.execute(partner_, headers, payload);
        return !payload_gone_;
    }
    std::uint32_t most_at_once() const noexcept override { return most_packets_at_once; }
    bool payload_gone() const noexcept override { return payload_gone_; }

 private:
    pair_port& port_;
    queue_pair* const partner_;
    bool payload_gone_ = false;
};

} // namespace weftio::nic::soft
