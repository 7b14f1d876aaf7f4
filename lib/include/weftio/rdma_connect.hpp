// Queue pairs connect by the connection manager of RDMA (RDMA CM): a server listens at a port number, and clients
// connect to it. No other channel is needed.
//
//     weftio::rdma_listener listener(rdma, 18515);                                     // the server
//     weftio::rdma_connection client = listener.next().accept(queue);
//
//     weftio::rdma_connection server = weftio::rdma_connect(rdma, "10.0.0.1", 18515, queue);
//
// Messages travel as datagrams between the queue pairs 1 of both ports (InfiniBand chapter 12, annex A11). The peer may
// be a program with librdmacm.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weftio/error.hpp"
#include "weftio/rdma.hpp"
#include "weftio/rdma_connections.hpp"

namespace weftio {

namespace connections {
struct held_connection;
}

/// Bytes that a program gives to its peer while they connect. The peer gets them followed by zeros, always as many as
/// the message has room for.
struct rdma_private_data {
    static constexpr std::size_t most_request_bytes = 56; ///< rdma_connect()
    static constexpr std::size_t most_accept_bytes = 196; ///< rdma_request::accept()
    static constexpr std::size_t most_reject_bytes = 148; ///< rdma_request::reject()
};

struct rdma_connect_options {
    std::vector<std::uint8_t> private_data{}; ///< for the peer; see rdma_private_data
    /// How long rdma_connect() and accept() wait for the peer in all. 0: as long as the connection manager repeats its
    /// message, some 5 s.
    std::chrono::milliseconds timeout{10000};
    /// Called ten times a second by a call that waits. Returning true ends the call.
    std::function<bool()> stop{};
    /// Called once, when the peer has disconnected and the queue pair is in ERR. Called by the thread of the connection
    /// manager: must not block, throw, or call Weftio. Not called any more when disconnect() or the destructor of the
    /// connection has returned.
    std::function<void()> on_disconnect{};
};

/// The peer has rejected the connection. `code()` is errc::not_found where nobody listens, else errc::closed.
class rdma_rejected : public error {
 public:
    rdma_rejected(errc code, const std::string& text, std::uint16_t reason, std::vector<std::uint8_t> private_data);

    /// Of the InfiniBand specification, 12.6.7.2: 28, if the program at the peer has rejected.
    std::uint16_t reason() const noexcept { return reason_; }
    /// What the program at the peer has given: most_reject_bytes bytes.
    const std::vector<std::uint8_t>& private_data() const noexcept { return private_data_; }

 private:
    std::uint16_t reason_;
    std::vector<std::uint8_t> private_data_;
};

/// A connection of an rdma_queue that the connection manager has made.
///
/// The disconnect of either side moves the queue pair to ERR: what is not executed is flushed, so kernels that wait
/// end. rdma_queue::reset() makes it usable again, for the next connection; call it when connected() is false.
///
/// - Ownership: move-only; keeps the queue pair, its port and their memory. The rdma_queue may be moved or destroyed.
///   The destructor disconnects, as disconnect() does.
/// - Threads: connected() from any, the rest from one thread at a time.
class rdma_connection {
 public:
    rdma_connection(rdma_connection&&) noexcept;
    rdma_connection& operator=(rdma_connection&&) noexcept;
    ~rdma_connection();

    const std::string& peer_address() const noexcept; ///< IPv4 or IPv6
    std::uint16_t peer_port() const noexcept;
    /// What the peer has given: with rdma_connect(), most_accept_bytes bytes of its accept(), else
    /// most_request_bytes bytes of its rdma_connect().
    const std::vector<std::uint8_t>& private_data() const noexcept;
    /// false as soon as either side has disconnected and the queue pair is in ERR. Never blocks.
    bool connected() const noexcept;
    /// Tells the peer, and moves the queue pair to ERR. Does nothing if either side has disconnected already. Blocks
    /// until the peer has answered, 1 s at most.
    void disconnect();

 private:
    friend class rdma_request;
    friend rdma_connection rdma_connect(const rdma_device& at, const std::string& address, std::uint16_t port,
                                        rdma_queue& queue, rdma_connect_options options);
    explicit rdma_connection(std::shared_ptr<connections::held_connection> state) noexcept;
    std::shared_ptr<connections::held_connection> state_;
};

/// Connects `queue` to a queue pair of a program that listens. Entries and receives that were committed earlier are
/// executed from now on. Both ends use timeout and retry_count of this queue's rdma_queue_options. Each end tells its
/// peer the rnr_retry to use. rdma_queue_options::first_psn has no effect.
///
/// Blocks until the peer has accepted or rejected. On a port in inline mode, this call runs the engine meanwhile. If it
/// throws, the queue is not connected, and may try again; in ERR, where the peer has given up late, after a reset().
/// @param at       the device of the queue
/// @param address  of the peer, IPv4 or IPv6
/// @param port     where the peer listens (port space TCP); not 0
/// @throws rdma_rejected nobody listens there, or the peer has rejected; weftio::error
///         errc::invalid_argument `queue` is a queue of another device, connected already, or of service datagram;
///         `address` is no host address, or of an IP version that the device does not have; `port` is 0, the timeout is
///         negative, or there is too much private data; errc::timed_out the peer does not answer; errc::in_use
///         another queue_pair of the port has queue_pair_options::management, or another rdma_device of the port
///         listens or connects; errc::closed `stop` returned true, or the
///         peer has disconnected at once; errc::out_of_memory
rdma_connection rdma_connect(const rdma_device& at, const std::string& address, std::uint16_t port, rdma_queue& queue,
                             rdma_connect_options options = {});

/// A peer that wants to connect. The peer waits, for a minute if need be.
///
/// - Ownership: move-only; the destructor rejects, unless accept() or reject() was called.
/// - Threads: one at a time. Several requests may be answered at once.
class rdma_request {
 public:
    rdma_request(rdma_request&&) noexcept;
    rdma_request& operator=(rdma_request&&) noexcept;
    ~rdma_request();

    const std::string& peer_address() const noexcept; ///< IPv4 or IPv6
    std::uint16_t peer_port() const noexcept;
    const std::vector<std::uint8_t>& private_data() const noexcept; ///< most_request_bytes bytes
    rdma_service service() const noexcept;                          ///< that the peer's queue pair has
    std::uint32_t path_mtu() const noexcept;                        ///< that the peer proposes, in bytes

    /// Connects a queue of the listener's device to the peer; for a connection of an rdma_connections, pass
    /// `connections[index]`. The connection uses the path MTU, timeout and retries that the peer proposes, and no more
    /// READs and atomics in flight than either end allows. Blocks until the peer has confirmed. On a port in inline
    /// mode, this call runs the engine meanwhile.
    /// @throws weftio::error errc::invalid_argument `queue` is a queue of another device, connected already, or of
    ///         another service than the peer's; the timeout is negative, or there is too much private data: the request
    ///         can still be accepted with others. The path MTU of the queue is less than the peer's: the peer is told.
    ///         errc::closed the peer has given up, `stop` returned true, or this request was answered already;
    ///         errc::timed_out the peer does not confirm
    rdma_connection accept(rdma_queue& queue, rdma_connect_options options = {});
    /// Never blocks. Does nothing if the request was answered already.
    /// @param reason  of the InfiniBand specification, 12.6.7.2; 28 is "consumer reject"
    /// @throws weftio::error errc::invalid_argument there is too much private data
    void reject(const std::vector<std::uint8_t>& private_data = {}, std::uint16_t reason = 28);

 private:
    friend class rdma_listener;
    struct state;
    explicit rdma_request(std::shared_ptr<state> state) noexcept;
    std::shared_ptr<state> state_;
};

struct rdma_listen_options {
    std::uint32_t backlog = 128;  ///< requests that wait for next(), accept() or reject(), at least 1
    std::function<bool()> stop{}; ///< called ten times a second by next(); returning true ends the call
    /// Called whenever a request has come, by the thread of the connection manager: must not block, throw, or call
    /// Weftio. Not called any more when the destructor of the listener has returned.
    std::function<void()> on_request{};
};

/// Listens at a port number of an rdma_device, at all of its addresses. Ports of RDMA are not those of TCP.
///
/// All listeners and connections of a port share one connection manager, which has a thread of its own. It exists from
/// the first to the last of them. Meanwhile, no other rdma_device of the port can listen or connect.
///
/// - Ownership: move-only; keeps the device. The destructor rejects requests that next() has not returned. Connections
///   and requests stay.
/// - Threads: create, move and destroy from one thread at a time; the rest from any.
class rdma_listener {
 public:
    /// @param port  1 to 65535 (port space TCP)
    /// @throws weftio::error errc::invalid_argument `port` or the backlog is 0; errc::in_use another listener of the
    ///         rdma_device has the port, or another queue_pair of the port has queue_pair_options::management, or
    ///         another rdma_device of the port listens or connects;
    ///         errc::not_supported the port's NIC has no management datagrams; errc::out_of_memory
    rdma_listener(const rdma_device& at, std::uint16_t port, rdma_listen_options options = {});
    rdma_listener(rdma_listener&&) noexcept;
    rdma_listener& operator=(rdma_listener&&) noexcept;
    ~rdma_listener();

    std::uint16_t port() const noexcept;
    /// The oldest request. Blocks until there is one. On a port in inline mode, this call runs the engine meanwhile.
    /// @param timeout  0: no limit
    /// @throws weftio::error errc::timed_out no peer came in time; errc::closed `stop` returned true;
    ///         errc::invalid_argument the timeout is negative
    rdma_request next(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
    /// The same without a wait. @return nothing: there is none
    std::optional<rdma_request> try_next();

 private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
