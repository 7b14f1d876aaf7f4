// Which process has which port of the connection manager: one directory for each wire, in files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/channel.hpp"
#include "net/roce_headers.hpp"
#include "rdma_cm/socket_address.hpp"

namespace weftio::verbs::rdma_cm {

/// A port that this process has. The file of a process that has ended, in whatever way, counts for nothing.
class claimed_port {
 public:
    claimed_port(descriptor file, std::string path);
    claimed_port(claimed_port&&) noexcept = default;
    claimed_port& operator=(claimed_port&&) noexcept;
    ~claimed_port() { release(); }

 private:
    void release() noexcept;
    descriptor file_; ///< locked; -1: moved from
    std::string path_;
};

/// In a child of fork(): the ports stay with the parent. Otherwise the child would keep them when the parent has ended.
void leave_ports_in_child() noexcept;

/// The ports of one wire. Any thread.
class service_ports {
 public:
    /// @param wire  what processes of one wire have in common; any text
    explicit service_ports(const std::string& wire);

    /// Takes a port for all addresses of this process that are of the family.
    /// @param space  of ports  @param at  the address by which peers reach the process
    /// @return nothing: another process, or this one, has it
    /// @throws failure the file cannot be made
    std::optional<claimed_port> claim(std::uint16_t space, std::uint16_t port, family of,
                                      const net::roce_gid& at) const;
    /// The address of the process that has the port; nothing: none has.
    std::optional<net::roce_gid> owner(std::uint16_t space, std::uint16_t port, family of) const;

 private:
    std::string path_of(std::uint16_t space, std::uint16_t port, family of) const;

    std::string folder_;
};

} // namespace weftio::verbs::rdma_cm
