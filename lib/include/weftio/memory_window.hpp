// Memory windows: a part of a memory region that kernels lend to peers, and take back, without asking the host.
//
// A region grants its rights until the host changes it, which takes a turn of each engine. A window has a key and
// rights of its own. Entries of a send queue bind it to bytes of a region and free it again
// (weftio_dev_rdma_bind_request() and weftio_dev_rdma_invalidate_request() in weftio/device/rdma/request.h), in the
// order of the queue: what is posted behind a bind or an invalidation finds it in force.
#pragma once

#include <cstdint>
#include <memory>

#include "weftio/access.hpp"
#include "weftio/detail/internals.hpp"

namespace weftio {

class rdma_device;

/// Makes a window, which is free, and removes it.
///
/// | | type 1 | type 2 |
/// |---|---|---|
/// | Who binds it | a queue pair of its domain, also while it is bound | a queue pair of its domain, while it is free |
/// | Who accesses it | peers of all queue pairs of its domain | the peer of the queue pair that has bound it |
/// | Who frees it | a bind of 0 bytes | an invalidation by that queue pair or by its peer (SEND with invalidate) |
/// | Bytes | 1 to 2^31; 0 frees it | 1 to 2^31 |
/// | Next key | the entry chooses the lower 8 bits; a bind makes the key before it invalid | the same |
///
/// - The region needs access::bind, and access::local_write if the window lets a peer write or execute atomics. Its
///   remote rights do not matter. It must not be zero-based, and must be registered with the port of the window.
/// - rdma_queue::reset() and the state RESET leave windows of type 2 bound: the next peer of the queue pair may use
///   them. Invalidate them before.
/// - Type 2 is type 2B of the InfiniBand specification: a queue pair that is destroyed leaves its windows dead, and who
///   accesses one must be of its domain. Windows that are bound by queue pairs of an rdma_device with
///   rdma_device_options::windows_of_type_2a are of type 2A: the queue pair cannot be destroyed as long as they are
///   bound (rdma_queue::close()), and its number alone says who may access and invalidate them.
/// - Windows may overlap. A region with bound windows cannot be changed or closed (memory_region).
/// - A window has a remote key only: an entry that names local memory by it is refused.
/// - What breaks a rule fails with refusal numbers 58 and up (weftio/refusal.hpp). A bind or an invalidation then
///   changes nothing, completes with syndrome 0x06 and stops its queue; an access is answered with a remote access
///   error (0x13), which stops both ends.
/// - A bind that was executed may still complete as flushed, if an earlier entry fails later: standing() tells.
///
/// - Ownership: move-only; keeps the port alive. The destructor frees the window: afterwards no engine accesses a byte
///   by its key. If a peer may be in the midst of an access, it blocks for up to one iteration of the engines.
/// - Threads: any; one at a time for the destructor and moves.
class memory_window {
 public:
    /// The index of its key may be that of a window that was destroyed 512 windows ago or earlier; its first variant is
    /// another one.
    /// @throws weftio::error errc::invalid_argument `type` is no window_type; errc::not_supported the port's NIC has no
    ///         RDMA; errc::out_of_memory all 2^24 keys of the process are in use
    memory_window(const rdma_device& at, window_type type, protection_domain domain = {});
    memory_window(memory_window&&) noexcept;
    memory_window& operator=(memory_window&&) noexcept;
    ~memory_window();

    /// As memory_window_standing::rkey, host byte order: the argument of the first bind.
    std::uint32_t rkey() const noexcept;
    memory_window_standing standing() const noexcept; ///< does not block

 private:
    friend detail::internals;
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
