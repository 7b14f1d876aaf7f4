// The engine of one process: its devices, and the nodes that it has open.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

#include "context.hpp"
#include "seam.hpp"
#include "show.hpp"
#include "tree.hpp"

namespace weftio::verbs {

/// What weftio-run was asked for.
struct settings {
    std::string port;     ///< spec of the port; each further device of a wire has another one of the same spec
    std::string address;  ///< of the first device; empty: one is made from its MAC
    unsigned devices = 1; ///< 1 to most_devices
    std::string dump;     ///< path of the pcapng file of the first device; those of others have their number behind it
    static constexpr unsigned most_devices = 8;

    /// From the environment. @throws error errc::invalid_argument
    static settings from_environment();
};

/// It lives as long as the process, and is of no use to a child of fork().
class session {
 public:
    /// Blocks until all ports are open. @throws error, failure, std::exception
    session(const settings& wanted, const weftio_verbs_host& host);
    /// Ends all contexts and closes the ports: at the exit of the process.
    void end() noexcept;

    /// Folder of the files that describe the devices.
    const char* tree_path() const noexcept { return tree_->path().c_str(); }
    unsigned devices() const noexcept { return static_cast<unsigned>(nodes_.size()); }
    int open(unsigned device, int flags) noexcept;
    /// The context whose node a descriptor is; nullptr: it is none.
    std::shared_ptr<context> find(int number) noexcept;
    int device_of(int number) noexcept;
    /// Ends the contexts whose descriptors have all been closed.
    void sweep() noexcept;
    /// Whether the calling process is the one that has made it.
    bool is_here() const noexcept;

 private:
    void open_ports(const settings& wanted, const weftio_verbs_host& host);
    void sweep_if_nobody_does() noexcept;
    void sweep_all() noexcept;
    void look() noexcept;
    std::string describe_all();
    std::shared_ptr<context> take_closed();

    const pid_t process_;
    watcher events_;
    std::deque<node> nodes_;
    std::optional<tree> tree_;
    std::optional<show_socket> show_;
    std::mutex mutex_; ///< of contexts_
    std::map<std::uint64_t, std::shared_ptr<context>> contexts_;
    std::mutex sweeping_;
};

} // namespace weftio::verbs
