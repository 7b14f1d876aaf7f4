// TCP sockets that never block, calls that wait for them, and addresses as users write them.
#pragma once

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weftio/error.hpp"
#include "weftio/exchange.hpp"

namespace weftio {

namespace exchange {

/// Owns a socket, or none.
class tcp_socket {
 public:
    explicit tcp_socket(int descriptor = -1) noexcept : descriptor_(descriptor) {}
    tcp_socket(tcp_socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    tcp_socket& operator=(tcp_socket&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~tcp_socket()
    {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }

    int get() const noexcept { return descriptor_; }
    explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
    int descriptor_;
};

/// A call that waits: its name in messages, its deadline, its `stop`. Keeps a reference to the options.
class timed_call {
 public:
    using clock = std::chrono::steady_clock;

    /// @throws weftio::error errc::invalid_argument the timeout is negative
    timed_call(const exchange_options& options, std::string name);

    /// Blocks until a socket is ready, but not beyond `until` and the deadline. Returns whether a socket is ready.
    /// @throws weftio::error errc::closed `stop` returned true
    bool wait(std::vector<pollfd> sockets, clock::time_point until = clock::time_point::max()) const;
    bool is_over() const noexcept { return clock::now() >= deadline_; }
    long long timeout_ms() const noexcept { return options_.timeout.count(); }

    /// @throws weftio::error always: "NAME: WHY"
    template <class... Arguments>
    [[noreturn]] void fail(errc code, fmt::format_string<Arguments...> why, Arguments&&... arguments) const
    {
        throw error(code, name_ + ": " + fmt::format(why, std::forward<Arguments>(arguments)...));
    }

 private:
    const exchange_options& options_;
    std::string name_;
    clock::time_point deadline_;
};

/// Sends what the socket takes now, and removes it from `left`. Returns 0, or the errno of a lost connection.
int send_some(const tcp_socket& to, std::string_view& left) noexcept;
/// Appends what has arrived, up to a size of `wanted`. Returns 0, ESHUTDOWN when the peer has closed the connection, or
/// the errno of a lost one.
int receive_some(const tcp_socket& from, std::string& received, std::size_t wanted);
/// Whether the peer has its end open, as far as this host knows.
bool is_open(const tcp_socket& socket) noexcept;

using address_list = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
/// The addresses of "host:port", at least one. Blocks while the system's resolver looks up a name.
/// @param listens  the host may be missing, and the port 0
/// @throws weftio::error errc::invalid_argument `where` is no host and port; errc::not_found, errc::out_of_memory
address_list resolve(const std::string& where, bool listens);
/// What getpeername() or getsockname() says: "10.0.0.2:40312", "[fd00::2]:40312".
std::string address_of(const tcp_socket& socket, decltype(getpeername)* end);

} // namespace exchange

struct tcp_exchange::state {
    exchange::tcp_socket socket; ///< none once a call has failed
    exchange_options options;
    std::string peer = exchange::address_of(socket, getpeername);
};

} // namespace weftio
