// What DPDK's af_xdp driver makes in the kernel, and leaves open.
#pragma once

#include <set>
#include <string>

namespace weftio::nic {

/// Names of kernel objects: an AF_XDP socket's by its inode, a BPF map's or program's by its id. None is used again soon.
using xdp_objects = std::set<std::string>;

/// Those that this process has descriptors of; none where /proc cannot be read.
xdp_objects xdp_objects_open();
/// Closes every descriptor of `objects` that is still open.
void close_descriptors(const xdp_objects& objects) noexcept;

} // namespace weftio::nic
