// Memory that a NIC may touch, and arrays of buffers in it.
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
    /// The address by which entries and peers name the first byte: 0 makes the region zero-based. Without it, the
    /// device address. Kernels reach the bytes by their device address in any case.
    std::optional<std::uint64_t> iova{};
};

/// Registers memory and names it by an mlx5-style key. Each NIC answers with its key when it is told of the region: the
/// software NIC of every port and every DMA engine with the same one, a NIC with keys of its own with another.
///
/// - Ownership: move-only; keeps the ports and the memory alive. Adopted memory is its owner's and must outlive the
///   region; what happens else says device::adopt().
/// - Threads: any, one at a time, while the ports run: engines are not stopped for a region that is made, only between
///   two turns for one that ends. The destructor waits for frames that lie in the region and are on their way out, at
///   most a second for each port. After that the memory is kept, with a line in the log, until they come back, also
///   when the port has closed. NICs refuse the key from then on, and no later region has it until 131,072 others
///   have ended: an index rests, and comes back as another generation.
class memory_region {
 public:
    /// For the queues of one port, until register_with() says more. Frames in memory that the CPU does not see, a GPU's
    /// own, are brought to the host by its copy engine when they are sent; the first such region of a port allocates
    /// 4 MiB of pinned memory for each engine.
    /// @throws weftio::error errc::not_reachable the memory cannot be written (adopted, and read-only) though `rights`
    ///         say so; errc::not_supported the CPU does not see the memory, and its device has no copy engine;
    ///         errc::invalid_argument it is empty, or rights to write or change for a peer come without local_write;
    ///         errc::out_of_memory all 2^24 keys of the process are taken
    memory_region(const port& port, const memory& memory, region_options options = {});
    /// For the queues of one DMA engine, likewise.
    memory_region(const dma_engine& engine, const memory& memory, region_options options = {});
    /// For the queues of one file engine, likewise; its destructor waits for reads and writes that are in flight, as
    /// long as they take. The first region of a GPU's own memory allocates 8 MiB of pinned memory.
    /// @throws weftio::error also what the constructor of file_queue throws
    memory_region(const file_engine& engine, const memory& memory, region_options options = {});
    /// Registered with no NIC: every port and engine refuses the key until register_with().
    /// @throws weftio::error errc::not_reachable, errc::invalid_argument, errc::out_of_memory: as above
    explicit memory_region(const memory& memory, region_options options = {});
    memory_region(memory_region&&) noexcept;
    memory_region& operator=(memory_region&&) noexcept;
    ~memory_region();

    /// Tells the NIC of another port too; one that has been told already needs nothing more. What fails leaves the
    /// region as it was. Does not block. @throws weftio::error errc::not_reachable the NIC cannot see the memory;
    ///         errc::out_of_memory
    void register_with(const port& port);
    void register_with(const dma_engine& engine);
    void register_with(const file_engine& engine);
    /// Registers other rights, another range of the memory, another domain or another iova in the place of the present
    /// ones: the bytes [offset, offset + bytes) of the memory that the region was made of; bytes 0: up to its end. The
    /// region has another key afterwards, a variant of the old one, which is returned (lkey()); 256 changes later it has the
    /// first again. Once this returns, every NIC refuses the old key, and neither reads nor writes by it. Frames that a
    /// driver has are sent. Buffers, arrays and remote_region that have the old key are to be made anew. Blocks while
    /// engines end a turn, and while devices end copies that they have begun.
    /// @throws weftio::error errc::invalid_argument, errc::not_reachable: as the constructors; the bytes are not within
    ///         the memory. The region is unchanged then.
    std::uint32_t rereg(const region_options& options, std::size_t offset = 0, std::size_t bytes = 0);
    /// Puts other memory, rights, domain and iova in the place of the present ones under the same key, at every NIC that
    /// the region is registered with, as ibv_rereg_mr() does: entries, and peers, that have the key name the new bytes
    /// from now on. NICs refuse the key meanwhile, and use no byte of the old memory once this returns. Blocks as rereg().
    /// @throws weftio::error errc::invalid_argument, errc::not_reachable, errc::not_supported: as the constructors. The
    ///         region is unchanged then.
    void replace(const memory& memory, const region_options& options);
    /// The key at the port or DMA engine that the region was registered with first, in host byte order; before that, the
    /// key that it will have at software NICs. The one to use where all NICs are software.
    std::uint32_t lkey() const noexcept;
    /// The key at one port, or at one DMA engine. @throws weftio::error errc::invalid_argument the region is not
    ///         registered there
    std::uint32_t lkey(const port& port) const;
    std::uint32_t lkey(const dma_engine& engine) const;
    std::uint32_t lkey(const file_engine& engine) const;
    void* device_address() const noexcept; ///< of the first byte
    std::uint64_t iova() const noexcept;   ///< the address by which entries and peers name the first byte
    std::size_t bytes() const noexcept;
    access rights() const noexcept;
    /// `bytes` bytes from `offset` on as a buffer that kernels and the host name in entries; 0: up to the end, and at
    /// most 2^32 - 1. Its address is the one that entries name: with region_options::iova the bytes lie elsewhere. For
    /// the host, and for CPU and CUDA kernels; OpenCL takes no structure with a pointer by value, so a kernel for all
    /// devices is given a buf_arr over the region. Both name it by lkey(). @throws weftio::error
    ///         errc::invalid_argument they are not within the region
    weftio_dev_buf buffer(std::size_t offset = 0, std::size_t bytes = 0) const;

 private:
    friend detail::internals;
    struct state;
    std::unique_ptr<state> state_;
};

struct buf_arr_options {
    std::uint32_t count = 0;
    std::uint32_t buffer_bytes = 0; ///< room of one buffer
    std::uint32_t stride_bytes = 0; ///< from buffer to buffer; 0: buffer_bytes, rounded up to a multiple of 64
    protection_domain domain{};     ///< queues of this one may send from the buffers
    std::size_t offset_bytes = 0;   ///< of buffer 0 in the caller's region; any byte
};

/// Equal buffers side by side, for kernels to build packets in.
///
/// - Ownership: move-only; keeps its device alive. Owns and registers its memory, and keeps the port or engine alive; or
///   lies in a region of the caller's, whose key the buffers have: it keeps the bytes (adopted ones are their owner's),
///   and NICs refuse the buffers once the region has ended or changed.
/// - Threads: create, move and destroy from one thread at a time, while no kernel holds the handle.
class buf_arr {
 public:
    /// @throws weftio::error errc::invalid_argument no buffers, buffers of 0 bytes, a stride shorter than a buffer, or
    ///         an offset without a region of the caller's; errc::out_of_memory
    buf_arr(const port& port, const device& device, buf_arr_options options);
    /// The same for the queues of a DMA engine.
    buf_arr(const dma_engine& engine, const device& device, buf_arr_options options);
    /// The same for the queues of a file engine.
    buf_arr(const file_engine& engine, const device& device, buf_arr_options options);
    /// Buffers in memory of the caller's: buffer k begins at byte `offset_bytes + k * stride_bytes` of the region.
    /// Allocates no memory but the handle; nothing in the region changes. Arrays may overlap, and receive slots too.
    /// @throws weftio::error errc::invalid_argument as above, or the last buffer reaches behind the region, or `domain`
    ///         is set, which the region has; errc::not_reachable the region's memory is another device's;
    ///         errc::out_of_memory
    buf_arr(const memory_region& region, const device& device, buf_arr_options options);
    buf_arr(buf_arr&&) noexcept;
    buf_arr& operator=(buf_arr&&) noexcept;
    ~buf_arr();

    weftio_dev_buf_arr* handle() const noexcept;
    std::uint32_t count() const noexcept;
    std::uint32_t lkey() const noexcept; ///< host byte order
    /// Buffer `index`, for the CPU; nullptr in a region that the CPU cannot see. @pre index < count()
    void* cpu_address(std::uint32_t index) const noexcept;

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
