// Two programs connect over TCP and exchange the data that their queue pairs need.
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
    std::chrono::milliseconds timeout{10000}; ///< time limit of each call; 0: no limit
    /// Called ten times a second, and after each signal, by a call that waits. Returning true ends the call.
    std::function<bool()> stop{};
};

/// A TCP connection to a peer. Both ends make the same calls in the same order.
///
/// Bytes are neither encrypted nor authenticated: any host that reaches the port can connect. A hello message rejects
/// other programs and other versions of tcp_exchange; it is no protection.
///
/// - Ownership: move-only; the destructor closes the connection.
/// - Threads: one at a time.
/// - Signals: a call that waits continues after a signal handler; no call raises SIGPIPE. The socket is closed on exec.
/// - Errors: swap() and meet() throw `weftio::error` and close the connection:
///     - `errc::timed_out`         the peer sent or received too little within the timeout
///     - `errc::closed`            the peer closed the connection; the network lost it; `stop` returned true; an
///                                 earlier call failed; this object was moved from
///     - `errc::invalid_argument`  the peer makes another call, or sends what no tcp_exchange sends
class tcp_exchange {
 public:
    /// The most bytes of one swap().
    static constexpr std::size_t most_bytes = 1 << 20;

    /// Accepts one peer, then closes the port.
    /// @param where  as for tcp_listener
    /// @throws weftio::error as tcp_listener's constructor and tcp_listener::accept()
    static tcp_exchange listen(const std::string& where, exchange_options options = {});

    /// Connects to a peer that listens. Blocks until it accepts; retries while no program listens there, and while the
    /// peer serves others. First resolves the name once, which takes as long as the system's resolver takes.
    /// @param where  "host:18515", "10.0.0.1:18515", "[fd00::1]:18515"; tries every address of a name
    /// @throws weftio::error errc::invalid_argument `where` is no host and port, the timeout is negative, or the
    ///         program that listens there is no tcp_exchange, or one of another version; errc::not_found the name has
    ///         no address; errc::timed_out no peer accepted in time; errc::closed `stop` returned true;
    ///         errc::out_of_memory no socket could be made
    static tcp_exchange connect(const std::string& where, exchange_options options = {});

    tcp_exchange(tcp_exchange&&) noexcept;
    tcp_exchange& operator=(tcp_exchange&&) noexcept;
    ~tcp_exchange();

    /// Sends `ours` and returns the bytes of the peer, whose number may differ. Blocks until both have been
    /// transferred. Both ends may send at once.
    /// @throws weftio::error see the class; errc::invalid_argument also if `ours` has more than most_bytes: the
    ///         connection then stays open
    std::vector<std::uint8_t> swap(std::span<const std::uint8_t> ours);
    /// The same for addresses and regions of queue pairs. The ends may swap different numbers of regions, also none.
    /// @throws weftio::error see the class; errc::invalid_argument also if the peer's bytes are no address or region:
    ///         the connection then stays open
    rdma_address swap(const rdma_address& ours);
    remote_region swap(const remote_region& ours);
    std::vector<remote_region> swap(std::span<const remote_region> ours);
    /// Blocks until the peer calls meet() too.
    /// @throws weftio::error see the class
    void meet();

    /// Whether the connection is open, as far as this host knows. Never blocks.
    bool connected() const noexcept;
    /// The peer's address and port: "10.0.0.2:40312", "[fd00::2]:40312". @pre this object was not moved from
    const std::string& peer() const noexcept;

 private:
    friend class tcp_listener;
    struct state;
    explicit tcp_exchange(std::unique_ptr<state> state) noexcept;
    std::vector<std::uint8_t> make_call(std::string_view kind, std::span<const std::uint8_t> ours);

    std::unique_ptr<state> state_;
};

/// A TCP port that accepts peers, one after the other.
///
/// - Ownership: move-only; the destructor closes the port. Accepted connections stay open.
/// - Threads: one at a time.
class tcp_listener {
 public:
    /// Listens. Peers that connect from now on wait for accept().
    /// @param where  "18515" or ":18515": all addresses of this host, IPv4 and IPv6; "10.0.0.1:18515",
    ///               "[fd00::1]:18515", "name:18515": that address (the first of the name that this host has). Port 0:
    ///               any free port
    /// @throws weftio::error errc::invalid_argument `where` is none of these; errc::in_use another socket has the port;
    ///         errc::not_found this host does not have the address, or the name has none; errc::permission_denied the
    ///         process may not listen below port 1024; errc::out_of_memory no socket
    explicit tcp_listener(const std::string& where);
    tcp_listener(tcp_listener&&) noexcept;
    tcp_listener& operator=(tcp_listener&&) noexcept;
    ~tcp_listener();

    std::uint16_t port() const noexcept; ///< 0: this object was moved from

    /// Blocks until a tcp_exchange::connect() of this version has connected. Other clients, also many at once, are
    /// rejected or timed out; accept() keeps waiting.
    /// @throws weftio::error errc::timed_out no peer came in time; errc::closed `stop` returned true, or this object
    ///         was moved from; errc::invalid_argument the timeout is negative; errc::out_of_memory no socket could be
    ///         made
    tcp_exchange accept(exchange_options options = {});

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
