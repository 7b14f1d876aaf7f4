// The kernel's newer interface to nodes: ioctl() with the number of a method (rdma/rdma_user_ioctl_cmds.h).
#pragma once

#include "context.hpp"
#include "method_call.hpp"

namespace weftio::verbs {

/// Whether a function below executes the method; there is one.
bool is_supported(const method_call& what) noexcept;
/// REG_DMABUF_MR, as ibv_reg_dmabuf_mr() asks for it.
/// @pre the mutex of the context is held  @throws failure, error
void reg_dmabuf_mr(context& in, const method_call& what);

/// Refuses any other method. Returns a negative errno:
///
/// - ENOTTY: libraries continue with write() or with /sys. No line in the log.
/// - EOPNOTSUPP: only ioctl() has this method. A line in the log (refusals.hpp).
/// - EPROTONOSUPPORT: the method is unknown here. Linux answers the same, and libraries that can do without continue.
int refuse_method(const method_call& what) noexcept;

} // namespace weftio::verbs
