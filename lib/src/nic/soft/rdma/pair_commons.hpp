// What the queue pairs of one engine share: the sender, turn shares, memory, the list of queue pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "nic/soft/rdma/roce_sender.hpp"
#include "nic/soft/work/work_list.hpp"
#include "roce/transport.hpp"
#include "roce/workspace.hpp"

namespace weftio::nic::soft {

class queue_pair;
class rdma_unit;

/// How much each queue pair may send in its turn. While a queue pair is in a hurry, or another unit of the engine has
/// work, each may send one packet, so that its next turn comes soon. Otherwise the share grows, so that a packet costs
/// less.
///
/// Queue pairs that copy within the port are deferred meanwhile, and for `turns_until_calm` turns after
/// (work_list::defer()). One of them has a turn in every `turns_to_a_deferred` turns. It may then copy what all
/// deferred ones would have copied in these turns, so that the fixed cost of its turn is small.
class turn_shares {
 public:
    static constexpr std::uint32_t least_bytes = 1,
                                   most_bytes = 16 * (net::largest_path_mtu + roce::allowance::of_a_packet),
                                   most_bytes_alone = 4 * most_bytes;
    static constexpr std::uint32_t turns_to_a_deferred = 6, bytes_of_a_deferred = 1024, turns_until_calm = 32;

    /// The share of a queue pair in this turn, as roce::allowance counts bytes.
    std::uint32_t bytes() const noexcept { return deferred_bytes_ != 0 ? deferred_bytes_ : bytes_; }
    /// Whether a queue pair was in a hurry, or another unit had work, within the last `turns_until_calm` turns.
    bool are_short() const noexcept { return calm_turns_ < turns_until_calm; }
    /// Notes the turn of a queue pair. @param moved  whether the turn moved anything
    void count(bool moved, bool in_a_hurry) noexcept
    {
        active_ += moved || in_a_hurry;
        hurried_ = hurried_ || in_a_hurry;
    }
    /// Whether one of `of` deferred queue pairs has a turn now. If so, bytes() is its share.
    bool begin_deferred(std::uint32_t of) noexcept
    {
        if (of == 0 || ++turns_ < turns_to_a_deferred)
            return false;
        turns_ = 0;
        deferred_bytes_ = static_cast<std::uint32_t>(
            std::min(std::uint64_t{of} * turns_to_a_deferred * bytes_of_a_deferred, std::uint64_t{most_bytes_alone}));
        return true;
    }
    /// All queue pairs have had their turn. @param deferred  number of deferred queue pairs
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

/// One object for all queue pairs of an engine.
struct pair_commons {
    /// @param first  the lowest number of a queue pair  @param owner  must outlive this
    pair_commons(const dpdk::port_queue& to_driver, std::uint32_t first, rdma_unit& owner)
        : sender(to_driver), queues(first), unit(owner)
    {}

    roce_sender sender;
    turn_shares shares;
    roce::workspace work;
    work_list queues; ///< destroyed first: queue pairs return memory to `work`
    rdma_unit& unit;
};

/// The sink of a connection between two queue pairs of one engine. Builds no packets.
class own_sink final : public roce::packet_sink {
 public:
    /// Most packets executed as one. Copying their payload takes some microseconds.
    static constexpr std::uint32_t most_packets_at_once = 16;

    own_sink(rdma_unit& unit, queue_pair* partner) noexcept : unit_(unit), partner_(partner) {}

    bool send(const roce::roce_headers& headers, std::span<const roce::piece> payload) override;
    std::uint32_t most_at_once() const noexcept override { return most_packets_at_once; }
    bool payload_gone() const noexcept override { return payload_gone_; }

 private:
    rdma_unit& unit_;
    queue_pair* const partner_;
    bool payload_gone_ = false;
};

} // namespace weftio::nic::soft
