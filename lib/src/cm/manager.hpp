// The connection manager of one port, as a pure state machine: no threads, no clock, no sockets, no DPDK.
//
// Its owner passes in what the user calls, the messages that arrive at queue pair 1, and the time, in nanoseconds of a
// clock that never goes back; it sends what the manager sends, and takes events. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cm/connection.hpp"
#include "cm/messages.hpp"
#include "cm/reasons.hpp"

namespace weftio::cm {

struct settings {
    std::uint64_t guid = 0;            ///< of the device
    std::uint32_t first_id = 0;        ///< communication IDs begin somewhere behind it; random, so that no peer guesses
    std::uint32_t transaction = 0;     ///< upper half of transaction IDs; random, too
    std::uint64_t packet_life_ns = 0;  ///< how long a message travels at most, one way
    std::uint64_t time_wait_ns = 0;    ///< how long a queue number rests after a connection
    std::size_t most_connections = 0;  ///< in all states
    std::uint8_t service_timeout = 24; ///< code: what an MRA asks the peer to wait for
};

/// Where messages leave, to queue pair 1 of the peer. Must not call the manager.
class mad_sink {
 public:
    virtual void send(const path& to, std::span<const std::uint8_t, mad_bytes> bytes) = 0;

 protected:
    ~mad_sink() = default;
};

enum class event_kind : std::uint8_t {
    connect_request,  ///< a REQ for a listener: accept() or reject()
    connect_response, ///< a REP: ready() or reject()
    established,      ///< of the side that has accepted
    rejected,         ///< by the peer; the body is the REJ
    unreachable,      ///< no answer, after all repeats
    disconnected,     ///< by either side
    time_wait_over,   ///< the queue number is free again
    service_request,  ///< a SIDR REQ for a listener: answer()
    service_response, ///< a SIDR REP
    dropped,          ///< waited for the user too long: others needed the room
};

struct event {
    event_kind kind = event_kind::connect_request;
    std::uint32_t id = 0;       ///< communication ID of the connection
    bool gone = false;          ///< the last event of this connection
    std::uint32_t listener = 0; ///< connect_request, service_request
    path route;
    message body; ///< the message that it tells of; of unreachable, the one that was not answered
};

/// What a manager has seen.
struct counts {
    std::uint64_t malformed = 0; ///< no messages of connection management, or impossible ones
    std::uint64_t strangers = 0; ///< messages whose sender, IDs, queue or transaction are not those of the connection
    std::uint64_t untimely = 0;  ///< messages that mean nothing in the connection's state
    std::uint64_t repeated = 0;  ///< messages sent again
    std::uint64_t refused = 0;   ///< REQs and SIDR REQs that found no room
    std::uint64_t dropped = 0;   ///< connections that made room for others
};

/// Every call that names a connection may return refusal::unknown_connection or refusal::wrong_state, and then has done
/// nothing. In messages that a user passes, the manager sets IDs, GUID and, of a REQ, the GIDs of the primary path.
class manager {
 public:
    manager(const settings& with, mad_sink& to) : with_(with), to_(to), next_id_(with.first_id) {}
    manager(const manager&) = delete;
    manager& operator=(const manager&) = delete;

    /// @param local    the address that peers connect to; zeros: any
    /// @param backlog  how many connections may wait for accept(), reject() or answer()
    /// @param listener  set to its number
    refusal listen(std::uint64_t service, const roce_gid& local, std::size_t backlog, std::uint32_t& listener);
    /// Connections whose event was not taken yet are rejected.
    refusal stop_listening(std::uint32_t listener, std::uint64_t now);

    /// Sends a REQ. @param id  set to the communication ID of the new connection
    refusal connect(const path& to, req request, std::uint64_t now, std::uint32_t& id);
    /// Sends a REP.
    refusal accept(std::uint32_t id, rep reply, std::uint64_t now);
    /// Sends a REJ, before the connection is established. Only after a REP, time_wait_over follows.
    refusal reject(std::uint32_t id, rej reason, std::uint64_t now);
    /// Forgets a REQ as if it had not come, for a user who has no room now: the peer repeats it.
    refusal ignore(std::uint32_t id);
    /// Sends an MRA: the user takes longer. The manager does so by itself when the peer repeats its message.
    refusal delay(std::uint32_t id, std::uint8_t service_timeout);
    /// Sends an RTU, which establishes the connection at this side.
    refusal ready(std::uint32_t id, rtu last = {});
    /// A packet of the peer has arrived at the queue pair: it stands for an RTU that is lost.
    refusal established(std::uint32_t id);
    /// Sends a DREQ. Does nothing when either side has disconnected already.
    refusal disconnect(std::uint32_t id, dreq request, std::uint64_t now);
    /// The user forgets the connection: no more events. Whatever the peer must be told is told.
    refusal destroy(std::uint32_t id, std::uint64_t now);
    /// Sends a SIDR REQ. @param timeout  code: how soon the peer is to answer
    refusal resolve(const path& to, sidr_req request, std::uint8_t timeout, std::uint8_t most_retries,
                    std::uint64_t now, std::uint32_t& id);
    /// Sends a SIDR REP.
    refusal answer(std::uint32_t id, sidr_rep reply, std::uint64_t now);

    /// A datagram has arrived at queue pair 1. @param from  `peer` is its source, `local` its destination
    void receive(const path& from, std::span<const std::uint8_t> bytes, std::uint64_t now);
    /// The host of this address is no more. Its connections end as if it had disconnected, and what it was to answer is
    /// unreachable.
    void lose(const roce_gid& peer, std::uint64_t now);
    /// The hosts of which something is awaited, be it the end of a connection.
    std::set<roce_gid> peers() const;
    /// Repeats and gives up what is due.
    void expire(std::uint64_t now);
    /// When expire() has something to do; 0: never, as things are.
    std::uint64_t next_deadline() const noexcept { return deadlines_.empty() ? 0 : deadlines_.begin()->first; }
    /// The oldest event that was not taken. A peer cannot make more of them than there are connections, a few each.
    std::optional<event> next_event();

    /// @return nothing: it is gone
    std::optional<state> state_of(std::uint32_t id) const;
    std::size_t size() const noexcept { return connections_.size(); }
    const counts& counted() const noexcept { return counts_; }

 private:
    struct listening {
        std::uint64_t service = 0;
        roce_gid local{};
        std::size_t backlog = 0;
        half_open waiting;
    };
    using peer_key = std::tuple<roce_gid, std::uint32_t, bool>; ///< address, its communication ID, SIDR
    using queue_key = std::pair<roce_gid, std::uint32_t>;       ///< address, its queue number

    connection* find(std::uint32_t id);
    connection* find_of_peer(const roce_gid& peer, std::uint32_t peer_id, bool resolves);
    std::optional<std::uint32_t> listener_of(std::uint64_t service, const roce_gid& local) const;

    std::uint32_t free_id();
    std::uint64_t transaction_of(std::uint32_t id) const noexcept
    {
        return std::uint64_t{with_.transaction} << 32 | id;
    }
    std::uint64_t answer_ns(std::uint8_t code) const noexcept;
    connection& add(connection one);
    void release(connection& one);
    bool make_room(const roce_gid& peer);
    bool make_room_in_backlog(listening& at, const roce_gid& peer);
    void evict(connection& one);
    void index(connection& one, bool is_in);
    void enter(connection& one, state next);
    void enter_time_wait(connection& one, std::uint64_t now);
    void wait_until(connection& one, std::uint64_t deadline);

    void send(const path& to, const mad& what);
    void send(connection& one, mad what, std::uint64_t now);
    void send_rej(connection& one, rej reason);
    void send_rej(const path& to, const mad& of, about what, std::uint32_t peer_id, reject_reason why);
    void send_mra(connection& one, std::uint8_t service_timeout);
    void send_drep(const path& to, const mad& of, const dreq& request);
    void send_dreq(connection& one, dreq request, std::uint64_t now);
    void repeat_last(connection& one);
    void tell(connection& one, event_kind kind, const message& body, bool gone = false);
    void tell_end(connection& one, event_kind kind, const message& body);

    void give_up(connection& one, std::uint64_t now);
    void lose(connection& one, std::uint64_t now);
    void expire(connection& one, std::uint64_t now);
    void abort_stale(connection& old, std::uint64_t now);
    connection* of_queue(const roce_gid& peer, std::uint32_t queue, std::uint32_t but_id);

    connection* addressed(const path& from, std::uint32_t id, std::uint32_t peer_id);
    void take(const path& from, const mad& whole, const req& request, std::uint64_t now);
    void take(const path& from, const mad& whole, const mra& delayed, std::uint64_t now);
    void take(const path& from, const mad& whole, const rej& reason, std::uint64_t now);
    void take(const path& from, const mad& whole, const rep& reply, std::uint64_t now);
    void take(const path& from, const mad& whole, const rtu& last, std::uint64_t now);
    void take(const path& from, const mad& whole, const dreq& request, std::uint64_t now);
    void take(const path& from, const mad& whole, const drep& reply, std::uint64_t now);
    void take(const path& from, const mad& whole, const sidr_req& request, std::uint64_t now);
    void take(const path& from, const mad& whole, const sidr_rep& reply, std::uint64_t now);
    void take(const path& from, const mad& whole, const lap& request, std::uint64_t now);
    void take(const path& from, const mad& whole, const apr& reply, std::uint64_t now);
    bool is_repeated(const path& from, const mad& whole, const req& request);
    bool is_acceptable(const path& from, const mad& whole, const req& request, std::uint64_t now);
    void take_new_reply(connection& one, const mad& whole, const rep& reply, std::uint64_t now);

    const settings with_;
    mad_sink& to_;
    std::uint32_t next_id_, next_listener_ = 0;
    std::map<std::uint32_t, listening> listeners_;
    std::unordered_map<std::uint32_t, connection> connections_; ///< by communication ID
    std::map<peer_key, std::uint32_t> by_peer_;                 ///< those that peers have asked for
    std::map<queue_key, std::uint32_t> by_queue_;               ///< those that believe to be connected, or soon
    std::set<std::pair<std::uint64_t, std::uint32_t>> deadlines_;
    std::deque<std::uint32_t> time_waits_; ///< in the order of their ends; some may be gone
    half_open half_open_;
    std::deque<event> events_;
    counts counts_;
};

} // namespace weftio::cm
