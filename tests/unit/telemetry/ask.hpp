// Requests telemetry of this process as dpdk-telemetry.py does.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "patience.hpp"

namespace weftio::test {

/// A telemetry socket on which this process listens.
inline std::optional<sockaddr_un> telemetry_socket()
{
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        sockaddr_un address{};
        socklen_t bytes = sizeof address;
        const int descriptor = std::stoi(entry.path().filename());
        if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) == 0 &&
            address.sun_family == AF_UNIX &&
            std::string_view(address.sun_path).find("dpdk_telemetry") != std::string_view::npos)
            return address;
    }
    return std::nullopt;
}

/// The reply to one command; empty if there is none within `patience`. DPDK serves ten connections at a time and closes
/// others without a reply. A connection of an ended program counts until DPDK's thread for it has run. A closed request
/// is therefore retried.
inline std::string ask(const std::string& command)
{
    const std::optional<sockaddr_un> address = telemetry_socket();
    std::string reply;
    if (!address)
        return reply;
    eventually([&] {
        const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        const timeval bound{.tv_sec = std::chrono::ceil<std::chrono::seconds>(patience).count(), .tv_usec = 0};
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
        reply.assign(1 << 17, '\0');
        ssize_t bytes = -1;
        if (connect(connection, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 &&
            recv(connection, reply.data(), reply.size(), 0) > 0 &&
            send(connection, command.data(), command.size(), MSG_NOSIGNAL) > 0)
            bytes = recv(connection, reply.data(), reply.size(), 0);
        reply.resize(static_cast<std::size_t>(std::max<ssize_t>(0, bytes)));
        close(connection);
        return bytes > 0;
    });
    return reply;
}

} // namespace weftio::test
