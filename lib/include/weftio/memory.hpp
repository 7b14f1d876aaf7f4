// Memory regions, which NICs and engines may access, and arrays of buffers in them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "weftio/access.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/buf.h"
#include "weftio/port.hpp"

namespace weftio {

class dma_engine;
class file_engine;

struct region_options {
    access rights = access::local_write;
    protection_domain domain{};
    /// The address that entries and peers use for the first byte (as of ibv_reg_mr_iova); 0 makes the region
    /// zero-based. Empty: the device address. Kernels always access the bytes by their device address.
    std::optional<std::uint64_t> iova{};
};

/// Registers memory with NICs and engines, which name it by an mlx5-style key. The software NICs of all ports, the DMA
/// engines and the file engines share one key for a region; a NIC with a key table of its own gives the region another
/// key.
///
/// - Ownership: move-only; keeps the ports and the memory alive. Adopted memory belongs to the caller and must outlive
///   the region; device::adopt() has the details.
/// - Threads: any, one at a time, while the ports run. Making a region does not stop engines; destroying one runs
///   between two iterations of each engine. The destructor waits for frames of the region that are still being sent, at
///   most one second per port. If frames are still out then, the memory is kept until they come back, also after the
///   port has closed, and the log reports it. Memory windows that are still bound to the region are freed, and the log
///   tells how many: free them first, or call close(). After the destructor, NICs refuse the key. No later region gets
///   the same key before 131,072 other regions have been destroyed: a free index is reused late, and with another
///   variant.
class memory_region {
 public:
    /// Registers the memory with one port; register_with() adds others. If the CPU cannot access the memory (of a GPU),
    /// the GPU's copy engine copies frames to the host when they are sent, and payload of queue pairs in both
    /// directions; atomics of peers are refused there. The first such region of a port allocates 12 MiB of pinned
    /// memory per engine.
    /// @throws weftio::error errc::not_reachable `rights` include writing, and the memory is adopted and read-only;
    ///         errc::not_supported the CPU cannot access the memory, and its device has no copy engine;
    ///         errc::invalid_argument the memory is empty, or `rights` include remote_write or remote_atomic without
    ///         local_write; errc::out_of_memory all 2^24 keys of the process are in use
    memory_region(const port& port, const memory& memory, region_options options = {});
    /// Registers the memory with one DMA engine. Errors: as above.
    memory_region(const dma_engine& engine, const memory& memory, region_options options = {});
    /// Registers the memory with one file engine. The destructor waits for reads and writes of the region that are in
    /// flight, without a time limit. The first region in GPU memory allocates 8 MiB of pinned memory.
    /// @throws weftio::error as above, and as the constructor of file_queue
    memory_region(const file_engine& engine, const memory& memory, region_options options = {});
    /// Registers the memory with no NIC: every port and engine refuses the key until register_with().
    /// @throws weftio::error errc::not_reachable, errc::invalid_argument, errc::out_of_memory: as above
    explicit memory_region(const memory& memory, region_options options = {});
    memory_region(memory_region&&) noexcept;
    memory_region& operator=(memory_region&&) noexcept;
    ~memory_region();

    /// Registers the region with a further port or engine; does nothing if it is registered there already. Does not
    /// block. On error the region is unchanged.
    /// @throws weftio::error errc::not_reachable the NIC cannot access the memory; errc::out_of_memory
    void register_with(const port& port);
    void register_with(const dma_engine& engine);
    void register_with(const file_engine& engine);
    /// Replaces rights, range, protection domain and iova, and gives the region a new key, which is returned (also
    /// lkey()). The range is [offset, offset + bytes) of the memory that the region was made of; `bytes` 0: up to its
    /// end. The new key is the next variant of the old one; after 256 calls the first key comes again. When the call
    /// returns, every NIC refuses the old key and accesses no byte by it. Frames that a driver already has are still
    /// sent. Make buffers, arrays and remote_regions with the old key anew.
    ///
    /// Blocks for up to one iteration of the engines, and until copy engines have finished copies that they have begun.
    /// @throws weftio::error errc::invalid_argument, errc::not_reachable: as the constructors; errc::invalid_argument
    ///         also if the range is not within the memory; errc::in_use memory windows are bound to it. On error the
    ///         region is unchanged.
    std::uint32_t rereg(const region_options& options, std::size_t offset = 0, std::size_t bytes = 0);
    /// Replaces memory, rights, protection domain and iova under the same key, at every NIC that the region is
    /// registered with, as ibv_rereg_mr() does. Entries and peers that have the key then access the new bytes. During
    /// the call NICs refuse the key; when it returns, they use no byte of the old memory. Blocks as rereg().
    /// @throws weftio::error errc::invalid_argument, errc::not_reachable, errc::not_supported: as the constructors;
    ///         errc::in_use memory windows are bound to it. On error the region is unchanged.
    void replace(const memory& memory, const region_options& options);
    /// Withdraws the key for good, as the destructor does, unless windows are bound to the region. Blocks as rereg().
    /// Afterwards register_with(), rereg() and replace() throw errc::closed.
    /// @throws weftio::error errc::in_use memory windows are bound to it. On error the region is unchanged.
    void close();
    std::uint32_t windows() const noexcept; ///< memory windows that are bound to it at this moment
    /// The key at the port or engine that the region was registered with first, in host byte order; before any
    /// registration, the key that software NICs will use. Sufficient if all NICs are software NICs.
    std::uint32_t lkey() const noexcept;
    /// The key at one port or engine, in host byte order.
    /// @throws weftio::error errc::invalid_argument the region is not registered there
    std::uint32_t lkey(const port& port) const;
    std::uint32_t lkey(const dma_engine& engine) const;
    std::uint32_t lkey(const file_engine& engine) const;
    void* device_address() const noexcept; ///< device address of the first byte
    std::uint64_t iova() const noexcept;   ///< the address that entries and peers use for the first byte
    std::size_t bytes() const noexcept;
    access rights() const noexcept;
    /// Bytes [offset, offset + bytes) of the region as a buffer, for entries of kernels and of the host; `bytes` 0: up
    /// to the end, at most 2^32 - 1. The address of the buffer is the one that entries use: with region_options::iova
    /// it is not the device address. For the host, CPU kernels and CUDA kernels. OpenCL does not pass structures with
    /// pointers by value: a kernel for all devices takes a buf_arr on the region. Both use lkey().
    /// @throws weftio::error errc::invalid_argument the bytes are not within the region
    weftio_dev_buf buffer(std::size_t offset = 0, std::size_t bytes = 0) const;

 private:
    friend detail::internals;
    struct state;
    std::unique_ptr<state> state_;
};

struct buf_arr_options {
    std::uint32_t count = 0;
    std::uint32_t buffer_bytes = 0; ///< size of one buffer
    std::uint32_t stride_bytes = 0; ///< distance of buffers; 0: buffer_bytes, rounded up to a multiple of 64
    protection_domain domain{};     ///< queues of this domain may send from the buffers
    std::size_t offset_bytes = 0;   ///< offset of buffer 0 in the caller's region; any alignment
};

/// An array of buffers of equal size, in which kernels build packets.
///
/// - Ownership: move-only; keeps its device alive. An array made on a port or an engine owns and registers its memory,
///   and keeps the port or engine alive. An array on a region of the caller uses the key of the region, and keeps the
///   memory alive (adopted memory belongs to the caller); NICs refuse the buffers once the region has been destroyed or
///   changed.
/// - Threads: create, move and destroy from one thread at a time, while no kernel holds the handle.
class buf_arr {
 public:
    /// @throws weftio::error errc::invalid_argument `count` or `buffer_bytes` is 0, the stride is shorter than a
    ///         buffer, or an offset is given without a region; errc::out_of_memory
    buf_arr(const port& port, const device& device, buf_arr_options options);
    /// The same for the queues of a DMA engine.
    buf_arr(const dma_engine& engine, const device& device, buf_arr_options options);
    /// The same for the queues of a file engine.
    buf_arr(const file_engine& engine, const device& device, buf_arr_options options);
    /// Buffers in a region of the caller: buffer k begins at byte `offset_bytes + k * stride_bytes`. Allocates memory
    /// for the handle only; bytes of the region do not change. Arrays may overlap each other and receive slots.
    /// @throws weftio::error errc::invalid_argument as above, or the last buffer reaches beyond the region, or `domain`
    ///         is set (the region has one); errc::not_reachable the memory of the region belongs to another device;
    ///         errc::out_of_memory
    buf_arr(const memory_region& region, const device& device, buf_arr_options options);
    buf_arr(buf_arr&&) noexcept;
    buf_arr& operator=(buf_arr&&) noexcept;
    ~buf_arr();

    weftio_dev_buf_arr* handle() const noexcept;
    std::uint32_t count() const noexcept;
    std::uint32_t lkey() const noexcept; ///< host byte order
    /// CPU address of buffer `index`; nullptr if the CPU cannot access the region. @pre index < count()
    void* cpu_address(std::uint32_t index) const noexcept;

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
