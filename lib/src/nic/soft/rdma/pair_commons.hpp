// What the queue pairs of one engine share: the sender, turn shares, memory, the list of queue pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic/soft/engine/turn_rounds.hpp"
#include "nic/soft/rdma/roce_sender.hpp"
#include "nic/soft/rdma/staged_copies.hpp"
#include "nic/soft/work/work_list.hpp"
#include "roce/transport.hpp"
#include "roce/workspace.hpp"

namespace weftio::nic::soft {

/// How much each queue pair may send in its turn. While one of several active queue pairs is in a hurry, or another
/// unit of the engine has work, each may send one packet, so that its next turn comes soon. Otherwise the share grows,
/// so that a packet costs less.
///
/// Queue pairs with much to move are deferred meanwhile, and for `turns_until_calm` turns after. One of them has a turn
/// in every `turns_to_a_deferred` turns, one after the other. It may then move what all deferred ones would have moved
/// in these turns, so that the fixed cost of its turn is small.
class turn_shares {
 public:
    static constexpr std::uint32_t least_bytes = 1,
                                   most_bytes = 16 * (net::largest_path_mtu + roce::allowance::of_a_packet),
                                   most_bytes_alone = 4 * most_bytes;
    static constexpr std::uint32_t turns_to_a_deferred = 6, bytes_of_a_deferred = 1024, turns_until_calm = 32;

    /// The share of a queue pair in this turn, as roce::allowance counts bytes.
    std::uint32_t bytes_for(std::uint32_t number) const noexcept
    {
        return number == chosen_ ? bytes_of_chosen_ : bytes_;
    }
    /// Whether shares were one packet within the last `turns_until_calm` turns.
    bool are_short() const noexcept { return calm_turns_ < turns_until_calm; }
    /// Whether a deferred queue pair has no turn now.
    bool defers(std::uint32_t number) const noexcept { return are_short() && number != chosen_; }
    void reserve(std::size_t queue_pairs) { deferred_.reserve(queue_pairs); }
    /// Defers a queue pair until next_turn() wakes it. @pre reserve()
    void defer(std::uint32_t number) noexcept { deferred_.push_back(number); }
    void recall(std::uint32_t number) noexcept { std::erase(deferred_, number); }
    bool has_deferred() const noexcept { return !deferred_.empty(); }
    /// Notes the turn of a queue pair. @param moved  whether the turn moved anything
    void count(bool moved, bool in_a_hurry) noexcept
    {
        active_ += moved || in_a_hurry;
        hurried_ = hurried_ || in_a_hurry;
    }
    /// All queue pairs have had their turn. @param wake  is called with the number of each that is deferred no more
    template <class Wake>
    void next_turn(bool others_have_work, Wake&& wake)
    {
        active_ += deferred_.size();
        const bool soon = others_have_work || (hurried_ && active_ > 1);
        bytes_ = soon ? least_bytes : std::min(bytes_ * 2, active_ > 1 ? most_bytes : most_bytes_alone);
        calm_turns_ = soon ? 0 : std::min(calm_turns_ + 1, turns_until_calm);
        active_ = chosen_ = 0;
        hurried_ = false;
        if (!are_short()) {
            std::ranges::for_each(deferred_, wake);
            deferred_.clear();
        } else if (has_deferred() && ++turns_ >= turns_to_a_deferred) {
            choose();
            wake(chosen_);
        }
    }

 private:
    void choose() noexcept
    {
        const std::uint64_t bytes = std::uint64_t{bytes_of_a_deferred} * turns_to_a_deferred * deferred_.size();
        bytes_of_chosen_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, most_bytes_alone));
        chosen_ = deferred_.front();
        deferred_.erase(deferred_.begin());
        turns_ = 0;
    }

    std::uint32_t bytes_ = most_bytes, calm_turns_ = turns_until_calm, turns_ = 0;
    std::size_t active_ = 0;
    bool hurried_ = false;
    std::vector<std::uint32_t> deferred_; ///< numbers of queue pairs, the one that has waited longest first
    std::uint32_t chosen_ = 0;            ///< has its turn although it was deferred; 0: none
    std::uint32_t bytes_of_chosen_ = 0;
};

/// One object for all queue pairs of an engine.
struct pair_commons {
    /// @param first  the lowest number of a queue pair
    pair_commons(const dpdk::port_queue& to_driver, std::uint32_t first, turn_rounds& of_port)
        : sender(to_driver), rounds(of_port), queues(first)
    {
        sender.serve_staged(staged);
    }

    staged_copies staged;
    roce_sender sender;
    turn_rounds& rounds;
    turn_shares shares;
    roce::workspace work;
    work_list queues; ///< destroyed first: queue pairs return memory to `work`
};

} // namespace weftio::nic::soft
