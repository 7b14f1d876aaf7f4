// The kernel's newer interface to nodes: ioctl() with the number of a method (rdma/rdma_user_ioctl_cmds.h).
#pragma once

namespace weftio::verbs {

/// Refuses an ioctl() of a node: no method is supported. Returns a negative errno:
///
/// - ENOTTY: libraries continue with write() or with /sys. Also for requests that are no methods. No line in the log.
/// - EOPNOTSUPP: only ioctl() has this method. A line in the log (refusals.hpp).
/// - EPROTONOSUPPORT: the method is unknown here. Linux answers the same, and libraries that can do without continue.
/// - EFAULT, EINVAL: the request cannot be read, or its length is wrong.
int refuse_method(unsigned long request, const void* argument) noexcept;

} // namespace weftio::verbs
