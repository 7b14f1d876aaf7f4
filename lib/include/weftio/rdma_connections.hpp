// Several connections as one object: queue pairs by index, with one ring of receives for the messages of all.
//
// A server has one connection for each client, but cannot know who sends next. With a shared ring, memory for receives
// follows the traffic, and one wait hears all clients.
#pragma once

#include <cstdint>
#include <memory>

#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/rdma_connections.h"
#include "weftio/rdma.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio {

/// Queue pairs with one shared receive queue (SRQ of verbs), for kernels of one device.
///
/// - Each connection is an rdma_queue, with its own address(), connect(), counters(), state and reset(); a failure of
///   one does not touch the others. A progress_engine is attached to each.
/// - Kernels get the object itself, and receives() as an argument of its own (weftio/device/rdma_connections.h). A
///   message takes the oldest posted receive, whichever connection it comes by; the kernel learns the index of the
///   connection with the message. Without a posted receive, a message waits (RC: RNR NAK) or is lost (UC).
/// - A receive whose key or memory is wrong fails the connection whose message has taken it, and no other. A connection
///   that fails completes the one receive that it has taken, if any; one that is reset or destroyed gives it back.
/// - Ownership: move-only; keeps the port and the device alive, as do kernels that run with it.
/// - Threads: create, move and destroy from one thread at a time; connections as rdma_queue; the rest from any.
class rdma_connections {
 public:
    static constexpr std::uint32_t most = 4096; ///< connections

    /// @param count    number of connections, 1 to `most`
    /// @param options  of each connection. The receive options are those of the shared ring, of which one receive is
    ///                 always free: at most receive_entries - 1 are posted. receive_segments is 16 at most; the ring
    ///                 may allow more pieces than that
    /// @throws weftio::error errc::invalid_argument `count`, or as rdma_queue; errc::not_supported, errc::out_of_memory
    ///         as rdma_queue
    rdma_connections(const rdma_device& at, const device& device, std::uint32_t count, rdma_queue_options options = {});
    rdma_connections(rdma_connections&&) noexcept;
    rdma_connections& operator=(rdma_connections&&) noexcept;
    ~rdma_connections();

    std::uint32_t size() const noexcept; ///< number of connections
    /// A connection. Its receives() are the shared ones.
    /// @throws weftio::error errc::invalid_argument `index` is not below size()
    rdma_queue& operator[](std::uint32_t index);
    const rdma_queue& operator[](std::uint32_t index) const;

    /// The send sides. Pass the object itself to device::launch. After a reset() of a connection the next launch gets
    /// another handle, with its new ring; a kernel that still runs keeps the old one.
    /// @throws weftio::error errc::out_of_memory, after a reset
    weftio_dev_rdma_connections* handle() const;
    weftio_dev_control* control() const noexcept;
    /// The shared receive ring: a separate argument of device::launch. The reference is valid as long as the object
    /// exists, also after it has been moved.
    const rdma_receives& receives() const noexcept;

    /// Counts once in shared_receives_standing::limits_reached as soon as fewer than `limit` receives are posted and
    /// not taken; then the limit is 0, which is none. Blocks for up to one iteration of the engine.
    /// @throws weftio::error errc::invalid_argument `limit` is not less than the depth of the ring
    void set_limit(std::uint32_t limit);
    /// Blocks for up to one iteration of the engine.
    shared_receives_standing standing() const;

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
