// Descriptors that DPDK opens are not for programs that this one starts.
#pragma once

#include <vector>

namespace weftio::dpdk {

/// From its construction to its end, new descriptors of the process are to be closed by exec(): DPDK opens most of its
/// own without O_CLOEXEC. Descriptors that other threads open meanwhile are taken for DPDK's.
class close_on_exec {
 public:
    close_on_exec() noexcept;
    close_on_exec(const close_on_exec&) = delete;
    close_on_exec& operator=(const close_on_exec&) = delete;
    ~close_on_exec();

 private:
    std::vector<bool> open_before_; ///< by descriptor
    bool is_known_ = false;         ///< whether open_before_ could be read
};

} // namespace weftio::dpdk
