// The telemetry of this process, asked for as dpdk-telemetry.py does.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

/// The reply to one command; empty when there is none.
inline std::string ask(const std::string& command)
{
    const std::optional<sockaddr_un> address = telemetry_socket();
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const timeval bound{.tv_sec = 60, .tv_usec = 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    std::string reply(1 << 17, '\0');
    if (address && connect(connection, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 &&
        recv(connection, reply.data(), reply.size(), 0) > 0 && send(connection, command.data(), command.size(), 0) > 0)
        reply.resize(static_cast<std::size_t>(std::max<ssize_t>(0, recv(connection, reply.data(), reply.size(), 0))));
    else
        reply.clear();
    close(connection);
    return reply;
}

} // namespace weftio::test
