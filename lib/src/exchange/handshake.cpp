// How two ends find each other: tcp_exchange::connect(), tcp_listener, and the hellos of both.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "exchange/tcp.hpp"

namespace weftio {

namespace {

using exchange::tcp_socket, exchange::timed_call;

constexpr std::chrono::milliseconds pause_between_attempts{100}, longest_attempt{2000};
constexpr std::size_t most_candidates = 16;
constexpr int backlog = 64;

// Each end begins with a hello of 16 bytes: a mark, the version, its role, 0, 0.
constexpr char hello_version = 1, connects = 'c', listens = 'l';
constexpr std::ptrdiff_t version_at = 12, role_at = 13;

/// ended: the connection did, before the hello. stranger: another protocol. same_role: both ends listen, or both
/// connect, or our own hello comes back.
enum class verdict { incomplete, accepted, ended, stranger, other_version, same_role };

std::string hello_of(char role)
{
    return "weftio swap\n" + std::string{hello_version, role, 0, 0};
}

/// Into an empty socket, which has room for it. Returns whether the connection took it; errno says why not.
bool send_hello(const tcp_socket& to, char role)
{
    const std::string hello = hello_of(role);
    return ::send(to.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size());
}

/// Appends what has arrived of a hello, nothing behind it, and judges all of it.
verdict receive_hello(const tcp_socket& from, std::string& received, char role)
{
    const std::string right = hello_of(role);
    if (exchange::receive_some(from, received, right.size()) != 0)
        return verdict::ended;
    const auto wrong_at = std::mismatch(received.begin(), received.end(), right.begin()).first - received.begin();
    if (wrong_at > role_at || wrong_at == std::ssize(received)) // the last two bytes have no meaning yet
        return received.size() < right.size() ? verdict::incomplete : verdict::accepted;
    return wrong_at < version_at    ? verdict::stranger
           : wrong_at == version_at ? verdict::other_version
                                    : verdict::same_role;
}

/// What an errno of a socket function means, and what to do.
std::pair<errc, const char*> failure_of(int reason) noexcept
{
    switch (reason) {
        case EADDRINUSE:
            return {errc::in_use, "stop the program that has the port (\"ss -ltnp\" shows it), or name another port"};
        case EACCES:
        case EPERM: return {errc::permission_denied, "name a port of 1024 or above, or run as root"};
        case EADDRNOTAVAIL:
            return {errc::not_found, "name an address that an interface of this host has (\"ip address\")"};
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM: return {errc::out_of_memory, "raise the limit of open files (\"ulimit -n\")"};
        case EAFNOSUPPORT: return {errc::not_supported, "name another address"};
        default: return {errc::device_error, "name another address"};
    }
}

[[noreturn]] void fail_for(int reason, const timed_call& call)
{
    const auto [code, advice] = failure_of(reason);
    call.fail(code, "{}; {}", std::strerror(reason), advice);
}

/// Sets TCP_NODELAY, which accepted sockets inherit.
tcp_socket open_socket(const addrinfo& of, const timed_call& call)
{
    const int on = 1;
    tcp_socket opened(::socket(of.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!opened)
        fail_for(errno, call);
    ::setsockopt(opened.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return opened;
}

/// Empty: the peer has accepted the connection; else why not.
/// @throws weftio::error errc::invalid_argument no tcp_exchange of this version listens there
std::string attempt(const tcp_socket& socket, const addrinfo& to, const timed_call& call)
{
    if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS)
        return std::strerror(errno);
    if (!call.wait({{socket.get(), POLLOUT, 0}}, timed_call::clock::now() + longest_attempt))
        return "no answer";
    if (!send_hello(socket, connects)) // fails, too, when TCP did not connect
        return std::strerror(errno);
    for (std::string received; call.wait({{socket.get(), POLLIN, 0}});)
        switch (receive_hello(socket, received, listens)) {
            case verdict::incomplete: break;
            case verdict::accepted: return "";
            case verdict::ended: return "it closed the connection";
            case verdict::same_role: return "our own hello came back"; // TCP may connect a port to itself
            case verdict::stranger:
                call.fail(errc::invalid_argument,
                          "the program that listens there is not a tcp_exchange: it sent \"{}\"; name the port of the "
                          "peer's tcp_listener",
                          received);
            case verdict::other_version:
                call.fail(errc::invalid_argument,
                          "the peer has version {}, this library has version {}; use libraries of the same version at "
                          "both ends",
                          static_cast<unsigned char>(received[version_at]), int{hello_version});
        }
    return "it accepted the connection but sent nothing";
}

} // namespace

tcp_exchange tcp_exchange::connect(const std::string& where, exchange_options options)
{
    const timed_call call(options, "weftio: tcp_exchange: connecting to " + where);
    const exchange::address_list addresses = exchange::resolve(where, false);
    for (const addrinfo* each = addresses.get();;) {
        tcp_socket socket = open_socket(*each, call);
        const std::string why = attempt(socket, *each, call);
        if (why.empty())
            return tcp_exchange(std::make_unique<state>(state{std::move(socket), std::move(options)}));
        each = each->ai_next;
        if (each == nullptr) {
            each = addresses.get();
            call.wait({}, timed_call::clock::now() + pause_between_attempts);
        }
        if (call.is_over())
            call.fail(errc::timed_out,
                      "no peer accepted the connection ({}) within {} ms; start the peer's tcp_listener, or name the "
                      "address and port where it listens",
                      why, call.timeout_ms());
    }
}

struct tcp_listener::state {
    /// A connection whose hello is incomplete.
    struct candidate {
        tcp_socket socket;
        std::string address, received;
    };

    /// Waits for a candidate with the right hello, and answers it.
    candidate choose(const timed_call& call)
    {
        for (refused = 0;; admit(call)) {
            wait(call);
            for (std::size_t at = 0; at < candidates.size();) {
                const tcp_socket& asked = candidates[at].socket;
                const verdict found = receive_hello(asked, candidates[at].received, connects);
                if (found == verdict::incomplete)
                    ++at;
                else if (found == verdict::accepted && exchange::is_open(asked) && send_hello(asked, listens))
                    return take(at);
                else
                    refuse(take(at), found);
            }
        }
    }

    candidate take(std::size_t at)
    {
        candidate taken = std::move(candidates[at]);
        candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(at));
        return taken;
    }

    void refuse(const candidate& who, verdict why)
    {
        if (why == verdict::other_version)
            send_hello(who.socket, listens); // names our version
        ++refused;
        last_refused = fmt::format("{}, \"{}\"", who.address, who.received);
    }

    void wait(const timed_call& call) const
    {
        std::vector<pollfd> sockets{{socket.get(), POLLIN, 0}};
        for (const candidate& each : candidates)
            sockets.push_back({each.socket.get(), POLLIN, 0});
        if (call.wait(std::move(sockets)))
            return;
        std::string others;
        if (const std::size_t count = refused + candidates.size(); count != 0)
            others = fmt::format(", but {} other client{} connected (last one rejected: {})", count,
                                 count == 1 ? "" : "s", refused == 0 ? "none" : last_refused);
        call.fail(errc::timed_out,
                  "no peer connected{} within {} ms; start the peer, and give it this host's address and this port",
                  others, call.timeout_ms());
    }

    /// Accepts a connection if one has come. Without room for it the oldest candidate is dropped.
    void admit(const timed_call& call)
    {
        tcp_socket came(::accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        const bool full = came ? candidates.size() == most_candidates : failure_of(errno).first == errc::out_of_memory;
        if (full && candidates.empty())
            fail_for(errno, call);
        if (full)
            refuse(take(0), verdict::incomplete);
        std::string address = exchange::address_of(came, getpeername);
        if (came)
            candidates.push_back({std::move(came), std::move(address), ""});
    }

    tcp_socket socket;
    std::uint16_t port = 0;
    std::vector<candidate> candidates{}; ///< oldest first; those left over are for the next call
    std::size_t refused = 0;             ///< in this call
    std::string last_refused{};
};

tcp_listener::tcp_listener(const std::string& where) : state_(std::make_unique<state>())
{
    const exchange_options no_wait;
    const timed_call call(no_wait, "weftio: tcp_listener: " + where);
    const exchange::address_list addresses = exchange::resolve(where, true);
    const int on = 1, off = 0;
    for (const addrinfo* each = addresses.get(); state_->port == 0; each = each->ai_next) {
        tcp_socket socket = open_socket(*each, call);
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); // earlier connections may be ending
        ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 && ::listen(socket.get(), backlog) == 0) {
            const std::string bound = exchange::address_of(socket, getsockname);
            state_->port = static_cast<std::uint16_t>(std::stoi(bound.substr(bound.rfind(':') + 1)));
            state_->socket = std::move(socket);
        } else if (each->ai_next == nullptr)
            fail_for(errno, call);
    }
}
tcp_listener::tcp_listener(tcp_listener&&) noexcept = default;
tcp_listener& tcp_listener::operator=(tcp_listener&&) noexcept = default;
tcp_listener::~tcp_listener() = default;

std::uint16_t tcp_listener::port() const noexcept
{
    return state_ ? state_->port : std::uint16_t{0};
}

tcp_exchange tcp_listener::accept(exchange_options options)
{
    if (!state_)
        throw error(errc::closed, "weftio: tcp_listener: it was moved from; use the object that it was moved to");
    auto chosen = state_->choose(timed_call(options, fmt::format("weftio: tcp_listener: port {}", state_->port)));
    return tcp_exchange(std::make_unique<tcp_exchange::state>(
        tcp_exchange::state{std::move(chosen.socket), std::move(options), std::move(chosen.address)}));
}

tcp_exchange tcp_exchange::listen(const std::string& where, exchange_options options)
{
    return tcp_listener(where).accept(std::move(options));
}

} // namespace weftio
