// Memory of the host, or of a GPU, that outlives the process that made it.
//
//     auto held = weftio::memory_holder::make(1 << 30);
//     weftio::memory here = held.map(cpu);  // for regions, queues and kernels of this process
//     held.send(socket);                    // to the next process, which calls receive() and map()
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "weftio/device.hpp"

namespace weftio {

/// Holds shared memory by its descriptor: it exists as long as one process holds it, or has it mapped. A program that
/// is replaced by its successor hands it over; the bytes stay, keys do not: the successor registers it anew. Memory of
/// the host is a memfd. Memory of a GPU is a descriptor of NVIDIA's driver (cuMemExportToShareableHandle()), which
/// belongs to no context: a process that only holds it needs no GPU.
///
/// - Ownership: move-only; the destructor closes the descriptor. What map() has returned stays.
/// - Threads: any; one at a time for a move.
/// - Children of fork() have it, too; it is closed on exec.
class memory_holder {
 public:
    /// Makes memory: whole pages, zeroed, of a size that nobody can change (it is sealed). The system gives a page when
    /// it is used first.
    /// @param name  shown as /memfd:NAME in /proc/PID/maps; up to 200 letters
    /// @throws weftio::error errc::invalid_argument  no bytes, or too long a name
    ///                       errc::out_of_memory     no descriptor is free, or more bytes than a file can have
    static memory_holder make(std::size_t bytes, const std::string& name = "weftio");
    /// Makes memory of a GPU ("cuda:N"), zeroed, which NICs reach and other processes can map: at least so many bytes.
    /// @throws weftio::error errc::invalid_argument  no bytes, or no GPU of CUDA
    ///                       errc::not_supported     the GPU has none that can be shared (some kinds of MIG and vGPU)
    ///                       errc::out_of_memory, errc::device_error
    static memory_holder make(const device& gpu, std::size_t bytes);
    /// Holds memory of a GPU that the program has made by cuMemCreate(), with requestedHandleTypes
    /// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR and allocFlags.gpuDirectRDMACapable, and mapped: all of the mapping at
    /// the address. The mapping stays what it is.
    /// @throws weftio::error errc::not_supported     other memory, such as that of cudaMalloc(): the text says why
    ///                       errc::not_reachable     it is another GPU's
    ///                       errc::invalid_argument  no GPU of CUDA
    ///                       errc::device_error
    static memory_holder of(const device& gpu, const void* address);
    /// Takes over a descriptor, which must not be closed by others then.
    /// @throws weftio::error errc::invalid_argument  it is no memory of memfd_create(), is empty, cannot be written, or
    ///                                               its size can shrink (F_SEAL_SHRINK is not set): who reads what is
    ///                                               gone gets SIGBUS. It stays the caller's
    static memory_holder take(int descriptor);
    /// Receives what another process sends by send(). Blocks until then, or the timeout. One call at a time for a
    /// socket, which nothing else reads.
    /// @param socket  a connected Unix socket
    /// @throws weftio::error errc::timed_out         nothing came
    ///                       errc::closed            the other end has closed it
    ///                       errc::invalid_argument  something else came, which is dropped; as for take(); or it is no
    ///                                               such socket
    ///                       errc::out_of_memory     no descriptor is free: what was sent waits
    static memory_holder receive(int socket, std::chrono::milliseconds timeout = std::chrono::seconds(10));

    memory_holder(memory_holder&&) noexcept;
    memory_holder& operator=(memory_holder&&) noexcept;
    ~memory_holder();

    /// Sends a descriptor of it. The other process holds it when its receive() has returned, and as long as the message
    /// is under way. Blocks only while the socket takes nothing.
    /// @throws weftio::error errc::closed            the other end has closed it
    ///                       errc::invalid_argument  it is no connected Unix socket, or the holder was moved from
    void send(int socket) const;
    /// Maps all of it, at an address of its own in each call. The memory keeps the mapping, also beyond the holder.
    /// Memory of a GPU is mapped on that GPU only, and is of kind `device`; the end of its mapping may wait for
    /// kernels.
    /// @throws weftio::error errc::out_of_memory  no addresses are free
    ///                       errc::not_reachable  it is memory of another GPU, or `on` is no GPU
    ///                       errc::invalid_argument  what was received as memory of a GPU is none
    ///                       as device::adopt()   a GPU, which does not know memory of the host
    memory map(const device& on) const;

    std::size_t bytes() const noexcept { return bytes_; }
    /// The address on PCIe of the GPU whose memory it is, such as "0000:3b:00.0"; empty: the host's.
    const std::string& gpu() const noexcept { return gpu_; }
    int descriptor() const noexcept { return descriptor_; }

 private:
    memory_holder(int descriptor, std::size_t bytes, std::string gpu = {}) noexcept
        : descriptor_(descriptor), bytes_(bytes), gpu_(std::move(gpu))
    {}

    void require_held(const char* call) const;
    memory map_on_gpu(const device& on) const;

    int descriptor_ = -1;
    std::size_t bytes_ = 0;
    std::string gpu_;
};

} // namespace weftio
