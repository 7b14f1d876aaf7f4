// The counters of a device, in files with the names and units of mlx5: ports/1/counters and ports/1/hw_counters.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "node.hpp"

namespace weftio::verbs {

/// Any thread may call.
class counter_files {
 public:
    /// Creates the files. @param device  the folder of the device  @param of  must outlive this
    /// @throws std::system_error
    counter_files(const std::string& device, node& of);

    /// Writes what has changed. Blocks for up to one iteration of the port's engine. A file that cannot be written, for
    /// want of a descriptor, keeps its value until the next call.
    void write() noexcept;
    /// Counts a link that has gone down since the last look.
    void look_at_link() noexcept;

 private:
    void count_link() noexcept;

    const std::string port_; ///< folder
    node& of_;
    std::mutex mutex_; ///< guards the next three and the files
    bool was_up_;
    std::uint64_t downs_ = 0;            ///< how often the link went down
    std::vector<std::uint64_t> written_; ///< in the files
};

} // namespace weftio::verbs
