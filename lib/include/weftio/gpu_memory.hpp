// What the memory of a GPU is, and what its platform promises of the order in which a NIC's writes are seen there.
//
//     if (weftio::ordering_of(gpu).remote_writes < weftio::writes_ordering::owner)
//         weftio::flush_writes(gpu); // between the completion of a WRITE and the kernel that reads the bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weftio/device.hpp"

namespace weftio {

/// For whom writes of NICs into the memory of a GPU are in order: whoever has seen a later one, or its completion, sees
/// the earlier ones. A larger value includes the smaller ones. The numbers are those of
/// CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING.
enum class writes_ordering {
    none = 0,          ///< for nobody: a flush is needed
    owner = 100,       ///< for the GPU whose memory it is
    all_devices = 200, ///< for other GPUs and the CPU, too
};
const char* to_string(writes_ordering ordering) noexcept;

/// What a platform promises of the memory of a device.
struct memory_ordering {
    writes_ordering remote_writes = writes_ordering::all_devices;
    bool flushed_by_host = true;    ///< flush_writes() can be called
    bool flushed_by_stream = false; ///< wait_and_flush() can be called
};

/// What the platform promises of writes that a NIC makes into the memory of `of`. It does not concern what engines of
/// Weftio write: they publish a completion when its bytes have arrived. Never blocks; any thread. A CPU and a device of
/// OpenCL share the host's memory: all_devices.
/// @throws weftio::error errc::device_error  the driver refuses to tell
memory_ordering ordering_of(const device& of);

/// Makes what NICs have written into the memory of `target` visible: to its kernels, or to those of other GPUs and the
/// CPU as well. Everything is included whose completion, or a later byte of the same queue, the caller has seen. Blocks
/// while the GPU does it (microseconds). Returns at once, and asks no driver, where ordering_of() promises it anyway.
/// Any thread; its current CUDA context stays what it is. (CUDA driver API, cuFlushGPUDirectRDMAWrites)
/// @param for_whom  owner or all_devices
/// @throws weftio::error errc::invalid_argument  for_whom is none
///                       errc::not_supported     no flush by the host (flushed_by_host is false)
///                       errc::device_error      the driver reports a fault
void flush_writes(const device& target, writes_ordering for_whom = writes_ordering::owner);

/// Has a stream of CUDA wait until the word is `value` or more (as a signed difference), and then see all that a NIC
/// wrote into the memory of `target` before that word, without the CPU. Enqueues, and does not wait itself. Any thread.
/// (CUDA driver API, cuStreamWaitValue32 with CU_STREAM_WAIT_VALUE_FLUSH)
/// @param stream  a CUstream of the primary context of `target`; what is enqueued there later waits
/// @param word    as the GPU sees it, at a multiple of 4: memory of the GPU, or pinned memory of the host
/// @throws weftio::error errc::not_supported     flushed_by_stream is false
///                       errc::invalid_argument  the word is not at a multiple of 4
///                       errc::device_error      the driver refuses the stream or the word
void wait_and_flush(const device& target, void* stream, const std::uint32_t* word, std::uint32_t value);

/// What an address is, as the driver of the GPU tells it.
struct memory_info {
    enum class made_by {
        system,     ///< ordinary memory of the host, which the driver does not know, or nothing at all
        host_alloc, ///< pinned memory of the host: cudaMallocHost(), cudaHostRegister()
        mem_alloc,  ///< cudaMalloc()
        mem_map,    ///< cuMemMap(): the bytes are those of one mapping
        pool,       ///< cudaMallocAsync()
        managed,    ///< cudaMallocManaged(): its pages migrate
        unknown,    ///< of a GPU, and the driver tells no more
    };

    made_by maker = made_by::system;
    std::string device;          ///< "cuda:0": where the memory lies; pinned memory: for whom it was; "": of the system
    std::uintptr_t begin = 0;    ///< of the allocation, or of the mapping
    std::size_t bytes = 0;       ///< all of it; 0: of the system
    std::uint64_t buffer_id = 0; ///< no other allocation of the process ever has it; 0: the driver tells none
    std::uint64_t block_id = 0;  ///< of a mapping: the physical memory behind it; 0: the driver tells none
    bool synchronous_copies = false; ///< cudaMemcpy() and the NIC's accesses are ordered (SYNC_MEMOPS)
    bool cpu_can_access = true;
    bool dma_buf = false;       ///< whether a NIC's driver can reach it by memory::export_dma_buf()
    std::string why_no_dma_buf; ///< a sentence; empty: it can
    /// Tokens of NVIDIA's old interface for drivers (nvidia_p2p_get_pages), which nothing in Weftio uses.
    struct p2p_tokens {
        std::uint64_t p2p = 0;
        std::uint32_t address_space = 0;
    };
    std::optional<p2p_tokens> tokens;
    std::string why_no_tokens; ///< a sentence; empty: `tokens` are there

    /// @param gpu      any GPU of the process, whose driver is asked; the address may belong to another one
    /// @param address  not followed
    /// Never waits for a GPU; any thread; the caller's CUDA context stays what it is.
    /// @throws weftio::error errc::invalid_argument  `gpu` is no GPU of CUDA
    ///                       errc::device_error      the driver reports a fault
    static memory_info of(const weftio::device& gpu, const void* address);
};
const char* to_string(memory_info::made_by maker) noexcept;

} // namespace weftio
