// The rule table of a port: which queue gets a packet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/counter.hpp"
#include "net/packet_headers.hpp"
#include "weftio/flow.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// A receive queue, as the engine numbers them.
struct rx_target {
    static constexpr std::uint32_t closed = 0xffffffff;

    std::uint32_t slot = closed;

    bool operator==(const rx_target&) const = default;
};

/// A rule as its maker fills it in, checked before (flow/validate.hpp). The table copies all but the counters when the
/// rule is added and ignores later changes. Lower `priority` decides first, then lower `sequence`, then the one added
/// first.
struct steering_rule {
    flow_match match{};
    enum flow_action::kind action = flow_action::kind::drop;
    std::vector<std::uint32_t> targets{}; ///< slots: one for `queue`, 1..128 for `rss`, none for `drop`
    rss_key key = rss_key::standard;
    std::uint32_t priority = 0;
    std::uint64_t sequence = 0;
    detail::counter packets{}; ///< hits, also those that end as queue_closed; the engine writes, any thread reads
    detail::counter bytes{};
};

/// A frame on its way in.
struct received_frame {
    std::span<const std::uint8_t> start; ///< the first contiguous segment, which must hold the headers (see parse())
    std::uint32_t bytes = 0;             ///< of the whole frame, for the counters
    std::optional<std::uint16_t> stripped_tci{};
};

struct decision {
    rx_target target{};                       ///< valid unless dropped()
    drop_reason reason = drop_reason::count_; ///< no_match, dropped_by_flow or queue_closed, when dropped()
    std::uint32_t rss_hash = 0;
    bool has_hash = false; ///< an rss rule decided, and there was an IP header
    bool parsed = false;   ///< the caller's packet_headers were filled; a rule that wants every packet looks at none

    bool dropped() const noexcept { return reason != drop_reason::count_; }
};

/// Toeplitz hash over addresses and, for whole UDP and TCP packets, ports; 0 without an IP header. Equals what a NIC
/// computes with the same key: Microsoft's "Verifying the RSS Hash Calculation".
std::uint32_t rss_hash(const packet_headers& headers, rss_key key) noexcept;

/// Entries of the table between a hash and the queues of a rule, as in mlx5: entry i names queue i % queues, and a
/// packet takes entry hash % 128.
inline constexpr std::size_t indirection_entries = 128;

/// The rules of a port. Nothing is locked: the engine calls everything, changes only between two of its turns.
class steering {
 public:
    /// Takes effect with the next decide(). Allocates; on std::bad_alloc nothing has changed.
    void add(std::shared_ptr<steering_rule> rule);
    /// Returns whether the rule was in the table.
    bool remove(const steering_rule* rule) noexcept;
    /// Rules that name `slot` go on matching, and what they would send there is dropped as queue_closed. The number may
    /// be given to a new queue afterwards.
    void forget_queue(std::uint32_t slot) noexcept;
    std::size_t size() const noexcept { return matches_.size(); }
    /// The rules, in the order of decision.
    std::vector<std::shared_ptr<const steering_rule>> all() const;

    /// Finds the first rule that matches, counts its hit, and says where the frame goes. Never blocks or allocates.
    /// @param[out] headers  filled when decision::parsed; may be nullptr
    decision decide(const received_frame& frame, packet_headers* headers) noexcept;
    /// The queue that gets every packet, whatever it is, because the first rule says so; rx_target::closed when packets
    /// have to be looked at.
    std::uint32_t taker_of_all() const noexcept;
    /// For packets that went there without decide(): hits of that rule. @pre taker_of_all() names a queue
    void count_all(std::uint64_t packets, std::uint64_t bytes) noexcept;

 private:
    /// What rules compare, side by side: source, destination, then small fields, so that a match is five masked words.
    using match_words = std::array<std::uint64_t, 5>;

    /// A packet, or the wishes of a rule, in comparable form.
    struct flat_headers {
        match_words words{};
        std::uint16_t source_port = 0;
        std::uint16_t destination_port = 0;
        std::uint8_t fields = 0; ///< which are present: see steering.cpp
    };
    struct flat_match {
        match_words value{};
        match_words mask{};
        port_range source_port{0, 0xffff};
        port_range destination_port{0, 0xffff};
        std::uint8_t needed = 0; ///< fields that a packet must have
        bool everything = false; ///< no field is set
    };
    struct outcome {
        std::shared_ptr<steering_rule> rule;
        std::vector<std::uint32_t> indirection; ///< one entry, or indirection_entries for rss, or none for drop
        enum flow_action::kind action = flow_action::kind::drop;
        rss_key key = rss_key::standard;
        std::uint32_t priority = 0;
        std::uint64_t sequence = 0;
    };

    static flat_headers flatten(const packet_headers& headers) noexcept;
    static flat_match compile(const flow_match& match) noexcept;
    static bool matches(const flat_match& rule, const flat_headers& packet) noexcept;
    static decision apply(const outcome& outcome, const received_frame& frame, const packet_headers* headers) noexcept;

    std::vector<flat_match> matches_; ///< in the order of decision; outcomes_ runs beside it
    std::vector<outcome> outcomes_;
};

} // namespace weftio::nic
