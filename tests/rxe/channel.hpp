// The TCP connection between rxe_peer and rxe_cases.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "patience.hpp"

namespace weftio::test {

class channel {
 public:
    /// @param server  address to connect to, with a timeout of 2 x patience; nullptr: waits for a connection
    explicit channel(const char* server)
    {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(18600);
        const int one = 1;
        for (int tries = 0; server; ++tries) {
            inet_pton(AF_INET, server, &at.sin_addr);
            socket_ = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
                return;
            close(socket_);
            if (tries == 10 * patience / std::chrono::seconds(1))
                throw std::runtime_error("nobody listens there");
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
        const int listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0)
            throw std::runtime_error("TCP port 18600 is taken");
        socket_ = accept(listener, nullptr, nullptr);
        close(listener);
    }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() { close(socket_); }

    template <class Value>
    void put(const Value& value)
    {
        if (send(socket_, &value, sizeof value, MSG_NOSIGNAL) != sizeof value)
            throw std::runtime_error("the other end has gone");
    }
    template <class Value>
    Value get()
    {
        Value value;
        if (recv(socket_, &value, sizeof value, MSG_WAITALL) != sizeof value)
            throw std::runtime_error("the other end has gone");
        return value;
    }
    /// Returns when both ends have called it.
    void meet()
    {
        put(char{0});
        get<char>();
    }

 private:
    int socket_ = -1;
};

} // namespace weftio::test
