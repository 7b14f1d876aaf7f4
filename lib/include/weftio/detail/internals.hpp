// Access of the library to the internals of public classes. Not for applications; it may change in any version.
#pragma once

#include <cstdint>
#include <memory>

namespace weftio {

class completion_queue;
class device;
class dma_engine;
class dma_queue;
class eth_rxq;
class eth_txq;
class file;
class file_buffer;
class file_engine;
class file_memory;
class file_queue;
class memory;
class memory_region;
class memory_window;
class port;
class queue_pair;
class rdma_connections;
class rdma_device;
class rdma_queue;
class rdma_receives;
class semaphore;
class shared_receives;

namespace devices {
class copy_queue;
class device_backend;
class lifeline;
struct memory_block;
} // namespace devices

namespace nic {
class backend;
class completion_queue;
class dma_backend;
class file_backend;
class shared_receives;
} // namespace nic

namespace queues {
class reported_queue;
}

namespace rdma {
struct local_addresses;
}

namespace storage {
class context;
class open_file;
struct place;
} // namespace storage

namespace detail {

/// The friend of every public class that has internals. The library's sources, tests and benchmarks access them through
/// these functions. Each function is defined beside the members of its class. Any thread. Unless a comment says so, a
/// function does not block or throw.
struct internals {
    /// The back end that executes the calls of the object; valid as long as the object.
    static devices::device_backend& backend(const device& device) noexcept;
    static nic::backend& backend(const port& port) noexcept;
    static nic::backend& backend(const rdma_device& device) noexcept; ///< back end of its port
    static nic::backend& backend(const eth_rxq& queue) noexcept;      ///< back end of its port
    static nic::dma_backend& backend(const dma_engine& engine) noexcept;
    /// The back end that executes entries of file queues; the first call makes it. Throws what the constructor of
    /// file_queue throws.
    static std::shared_ptr<nic::file_backend> backend(const file_engine& engine);

    /// The back end, kept alive while the pointer is held.
    static const std::shared_ptr<nic::backend>& share(const port& port) noexcept;
    static const std::shared_ptr<nic::completion_queue>& share(const completion_queue& queue) noexcept;
    static const std::shared_ptr<nic::shared_receives>& share(const shared_receives& receives) noexcept;

    /// The addresses of the device, claimed while the pointer is held.
    static std::shared_ptr<const rdma::local_addresses> share(const rdma_device& device) noexcept;

    static const std::shared_ptr<storage::context>& share(const file_engine& engine) noexcept;
    static const std::shared_ptr<storage::open_file>& share(const file& file) noexcept;
    /// Address and owner of the memory of a file operation.
    static storage::place place(const file_memory& memory, std::size_t further = 0);

    /// The memory block, kept alive while the pointer is held.
    static const std::shared_ptr<const devices::memory_block>& block(const memory& memory) noexcept;
    static const std::shared_ptr<const devices::memory_block>& block(const memory_region& region) noexcept;
    static std::size_t offset(const memory_region& region) noexcept; ///< offset of its first byte in the block

    static memory make_memory(std::shared_ptr<const devices::memory_block> block) noexcept;

    static port make_port(std::shared_ptr<nic::backend> backend) noexcept;

    /// The key of the region at that port, in host byte order; the key of the process if the region is not registered
    /// with the port.
    static std::uint32_t lkey(const memory_region& region, const nic::backend& port) noexcept;

    /// The reference that a running kernel holds: it keeps the object's memory, as it is until the next reset().
    static std::shared_ptr<devices::lifeline> line(const completion_queue& queue) noexcept;
    static std::shared_ptr<devices::lifeline> line(const dma_queue& queue) noexcept;
    static std::shared_ptr<devices::lifeline> line(const eth_rxq& queue) noexcept;
    static std::shared_ptr<devices::lifeline> line(const eth_txq& queue) noexcept;
    static std::shared_ptr<devices::lifeline> line(const file_queue& queue) noexcept;
    /// Of the send rings of all, as they are at the last handle().
    static std::shared_ptr<devices::lifeline> line(const rdma_connections& connections) noexcept;
    static std::shared_ptr<devices::lifeline> line(const rdma_queue& queue) noexcept; ///< of the send ring
    static std::shared_ptr<devices::lifeline> line(const rdma_receives& receives) noexcept;
    static std::shared_ptr<devices::lifeline> line(const semaphore& semaphore) noexcept;

    /// The part of the queue that a progress_engine holds.
    static std::shared_ptr<queues::reported_queue> reports(const dma_queue& queue) noexcept;
    static std::shared_ptr<queues::reported_queue> reports(const eth_txq& queue) noexcept;
    static std::shared_ptr<queues::reported_queue> reports(const file_queue& queue) noexcept;
    static std::shared_ptr<queues::reported_queue> reports(const queue_pair& queue) noexcept;
    static std::shared_ptr<queues::reported_queue> reports(const rdma_queue& queue) noexcept;

    /// Makes the copy queue that carries packets to the device.
    /// @throws weftio::error errc::not_supported the device needs none, because the CPU writes its memory directly
    static std::shared_ptr<devices::copy_queue> make_copy_queue(const device& device);
};

} // namespace detail

} // namespace weftio
