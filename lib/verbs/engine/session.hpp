// The engine of one process: its devices, and its open nodes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "context.hpp"
#include "counter_files.hpp"
#include "rdma_cm/service.hpp"
#include "seam.hpp"
#include "settings.hpp"
#include "show.hpp"
#include "tree.hpp"

namespace weftio::verbs {

/// Lives as long as the process. Unusable in a child of fork().
class session {
 public:
    /// Blocks until all ports are open. @throws error, failure, std::exception
    session(const settings& wanted, const weftio_verbs_host& host);
    /// Ends all contexts and closes the ports. Called when the process exits.
    void end() noexcept;

    /// Folder of the files that describe the devices.
    const char* tree_path() const noexcept { return tree_->path().c_str(); }
    unsigned devices() const noexcept { return static_cast<unsigned>(nodes_.size()); }
    int open(unsigned device, int flags) noexcept;
    /// The node of a descriptor; nullptr: it is not a node.
    std::shared_ptr<open_file> find(int number) noexcept;
    /// Ends the nodes whose descriptors have all been closed.
    void sweep() noexcept;
    /// Call it in a child of fork(): from then on the ports are the parent's alone.
    void leave_in_child() noexcept;
    /// Brings the files of counters up to date, and does so regularly from then on.
    void count() noexcept;
    /// Whether the calling process is the one that made the session.
    bool is_here() const noexcept;

 private:
    void sweep_if_nobody_does() noexcept;
    void sweep_all() noexcept;
    void poll() noexcept;
    std::vector<std::shared_ptr<open_file>> files();
    std::string describe_all();
    std::shared_ptr<open_file> take_closed();
    std::shared_ptr<open_file> make(unsigned device, int flags);

    const pid_t process_;
    watcher events_;
    std::deque<node> nodes_;
    std::optional<tree> tree_;
    std::deque<counter_files> counters_;
    std::optional<show_socket> show_;
    std::mutex mutex_; ///< guards the next two
    std::map<std::uint64_t, std::shared_ptr<open_file>> files_;
    std::optional<rdma_cm::service> manager_; ///< once the program has opened it
    std::mutex sweeping_;                     ///< also guards counters_ and the next two
    std::optional<polled> counting_;          ///< the program reads counters
    unsigned polls_ = 0;
};

} // namespace weftio::verbs
