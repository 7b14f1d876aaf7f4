// A peer of a TCP connection that is no tcp_exchange: plain sockets whose messages a test chooses.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weftio::test {

/// The hello of a tcp_exchange: the connecting end sends 'c', the listening end 'l'.
inline std::string hello(char role, char version = 1)
{
    return std::string("weftio swap\n") + version + role + std::string(2, '\0');
}
inline std::string message(const std::string& kind, std::uint32_t bytes)
{
    const std::uint32_t bytes_be = htonl(bytes);
    return kind + std::string(reinterpret_cast<const char*>(&bytes_be), 4);
}

/// One end of a connection; blocks.
class raw_peer {
 public:
    explicit raw_peer(int descriptor) : descriptor_(descriptor) {}
    /// Connects to a port of 127.0.0.1.
    explicit raw_peer(std::uint16_t port, int buffer_bytes = 0) : descriptor_(socket(AF_INET, SOCK_STREAM, 0))
    {
        sockaddr_in to{
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        for (int option : {SO_RCVBUF, SO_SNDBUF})
            if (buffer_bytes != 0)
                setsockopt(descriptor_, SOL_SOCKET, option, &buffer_bytes, sizeof(buffer_bytes));
        EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    }
    raw_peer(raw_peer&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    ~raw_peer() { close(); }

    raw_peer& say(std::string_view words)
    {
        for (std::size_t said = 0; said != words.size();) {
            const ssize_t result = send(descriptor_, words.data() + said, words.size() - said, MSG_NOSIGNAL);
            if (result <= 0)
                break; // the peer has closed the connection meanwhile
            said += static_cast<std::size_t>(result);
        }
        return *this;
    }
    /// Receives `count` bytes, or fewer at the end of the connection.
    std::string hear(std::size_t bytes)
    {
        std::string heard(bytes, '\0');
        std::size_t count = 0;
        for (ssize_t result = 1; count < bytes && result > 0;
             count += result > 0 ? static_cast<std::size_t>(result) : 0)
            result = recv(descriptor_, heard.data() + count, bytes - count, 0);
        heard.resize(count);
        return heard;
    }
    void close()
    {
        if (descriptor_ >= 0)
            ::close(std::exchange(descriptor_, -1));
    }
    void abort() ///< with RST
    {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close();
    }

 private:
    int descriptor_;
};

/// Listens at a free port of 127.0.0.1.
class raw_listener {
 public:
    raw_listener() : descriptor_(socket(AF_INET, SOCK_STREAM, 0))
    {
        sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t bytes = sizeof(at);
        EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&at), bytes), 0);
        EXPECT_EQ(::listen(descriptor_, 16), 0);
        getsockname(descriptor_, reinterpret_cast<sockaddr*>(&at), &bytes);
        where = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    }
    ~raw_listener() { close(descriptor_); }
    raw_peer accept() { return raw_peer(::accept(descriptor_, nullptr, nullptr)); }

    std::string where;

 private:
    int descriptor_;
};

} // namespace weftio::test
