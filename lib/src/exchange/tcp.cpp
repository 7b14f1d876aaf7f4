#include "exchange/tcp.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace weftio::exchange {

namespace {

using std::chrono::milliseconds, std::chrono::hours;

constexpr milliseconds stop_interval{100}, longest_poll = hours(1), longest_timeout = hours(24 * 365);

int lost_by(ssize_t result) noexcept
{
    return result >= 0 || errno == EAGAIN || errno == EINTR ? 0 : errno;
}

/// Splits "host:port". Returns nullptr, or why it is none.
const char* split(const std::string& where, bool listens, std::string& host, std::string& port)
{
    const std::size_t port_at = where.rfind(':') + 1; // 0: there is no colon
    host = where.substr(0, std::max<std::size_t>(port_at, 1) - 1);
    port = where.substr(port_at);
    if (host.empty() && !listens)
        return "no host";
    std::uint16_t number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc() || end != port.data() + port.size() || port.size() > 5 || (number == 0 && !listens))
        return "no port number";
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string::npos)
        return "an IPv6 address without brackets";
    return host.find_first_of("[]") == std::string::npos ? nullptr : "brackets without an IPv6 address";
}

} // namespace

timed_call::timed_call(const exchange_options& options, std::string name)
    : options_(options), name_(std::move(name)),
      deadline_(timeout_ms() == 0 ? clock::time_point::max()
                                  : clock::now() + std::clamp(options.timeout, milliseconds(0), longest_timeout))
{
    if (timeout_ms() < 0)
        fail(errc::invalid_argument,
             "the timeout is {} ms; set the milliseconds that the call may take, or 0 for no limit", timeout_ms());
}

bool timed_call::wait(std::vector<pollfd> sockets, clock::time_point until) const
{
    for (;;) {
        if (options_.stop && options_.stop())
            fail(errc::closed, "the application canceled the wait");
        const auto left = std::chrono::ceil<milliseconds>(std::min(deadline_, until) - clock::now());
        const auto slice = std::clamp(left, milliseconds(0), options_.stop ? stop_interval : longest_poll);
        const int ready = ::poll(sockets.data(), sockets.size(), static_cast<int>(slice.count()));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            fail(errc::out_of_memory, "poll: {}; raise the limit of open files (\"ulimit -n\")", std::strerror(errno));
        if (left.count() <= 0)
            return false;
    }
}

int send_some(const tcp_socket& to, std::string_view& left) noexcept
{
    const ssize_t sent = left.empty() ? 0 : ::send(to.get(), left.data(), left.size(), MSG_NOSIGNAL);
    left.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
    return lost_by(sent);
}

int receive_some(const tcp_socket& from, std::string& received, std::size_t wanted)
{
    if (received.size() == wanted)
        return 0;
    std::array<char, 16384> piece;
    const ssize_t came = ::recv(from.get(), piece.data(), std::min(piece.size(), wanted - received.size()), 0);
    const int lost = came == 0 ? ESHUTDOWN : lost_by(came);
    received.append(piece.data(), came > 0 ? static_cast<std::size_t>(came) : 0);
    return lost;
}

bool is_open(const tcp_socket& socket) noexcept
{
    pollfd one{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&one, 1, 0) <= 0;
}

address_list resolve(const std::string& where, bool listens)
{
    const char* const who = listens ? "tcp_listener" : "tcp_exchange";
    std::string host, port;
    if (const char* const why = split(where, listens, host, port))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: \"{}\": {}; write {}10.0.0.1:18515 or [fd00::1]:18515", who, where, why,
                                listens ? "PORT or ADDRESS:PORT, such as 18515, " : "HOST:PORT, such as "));
    if (host.empty()) // a socket at "::" has IPv4 too
        host = tcp_socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) ? "::" : "0.0.0.0";
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV;
    if (const int result = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); result != 0)
        throw error(
            result == EAI_MEMORY ? errc::out_of_memory : errc::not_found,
            fmt::format(
                "weftio: {}: cannot resolve host \"{}\" ({}); write its address, or a name that \"getent hosts\" finds",
                who, host, result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result)));
    return {found, freeaddrinfo};
}

std::string address_of(const tcp_socket& socket, decltype(getpeername)* end)
{
    sockaddr_storage bytes{};
    socklen_t size = sizeof(bytes);
    auto* const address = reinterpret_cast<sockaddr*>(&bytes);
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (end(socket.get(), address, &size) != 0 || getnameinfo(address, size, host.data(), host.size(), port.data(),
                                                              port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "an unknown address";
    std::string name = host.data();
    if (name.starts_with("::ffff:") && name.find('.') != std::string::npos) // an IPv4 peer of an IPv6 socket
        name.erase(0, std::strlen("::ffff:"));
    return name.find(':') == std::string::npos ? fmt::format("{}:{}", name, port.data())
                                               : fmt::format("[{}]:{}", name, port.data());
}

} // namespace weftio::exchange
