// What two programs tell each other before their queue pairs are connected, over TCP.
//
//     auto exchange = server ? weftio::tcp_exchange::listen("18515") : weftio::tcp_exchange::connect("10.0.0.1:18515");
//     queue.connect(exchange.swap(queue.address()));
//     const weftio::remote_region theirs = exchange.swap(weftio::remote_region::of(region));
//     exchange.meet(); // both queue pairs are connected
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/rdma.hpp"

namespace weftio {

struct exchange_options {
    std::chrono::milliseconds timeout{10000}; ///< of each call; 0: none
    /// Asked ten times a second, and after each signal, by a call that waits: true ends the call.
    std::function<bool()> stop{};
};

/// A TCP connection to a peer, through which both ends tell each other the same things in the same order.
///
/// What is sent is neither encrypted nor authenticated: a hello tells the right kind of peer from others, and from
/// other versions, but not a friend from an enemy. Who can reach the port can connect.
///
/// - Ownership: move-only; the destructor closes the connection.
/// - Threads: one at a time.
/// - Signals: a call that waits goes on after a signal handler; no call raises SIGPIPE. The socket is closed on exec.
/// - Errors: swap() and meet() throw `weftio::error`, and the connection is closed then:
///     - `errc::timed_out`         the peer was silent, or took nothing, in the time of the call
///     - `errc::closed`            the peer has closed the connection, or the network has lost it; `stop` said so; an
///                                 earlier call has failed; this object was moved from
///     - `errc::invalid_argument`  the peer makes another call than we, or sends what no tcp_exchange does
class tcp_exchange {
 public:
    /// The most bytes of one swap().
    static constexpr std::size_t most_bytes = 1 << 20;

    /// Waits for one peer, as tcp_listener::accept, and listens no longer then.
    /// @param where  as that of tcp_listener
    /// @throws what tcp_listener's constructor and tcp_listener::accept() throw
    static tcp_exchange listen(const std::string& where, exchange_options options = {});

    /// Blocks until a peer at that address has accepted us: tries again while nobody listens, and while the peer serves
    /// others. A name is looked up first, once, in the time that the system's resolver takes.
    /// @param where  "host:18515", "10.0.0.1:18515", "[fd00::1]:18515"; each address of a name is tried
    /// @throws weftio::error errc::invalid_argument `where` is no host and port, the timeout is negative, or who
    ///         listens there is no tcp_exchange, or one of another version; errc::not_found the name has no address;
    ///         errc::timed_out nobody accepted us in time; errc::closed `stop` said so; errc::out_of_memory no socket
    static tcp_exchange connect(const std::string& where, exchange_options options = {});

    tcp_exchange(tcp_exchange&&) noexcept;
    tcp_exchange& operator=(tcp_exchange&&) noexcept;
    ~tcp_exchange();

    /// Sends our bytes and returns the peer's, which may be more or fewer. Blocks until both have gone; both ends may
    /// send at once.
    /// @throws weftio::error as the class says; errc::invalid_argument also: more than most_bytes of ours, which leaves
    ///         the connection as it is
    std::vector<std::uint8_t> swap(std::span<const std::uint8_t> ours);
    /// The same for what queue pairs need. Regions may be of different number at both ends, also none.
    /// @throws weftio::error as the class says; errc::invalid_argument also: the peer's bytes are no such thing, which
    ///         leaves the connection as it is
    rdma_address swap(const rdma_address& ours);
    remote_region swap(const remote_region& ours);
    std::vector<remote_region> swap(std::span<const remote_region> ours);
    /// Blocks until the peer has called meet() too.
    /// @throws weftio::error as the class says
    void meet();

    /// Whether the peer still has its end open, as far as is known here. Never blocks.
    bool connected() const noexcept;
    /// Its address and port: "10.0.0.2:40312", "[fd00::2]:40312". @pre this object was not moved from
    const std::string& peer() const noexcept;

 private:
    friend class tcp_listener;
    struct state;
    explicit tcp_exchange(std::unique_ptr<state> state) noexcept;
    std::vector<std::uint8_t> make_call(std::string_view kind, std::span<const std::uint8_t> ours);

    std::unique_ptr<state> state_;
};

/// A TCP port where peers are waited for, one after the other.
///
/// - Ownership: move-only; the destructor closes the port. What accept() has returned stays.
/// - Threads: one at a time.
class tcp_listener {
 public:
    /// Takes the port. Peers that connect from now on wait for accept().
    /// @param where  "18515" or ":18515": every address of this host, IPv4 and IPv6; "10.0.0.1:18515",
    ///               "[fd00::1]:18515", "name:18515": that one (of a name the first that this host has). Port 0: one
    ///               that is free
    /// @throws weftio::error errc::invalid_argument `where` is none of these; errc::in_use another socket has the port;
    ///         errc::not_found the address is not one of this host, or the name has none; errc::permission_denied the
    ///         port is below 1024, and the process may not; errc::out_of_memory no socket
    explicit tcp_listener(const std::string& where);
    tcp_listener(tcp_listener&&) noexcept;
    tcp_listener& operator=(tcp_listener&&) noexcept;
    ~tcp_listener();

    std::uint16_t port() const noexcept;

    /// Blocks until a tcp_exchange::connect() of this version has come. Whoever else connects, also several at once, is
    /// refused, or dropped when it stays silent, and ends nothing.
    /// @throws weftio::error errc::timed_out no peer came in time; errc::closed `stop` said so, or this object was
    ///         moved from; errc::invalid_argument the timeout is negative; errc::out_of_memory no socket
    tcp_exchange accept(exchange_options options = {});

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
