#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "rdma/tcp_exchange_state.hpp"
#include "rdma/tcp_hello.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

using std::chrono::milliseconds;

constexpr const char* connecting = "tcp_exchange";
constexpr milliseconds pause_between_attempts{100}, longest_attempt{2000};

/// Empty: done; else why not.
std::string connect_to(const rdma::tcp_socket& socket, const rdma::tcp_address& to, const rdma::time_limit& limit)
{
    int reason = 0;
    if (::connect(socket.get(), to.get(), to.length) != 0)
        reason = errno;
    if (reason == EINPROGRESS || reason == EINTR) {
        pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
        if (!limit.wait({&ready, 1}, longest_attempt))
            return "no answer";
        socklen_t bytes = sizeof(reason);
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &bytes);
    }
    return reason == 0 ? "" : std::strerror(reason);
}

[[noreturn]] void refuse_peer(const rdma::time_limit& limit, const rdma::incoming_hello& hello, bool stranger)
{
    throw error(errc::invalid_argument,
                stranger
                    ? fmt::format("{}: who listens there is no tcp_exchange: it says \"{}\"; name the port of the "
                                  "peer's tcp_listener",
                                  limit.what(), hello.text())
                    : fmt::format("{}: the peer is of version {}, and this library of version {}; use libraries of "
                                  "the same version at both ends",
                                  limit.what(), hello.version(), rdma::hello_version));
}

/// Empty: the peer has accepted us; else why not.
std::string greet(const rdma::tcp_socket& socket, const rdma::time_limit& limit)
{
    const auto ours = rdma::hello_of(rdma::tcp_role::connects); // fits into an empty socket
    if (const int reason = rdma::send_some(socket, ours).reason; reason != 0)
        return std::strerror(reason);
    rdma::incoming_hello hello(rdma::tcp_role::listens);
    for (pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0}; limit.wait({&ready, 1});)
        switch (hello.receive(socket)) {
            case rdma::hello_verdict::incomplete: break;
            case rdma::hello_verdict::good: return "";
            case rdma::hello_verdict::ended: return "it closes the connection";
            case rdma::hello_verdict::other_role: return "our own words come back"; // TCP may connect a port to itself
            case rdma::hello_verdict::stranger: refuse_peer(limit, hello, true);
            case rdma::hello_verdict::other_version: refuse_peer(limit, hello, false);
        }
    return "it takes the connection and stays silent";
}

} // namespace

tcp_exchange tcp_exchange::connect(const std::string& where, exchange_options options)
{
    const rdma::time_limit limit(options, fmt::format("weftio: {}: connecting to {}", connecting, where));
    std::vector<rdma::tcp_address> addresses =
        rdma::resolve(rdma::tcp_place::of_text(where, connecting, false), connecting);
    std::string why;
    do {
        for (rdma::tcp_address& each : addresses) {
            rdma::tcp_socket socket = rdma::make_socket(each.get()->sa_family, limit.what());
            why = connect_to(socket, each, limit);
            if (why.empty())
                why = greet(socket, limit);
            if (why.empty())
                return tcp_exchange(std::make_unique<state>(state{std::move(socket), std::move(options), each.text()}));
            if (limit.over())
                break;
        }
        limit.wait({}, pause_between_attempts);
    } while (!limit.over());
    limit.expire(fmt::format("no peer accepts us ({})", why),
                 "start the peer's tcp_listener, or name the address and port where it listens");
}

} // namespace weftio
