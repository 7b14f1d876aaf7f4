// Which process has which port of the connection manager. Each user has a folder for each wire,
// /dev/shm/weftio-ports-UID-WIRE, with a file for each port. The process that has the port holds a lock on its file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/channel.hpp"
#include "engine/tree.hpp"
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

/// Removes the files of ports that ended processes of this user have left, and folders without files. It skips folders
/// in which a process is taking a port. @param parents  see service_ports
void sweep_ports(const std::vector<std::filesystem::path>& parents = default_parents()) noexcept;

/// The ports of one wire. Any thread.
class service_ports {
 public:
    /// @param wire  what processes of one wire have in common; any text, two of which never share ports
    /// @param parents  of the folders: the first that this user can write to is used
    /// @throws failure EACCES: none can be written to
    explicit service_ports(const std::string& wire,
                           const std::vector<std::filesystem::path>& parents = default_parents());

    /// Takes a port for all addresses of this process that are of the family. Where two users ask for one port at the
    /// same moment, both may be refused.
    /// @param space  of ports  @param at  the address by which peers reach the process
    /// @return nothing: another process of any user, or this one, has it
    /// @throws failure the file cannot be made; the log says why
    std::optional<claimed_port> claim(std::uint16_t space, std::uint16_t port, family of,
                                      const net::roce_gid& at) const;
    /// The address of the process, of any user, that has the port; nothing: none has.
    std::optional<net::roce_gid> owner(std::uint16_t space, std::uint16_t port, family of) const;

 private:
    std::string own_folder() const;
    std::vector<std::string> folders() const;

    const std::string parent_, wire_;
};

} // namespace weftio::verbs::rdma_cm
