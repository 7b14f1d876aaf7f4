#include "rdma/tcp_socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds stop_interval{100}, longest_poll{std::chrono::hours(1)};
constexpr milliseconds longest_timeout = std::chrono::hours(24 * 365); // what is more is none

[[noreturn]] void refuse_place(const char* who, const std::string& text, const char* why, bool listens)
{
    throw error(errc::invalid_argument, fmt::format("weftio: {}: \"{}\": {}; write {}, such as {}", who, text, why,
                                                    listens ? "PORT or ADDRESS:PORT" : "HOST:PORT",
                                                    listens ? "18515, 10.0.0.1:18515 or [fd00::1]:18515"
                                                            : "10.0.0.1:18515 or [fd00::1]:18515"));
}

bool is_port(const std::string& text, bool listens) noexcept
{
    const bool digits = !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == std::string::npos;
    const int number = digits ? std::stoi(text) : -1;
    return number <= 65535 && number >= (listens ? 0 : 1);
}

errc code_of_resolver(int result) noexcept
{
    return result == EAI_MEMORY ? errc::out_of_memory : errc::not_found;
}

} // namespace

tcp_socket::~tcp_socket()
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

time_limit::time_limit(const exchange_options& options, std::string what)
    : options_(options), what_(std::move(what)),
      limited_(options.timeout.count() != 0 && options.timeout < longest_timeout)
{
    if (options.timeout.count() < 0)
        throw error(errc::invalid_argument,
                    fmt::format("{}: a timeout of {} ms; name the milliseconds that the call may "
                                "take, or 0 for no limit",
                                what_, options.timeout.count()));
    if (limited_)
        end_ = std::chrono::steady_clock::now() + options.timeout;
}

bool time_limit::wait(std::span<pollfd> sockets, milliseconds at_most) const
{
    const auto begin = std::chrono::steady_clock::now();
    const auto last = at_most < longest_timeout ? begin + at_most : std::chrono::steady_clock::time_point::max();
    const auto end = limited_ ? std::min(end_, last) : last;
    for (;;) {
        if (options_.stop && options_.stop())
            throw error(errc::closed, fmt::format("{}: the application has ended the wait", what_));
        const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
        const milliseconds slice = std::clamp(left, milliseconds(0), options_.stop ? stop_interval : longest_poll);
        const int ready = ::poll(sockets.data(), sockets.size(), static_cast<int>(slice.count()));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            refuse_socket(what_, errno);
        if (left.count() <= 0)
            return false;
    }
}

void time_limit::expire(const std::string& why, const std::string& advice) const
{
    throw error(errc::timed_out, fmt::format("{}: {} within {} ms; {}", what_, why, options_.timeout.count(), advice));
}

tcp_place tcp_place::of_text(const std::string& text, const char* who, bool listens)
{
    if (text.starts_with('[') && text.ends_with(']'))
        refuse_place(who, text, "no port number", listens);
    const std::size_t colon = text.rfind(':');
    tcp_place place{.host = text.substr(0, colon == std::string::npos ? 0 : colon), .port = text.substr(colon + 1)};
    const bool bracketed = place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']';
    if (bracketed)
        place.host = place.host.substr(1, place.host.size() - 2);
    else if (place.host.find(':') != std::string::npos)
        refuse_place(who, text, "an IPv6 address without brackets", listens);
    if (place.host.find_first_of("[]") != std::string::npos)
        refuse_place(who, text, "brackets without an IPv6 address", listens);
    if (place.host.empty() && !listens)
        refuse_place(who, text, "no host", listens);
    if (!is_port(place.port, listens))
        refuse_place(who, text, "no port number", listens);
    return place;
}

std::string tcp_address::text() const
{
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (getnameinfo(get(), length, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV))
        return "an unknown address";
    constexpr std::string_view mapped = "::ffff:"; // an IPv4 peer of an IPv6 socket
    std::string_view name = host.data();
    if (name.starts_with(mapped) && name.find('.') != std::string_view::npos)
        name.remove_prefix(mapped.size());
    return name.find(':') == std::string_view::npos ? fmt::format("{}:{}", name, port.data())
                                                    : fmt::format("[{}]:{}", name, port.data());
}

std::vector<tcp_address> resolve(const tcp_place& place, const char* who)
{
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV;
    const int result = getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found);
    if (result != 0)
        throw error(
            code_of_resolver(result),
            fmt::format("weftio: {}: host \"{}\" has no address ({}); write its address, or a name that \"getent "
                        "hosts\" finds",
                        who, place.host, result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result)));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    std::vector<tcp_address> addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        std::memcpy(&addresses.emplace_back().bytes, each->ai_addr, each->ai_addrlen);
        addresses.back().length = each->ai_addrlen;
    }
    return addresses;
}

void refuse_socket(const std::string& what, int reason)
{
    const errc code = reason == EADDRINUSE                  ? errc::in_use
                      : reason == EACCES || reason == EPERM ? errc::permission_denied
                      : reason == EADDRNOTAVAIL             ? errc::not_found
                      : reason == EAFNOSUPPORT              ? errc::not_supported
                      : reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM
                          ? errc::out_of_memory
                          : errc::device_error;
    const char* const advice = code == errc::in_use ? "end who has the port (\"ss -ltnp\" names it), or name another"
                               : code == errc::permission_denied ? "name a port of 1024 or above, or run as root"
                               : code == errc::not_found
                                   ? "name an address that an interface of this host has (\"ip address\")"
                               : code == errc::out_of_memory ? "raise the limit of open files (\"ulimit -n\")"
                                                             : "name another address";
    throw error(code, fmt::format("{}: {}; {}", what, std::strerror(reason), advice));
}

tcp_socket make_socket(int family, const std::string& what)
{
    tcp_socket made(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made)
        refuse_socket(what, errno);
    const int on = 1;
    ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return made;
}

namespace {

tcp_progress progress_of(ssize_t result) noexcept
{
    if (result >= 0)
        return {.bytes = static_cast<std::size_t>(result)};
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return {.bytes = 0, .reason = later ? 0 : errno, .ended = false};
}

} // namespace

tcp_progress receive_some(const tcp_socket& from, std::span<std::uint8_t> to) noexcept
{
    const ssize_t result = ::recv(from.get(), to.data(), to.size(), 0);
    tcp_progress progress = progress_of(result);
    progress.ended = result == 0 && !to.empty();
    return progress;
}

tcp_progress send_some(const tcp_socket& to, std::span<const std::uint8_t> from) noexcept
{
    return progress_of(::send(to.get(), from.data(), from.size(), MSG_NOSIGNAL));
}

} // namespace weftio::rdma
