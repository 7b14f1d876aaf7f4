// The other end of a veth pair.
#pragma once

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weftio::test {

inline void shell(const std::string& command)
{
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

/// A packet socket on the other end of a pair.
class peer {
 public:
    explicit peer(const std::string& interface = "v0")
        : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)))
    {
        sockaddr_ll at{};
        at.sll_family = AF_PACKET;
        at.sll_protocol = htons(ETH_P_ALL);
        at.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
        EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;
    ~peer() { ::close(socket_); }

    /// Receives until `count` frames have arrived, or none has for a second. Returns how many of them have `bytes`
    /// bytes.
    unsigned heard(std::size_t bytes, unsigned count) const
    {
        std::vector<char> frame(65536);
        unsigned found = 0;
        for (pollfd ready{socket_, POLLIN, 0}; found != count && ::poll(&ready, 1, 1000) == 1;)
            found += ::recv(socket_, frame.data(), frame.size(), 0) == static_cast<ssize_t>(bytes);
        return found;
    }
    /// Sends a frame of zeros with an unknown EtherType.
    void say(std::size_t bytes) const { EXPECT_TRUE(try_to_say(bytes)); }
    /// As above. Returns whether the interface accepted the frame; it may not if the other end is busy.
    bool try_to_say(std::size_t bytes) const
    {
        std::vector<char> frame(bytes);
        frame[12] = static_cast<char>(0x88);
        frame[13] = static_cast<char>(0xb5);
        return ::send(socket_, frame.data(), bytes, 0) == static_cast<ssize_t>(bytes);
    }

 private:
    int socket_;
};

} // namespace weftio::test
