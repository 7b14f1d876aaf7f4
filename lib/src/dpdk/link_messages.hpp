// What Linux reports about a network interface over netlink.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weftio::dpdk {

/// Where an XDP program can be attached. Linux allows one program at each.
enum class xdp_place { generic, driver, hardware };

struct link_report {
    int index = 0;
    std::uint32_t receive_queues = 0;        ///< that the interface was made with; ethtool may use fewer
    bool has_master = false;                 ///< it is a port of a bridge, a bond, ...
    std::array<std::uint32_t, 3> programs{}; ///< id of the program at each xdp_place; 0: none
    bool holds(std::uint32_t program) const noexcept;
};

/// A socket of rtnetlink, in the network namespace of the constructing thread.
///
/// - Threads: ask() and detach() one at a time; next() any.
class link_socket {
 public:
    enum class use { requests, notifications };

    explicit link_socket(use wanted) noexcept;
    link_socket(const link_socket&) = delete;
    link_socket& operator=(const link_socket&) = delete;
    ~link_socket();

    /// Returns 0, or errno if the socket could not be made; then there are no answers.
    int problem() const noexcept { return problem_; }
    /// Asks Linux. Blocks for the kernel's lock of network settings (RTNL). Returns nothing if there is no answer.
    std::optional<link_report> ask(int index) const noexcept;
    /// Has Linux detach the program behind `program`, a descriptor, if that one is attached. Returns 0 or errno.
    int detach(int index, xdp_place place, int program) const noexcept;

    enum class news { none, link, lost };
    /// Takes the next notification of a changed interface. Never blocks. `lost`: some are missing.
    /// @param report  filled in for `link` only
    news next(link_report& report) const noexcept;

 private:
    int socket_, problem_ = 0;
};

/// A socket of ethtool's notifications that numbers of queues have changed (generic netlink), in the network namespace
/// of the constructing thread. Without ethtool's family, which needs Linux 5.6, there are no notifications. One that
/// Linux drops, because the socket is full, is missed.
///
/// - Threads: any.
class channel_news {
 public:
    channel_news() noexcept;
    channel_news(const channel_news&) = delete;
    channel_news& operator=(const channel_news&) = delete;
    ~channel_news();

    /// Returns 0, or errno if the socket could not be made; then there are no notifications.
    int problem() const noexcept { return problem_; }
    /// The number of receive queues that an interface has now, if it has changed since the last call. Never blocks, and
    /// takes no lock of the kernel's network settings. Of several changes it returns the one with the most queues.
    std::optional<unsigned> receive_queues(int index) const noexcept;

 private:
    int socket_, problem_;
};

} // namespace weftio::dpdk
