// The rule table of an engine: decides which queue gets a packet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/counter.hpp"
#include "net/packet_headers.hpp"
#include "weftio/counters.hpp"
#include "weftio/flow_match.hpp"

namespace weftio::nic::soft {

/// A receive queue, by its number at the port.
struct rx_target {
    static constexpr std::uint32_t closed = 0xffffffff;

    std::uint32_t queue = closed;

    bool operator==(const rx_target&) const = default;
};

/// What the driver of the port has done for a rule (see offloads, which writes it). Any thread may read it.
struct driver_share {
    std::atomic<bool> executes{false}; ///< the driver executes the rule now
    std::atomic<std::uint64_t> packets{0};
    std::atomic<std::uint64_t> bytes{0};
};

/// A steering rule. flows/validate.hpp has checked it. The table copies all members but the counters when the rule is
/// added, and ignores later changes. The rule with the lower `priority` decides first, then the one with the lower
/// `sequence`, then the one that was added first.
struct steering_rule {
    flow_match match{};
    flow_kind action = flow_kind::drop;
    std::vector<std::uint32_t> targets{}; ///< queue numbers: one for `queue`, 1..128 for `rss`, none for `drop`
    rss_key key = rss_key::standard;
    std::uint32_t priority = 0;
    std::uint64_t sequence = 0;
    core::counter packets{}; ///< hits, including those dropped as queue_closed; the engine writes, any thread reads
    core::counter bytes{};
    driver_share driver{}; ///< in the copy of the first engine only
};

/// A received frame, as the rules see it.
struct received_frame {
    std::span<const std::uint8_t> start; ///< the first segment, which must hold the headers (see parse())
    std::uint32_t bytes = 0;             ///< length of the whole frame, for the counters
    std::optional<std::uint16_t> stripped_tci{};
};

struct decision {
    rx_target target{};                       ///< valid unless dropped()
    drop_reason reason = drop_reason::count_; ///< no_match, dropped_by_flow or queue_closed, when dropped()
    std::uint32_t rss_hash = 0;
    bool has_hash = false; ///< an rss rule decided, and the frame has an IP header
    bool parsed = false; ///< the caller's packet_headers were filled; a rule that matches every packet reads no header

    bool dropped() const noexcept { return reason != drop_reason::count_; }
};

/// The Toeplitz hash over the addresses and, for unfragmented UDP and TCP packets, the ports; 0 without an IP header.
/// It equals what a NIC computes with the same key (Microsoft, "Verifying the RSS Hash Calculation").
std::uint32_t rss_hash(const net::packet_headers& headers, rss_key key) noexcept;

/// Size of the table from a hash to the queues of an rss rule, as in mlx5: entry i names queue i % queues, and a packet
/// takes entry hash % 128.
inline constexpr std::size_t indirection_entries = 128;

/// The rules of a port, as one engine applies them. No lock is needed: only the engine calls decide() and count_all(),
/// and changes are made between two of its turns.
class steering {
 public:
    /// Adds a rule, which takes effect with the next decide(). Allocates; on std::bad_alloc nothing has changed.
    void add(std::shared_ptr<steering_rule> rule);
    /// Removes a rule. Returns whether it was in the table.
    bool remove(const steering_rule* rule) noexcept;
    /// A queue is closed: rules that name `queue` still match, but their packets for it are dropped as queue_closed. A
    /// new queue may then get the number.
    void forget_queue(std::uint32_t queue) noexcept;
    std::size_t size() const noexcept { return matches_.size(); }
    /// The rules, in the order in which they decide.
    std::vector<std::shared_ptr<const steering_rule>> all() const;

    /// Receive step 3: finds the first rule that matches, counts its hit, and says which queue gets the frame. Never
    /// blocks or allocates.
    /// @param[in,out] headers  filled when decision::parsed is true; may be nullptr
    /// @param parsed           `headers` are those of the frame already
    decision decide(const received_frame& frame, net::packet_headers* headers, bool parsed = false) noexcept;
    /// The queue that gets every packet, because the first rule matches all; rx_target::closed: packets must be
    /// examined.
    std::uint32_t taker_of_all() const noexcept;
    /// Counts hits of the first rule for packets that were delivered without decide().
    /// @pre taker_of_all() names a queue
    void count_all(std::uint64_t packets, std::uint64_t bytes) noexcept;

 private:
    /// What rules compare: source address, destination address, then short fields. A match is a comparison of five
    /// masked words.
    using match_words = std::array<std::uint64_t, 5>;

    /// The headers of a packet in comparable form.
    struct flat_headers {
        match_words words{};
        std::uint16_t source_port = 0;
        std::uint16_t destination_port = 0;
        std::uint8_t fields = 0; ///< fields that the packet has: bits of `field` in steering.cpp
    };
    struct flat_match {
        match_words value{};
        match_words mask{};
        port_range source_port{0, 0xffff};
        port_range destination_port{0, 0xffff};
        std::uint8_t needed = 0; ///< fields that a packet must have to match
        bool everything = false; ///< the rule names no field, so every packet matches
    };
    struct outcome {
        std::shared_ptr<steering_rule> rule;
        /// Queue numbers: one for queue, indirection_entries for rss, none for drop.
        std::vector<std::uint32_t> indirection;
        flow_kind action = flow_kind::drop;
        rss_key key = rss_key::standard;
        std::uint32_t priority = 0;
        std::uint64_t sequence = 0;
    };

    static flat_headers flatten(const net::packet_headers& headers) noexcept;
    static flat_match compile(const flow_match& match) noexcept;
    static bool matches(const flat_match& rule, const flat_headers& packet) noexcept;
    static decision apply(const outcome& outcome, const received_frame& frame,
                          const net::packet_headers* headers) noexcept;

    std::vector<flat_match> matches_; ///< in the order in which rules decide; outcomes_[i] belongs to matches_[i]
    std::vector<outcome> outcomes_;
};

} // namespace weftio::nic::soft
