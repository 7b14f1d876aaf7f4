// What a manager knows of one connection, and which of them wait for the user of a listener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "cm/messages.hpp"

namespace weftio::cm {

/// Between which addresses a message travels.
struct path {
    roce_gid local{}, peer{};

    bool operator==(const path&) const = default;
};

/// States of IBTA 12.9.5 to 12.9.7; "idle" is a connection that is gone. An MRA that was sent changes nothing here.
enum class state : std::uint8_t {
    request_sent,     ///< REQ is repeated until an answer comes
    request_delayed,  ///< the peer has sent an MRA for REQ
    reply_received,   ///< waits for the user: ready() or reject()
    request_received, ///< waits for the user: accept() or reject()
    reply_sent,       ///< REP is repeated until RTU comes, or established() is called
    reply_delayed,    ///< the peer has sent an MRA for REP
    established,
    disconnect_sent,  ///< DREQ is repeated until an answer comes
    time_wait,        ///< late packets may arrive: the queue number must not be used anew
    resolve_sent,     ///< SIDR REQ is repeated until an answer comes
    resolve_received, ///< waits for the user: answer()
};

/// "waits for REP", "established": what the connection waits for, or that it waits for nothing.
const char* name_of(state now) noexcept;

struct connection {
    std::uint32_t id = 0;
    std::uint32_t peer_id = 0; ///< 0: not known yet
    path route;
    state now = state::request_sent;
    bool resolves = false;         ///< SIDR
    bool passive = false;          ///< the peer has asked
    bool told = true;              ///< the user wants events
    bool delivered = true;         ///< the user has taken the event that announces it
    bool ended = false;            ///< the user has been told that it is disconnected
    bool delay_sent = false;       ///< the peer has an MRA
    bool has_alternate = false;    ///< REQ had an alternate path
    std::uint32_t listener = 0;    ///< whose user it waits for
    std::uint64_t service = 0;     ///< of SIDR REQ
    std::uint64_t transaction = 0; ///< of REQ or SIDR REQ
    std::uint32_t queue = 0, peer_queue = 0;
    std::uint8_t most_retries = 0, retries = 0;
    std::uint64_t answer_ns = 0; ///< how long an answer may take
    std::uint64_t deadline = 0;  ///< 0: none
    std::optional<mad> last =
        std::nullopt; ///< what is sent again when no answer comes, or when the peer repeats its message
};

/// Connections that are half open, by peer. When there are too many, one of the peer with the most has to go.
class half_open {
 public:
    std::size_t size() const noexcept { return size_; }
    void add(const roce_gid& peer, std::uint32_t id)
    {
        by_peer_[peer].push_back({arrivals_++, id});
        ++size_;
    }
    void remove(const roce_gid& peer, std::uint32_t id)
    {
        const auto found = by_peer_.find(peer);
        size_ -= found->second.remove_if([&](const entry& one) { return one.id == id; });
        if (found->second.empty())
            by_peer_.erase(found);
    }
    /// Which connection makes room for a new one of `newcomer`: the oldest of the peer that has the most; of several
    /// such peers, the oldest of all.
    /// @return nothing: the newcomer has as many as anybody, and more than one
    std::optional<std::uint32_t> victim(const roce_gid& newcomer) const
    {
        const std::list<entry>* most = nullptr;
        for (const auto& [peer, entries] : by_peer_) {
            if (most == nullptr || entries.size() > most->size() ||
                (entries.size() == most->size() && entries.front().arrival < most->front().arrival))
                most = &entries;
        }
        const auto own = by_peer_.find(newcomer);
        const std::size_t share = 1 + (own == by_peer_.end() ? 0 : own->second.size());
        if (most == nullptr || (share > 1 && share >= most->size()))
            return std::nullopt;
        return most->front().id;
    }

 private:
    struct entry {
        std::uint64_t arrival = 0;
        std::uint32_t id = 0;
    };

    std::map<roce_gid, std::list<entry>> by_peer_; ///< each the oldest first
    std::size_t size_ = 0;
    std::uint64_t arrivals_ = 0;
};

} // namespace weftio::cm
