// TCP sockets that never block, and how long a call waits for them.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weftio/exchange.hpp"

namespace weftio::rdma {

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
    ~tcp_socket();

    int get() const noexcept { return descriptor_; }
    explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
    int descriptor_;
};

/// The time of one call.
class time_limit {
 public:
    /// @param what  what is waited for, for messages: "weftio: tcp_exchange: connecting to x:1"
    /// @throws weftio::error errc::invalid_argument the timeout is negative
    time_limit(const exchange_options& options, std::string what);

    /// Waits until one of them is ready, at most so long and not beyond the limit. Returns whether one is.
    /// @throws weftio::error errc::closed the application wants an end
    bool wait(std::span<pollfd> sockets, std::chrono::milliseconds at_most = std::chrono::milliseconds::max()) const;
    bool over() const noexcept { return limited_ && std::chrono::steady_clock::now() >= end_; }
    /// @throws weftio::error errc::timed_out always: "WHAT: WHY within 10000 ms; ADVICE"
    [[noreturn]] void expire(const std::string& why, const std::string& advice) const;
    const std::string& what() const noexcept { return what_; }

 private:
    const exchange_options& options_;
    std::string what_;
    bool limited_;
    std::chrono::steady_clock::time_point end_{};
};

/// "host:port" of the user's.
struct tcp_place {
    std::string host; ///< empty: every address of this host
    std::string port;

    /// @param listens  whether the host may be missing and the port 0
    /// @throws weftio::error errc::invalid_argument it is neither
    static tcp_place of_text(const std::string& text, const char* who, bool listens);
};

struct tcp_address {
    sockaddr_storage bytes{};
    socklen_t length = sizeof(sockaddr_storage);

    sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&bytes); }
    const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&bytes); }
    std::string text() const; ///< "10.0.0.2:40312", "[fd00::2]:40312"
};

/// At least one.
/// @throws weftio::error errc::not_found
std::vector<tcp_address> resolve(const tcp_place& place, const char* who);

/// Not blocking, closed on exec, without delay.
/// @throws weftio::error errc::out_of_memory, errc::not_supported no such family of addresses
tcp_socket make_socket(int family, const std::string& what);

/// What a socket had, or took. `reason` is an errno; 0: so many bytes; `ended`: nothing comes any more.
struct tcp_progress {
    std::size_t bytes = 0;
    int reason = 0;
    bool ended = false;
};
tcp_progress receive_some(const tcp_socket& from, std::span<std::uint8_t> to) noexcept;
tcp_progress send_some(const tcp_socket& to, std::span<const std::uint8_t> from) noexcept;

/// @throws weftio::error of the errno that an attempt to get a socket left
[[noreturn]] void refuse_socket(const std::string& what, int reason);

} // namespace weftio::rdma
