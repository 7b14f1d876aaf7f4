#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/tcp_exchange_state.hpp"
#include "rdma/tcp_hello.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr const char* listening_end = "tcp_listener";
constexpr std::size_t most_tcp_candidates = 16; // the oldest makes room for more
constexpr int backlog = 64;

/// Who has connected and not said who it is.
struct tcp_candidate {
    rdma::tcp_socket socket;
    rdma::tcp_address from;
    rdma::incoming_hello hello{rdma::tcp_role::connects};
};

/// 0: `socket` listens there; else an errno.
int listen_at(rdma::tcp_socket& socket, const rdma::tcp_address& at, const std::string& what)
{
    socket = rdma::make_socket(at.get()->sa_family, what);
    const int on = 1, off = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); // connections of before may be ending
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return ::bind(socket.get(), at.get(), at.length) == 0 && ::listen(socket.get(), backlog) == 0 ? 0 : errno;
}

/// Listens at the first of them where it can.
rdma::tcp_socket listen_at_one_of(const std::vector<rdma::tcp_address>& addresses, const std::string& what)
{
    rdma::tcp_socket socket;
    int reason = 0;
    for (const rdma::tcp_address& each : addresses)
        if (reason = listen_at(socket, each, what); reason == 0)
            return socket;
    rdma::refuse_socket(what, reason);
}

bool has_ipv6() noexcept
{
    return static_cast<bool>(rdma::tcp_socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}

/// Those who are asked who they are.
class tcp_candidates {
 public:
    tcp_candidates(const rdma::tcp_socket& listening, std::vector<tcp_candidate>& waiting,
                   const rdma::time_limit& limit)
        : listening_(listening), waiting_(waiting), limit_(limit)
    {}

    /// Waits for one that says the right hello, and answers it.
    tcp_candidate choose()
    {
        for (;;) {
            for (auto each = waiting_.begin(); each != waiting_.end();) {
                const rdma::hello_verdict verdict = each->hello.receive(each->socket);
                if (verdict == rdma::hello_verdict::good && welcome(*each))
                    return take(each);
                if (verdict == rdma::hello_verdict::incomplete)
                    ++each;
                else
                    each = refuse(each, verdict);
            }
            wait();
            take_new();
        }
    }

 private:
    using place = std::vector<tcp_candidate>::iterator;

    /// Whether it is still there, and has our hello.
    static bool welcome(const tcp_candidate& chosen) noexcept
    {
        pollfd ended{.fd = chosen.socket.get(), .events = POLLRDHUP, .revents = 0};
        const auto hello = rdma::hello_of(rdma::tcp_role::listens);
        return ::poll(&ended, 1, 0) == 0 && rdma::send_some(chosen.socket, hello).bytes == hello.size();
    }

    tcp_candidate take(place who)
    {
        tcp_candidate taken = std::move(*who);
        waiting_.erase(who);
        return taken;
    }

    place refuse(place who, rdma::hello_verdict why)
    {
        if (why == rdma::hello_verdict::other_version) // tells it ours
            rdma::send_some(who->socket, rdma::hello_of(rdma::tcp_role::listens));
        ++refused_;
        last_refused_ = fmt::format("{}, \"{}\"", who->from.text(), who->hello.text());
        return waiting_.erase(who);
    }

    void wait()
    {
        std::vector<pollfd> ready{{.fd = listening_.get(), .events = POLLIN, .revents = 0}};
        for (const tcp_candidate& each : waiting_)
            ready.push_back({.fd = each.socket.get(), .events = POLLIN, .revents = 0});
        if (!limit_.wait(ready))
            limit_.expire(refused_ + waiting_.size() == 0
                              ? "no peer came"
                              : fmt::format("no peer came, though {} others did (the last that was refused: {})",
                                            refused_ + waiting_.size(), refused_ == 0 ? "none" : last_refused_),
                          "start the peer, and give it this host's address and this port");
    }

    void take_new()
    {
        for (;;) {
            tcp_candidate one;
            one.socket = rdma::tcp_socket(
                ::accept4(listening_.get(), one.from.get(), &one.from.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!one.socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
                if (waiting_.empty())
                    rdma::refuse_socket(limit_.what(), errno);
                refuse(waiting_.begin(), rdma::hello_verdict::incomplete);
                return; // what the others have said comes first
            }
            if (!one.socket)
                return; // none, or one that is gone already
            if (waiting_.size() == most_tcp_candidates)
                refuse(waiting_.begin(), rdma::hello_verdict::incomplete);
            waiting_.push_back(std::move(one));
        }
    }

    const rdma::tcp_socket& listening_;
    std::vector<tcp_candidate>& waiting_;
    const rdma::time_limit& limit_;
    std::size_t refused_ = 0;
    std::string last_refused_;
};

} // namespace

struct tcp_listener::state {
    rdma::tcp_socket socket;
    std::uint16_t port = 0;
    std::vector<tcp_candidate> waiting{}; ///< for the next accept()
};

tcp_listener::tcp_listener(const std::string& where) : state_(std::make_unique<state>())
{
    const std::string what = fmt::format("weftio: {}: {}", listening_end, where);
    rdma::tcp_place place = rdma::tcp_place::of_text(where, listening_end, true);
    if (place.host.empty())
        place.host = has_ipv6() ? "::" : "0.0.0.0";
    state_->socket = listen_at_one_of(rdma::resolve(place, listening_end), what);
    rdma::tcp_address bound;
    ::getsockname(state_->socket.get(), bound.get(), &bound.length);
    state_->port = ntohs(bound.get()->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound.bytes).sin6_port
                                                            : reinterpret_cast<sockaddr_in&>(bound.bytes).sin_port);
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
        throw error(errc::closed,
                    fmt::format("weftio: {}: it was moved from; ask the object that it was moved to", listening_end));
    const rdma::time_limit limit(options, fmt::format("weftio: {}: port {}", listening_end, state_->port));
    tcp_candidate chosen = tcp_candidates(state_->socket, state_->waiting, limit).choose();
    return tcp_exchange(std::make_unique<tcp_exchange::state>(
        tcp_exchange::state{std::move(chosen.socket), std::move(options), chosen.from.text()}));
}

} // namespace weftio
