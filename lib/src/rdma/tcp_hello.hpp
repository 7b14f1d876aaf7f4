// The first bytes of a connection, by which a tcp_exchange tells its like from others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rdma/tcp_socket.hpp"

namespace weftio::rdma {

enum class tcp_role : std::uint8_t { connects = 'c', listens = 'l' };

inline constexpr std::size_t hello_bytes = 16;
inline constexpr std::uint8_t hello_version = 1;

/// The mark (12), the version, the role, 0, 0.
std::array<std::uint8_t, hello_bytes> hello_of(tcp_role role) noexcept;

enum class hello_verdict {
    incomplete, ///< right so far
    good,
    ended,         ///< the connection ended before
    stranger,      ///< another protocol
    other_version, ///< of a tcp_exchange
    other_role     ///< two that listen, or that connect; an echo of ours
};

/// A hello that comes piece by piece.
class incoming_hello {
 public:
    explicit incoming_hello(tcp_role expected) noexcept : expected_(expected) {}

    /// Takes what is there, and nothing behind the hello.
    hello_verdict receive(const tcp_socket& from) noexcept;
    unsigned version() const noexcept { return bytes_[12]; }
    std::string text() const; ///< what has come, for messages: "GET / HTTP/1.1"

 private:
    hello_verdict judge() const noexcept;

    tcp_role expected_;
    std::array<std::uint8_t, hello_bytes> bytes_{};
    std::size_t count_ = 0;
};

} // namespace weftio::rdma
