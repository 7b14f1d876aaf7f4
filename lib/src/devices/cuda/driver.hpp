// The CUDA driver, opened at run time: a machine without it is unaffected, and nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace weftio::devices::cuda {

// The used part of the driver's ABI, from NVIDIA's public documentation of the driver API.
using result = int;
using device_number = int;
using device_pointer = unsigned long long;
using context = struct context_opaque*;
using module = struct module_opaque*;
using function = struct function_opaque*;
using stream = struct stream_opaque*;

inline constexpr result success = 0, invalid_value = 1, invalid_context = 201, not_ready = 600,
                        peer_access_enabled_before = 704;
inline constexpr unsigned stream_non_blocking = 1, host_alloc_portable = 1, host_alloc_device_map = 2;

enum device_attribute : int {
    multiprocessors = 16,
    pci_bus = 33,
    pci_device = 34,
    pci_domain = 50,
    compute_major = 75,
    compute_minor = 76,
    can_flush_remote_writes = 98,
    mapping_supported = 102,     ///< cuMemMap()
    descriptors_supported = 103, ///< of its memory, for other processes
    mapped_rdma_supported = 110, ///< allocFlags.gpuDirectRDMACapable
    flush_writes_options = 117,
    remote_writes_ordering = 118,
    dma_buf_supported = 124
};
enum pointer_attribute : int {
    pointer_context = 1,
    memory_type = 2,
    seen_by_device = 3,
    seen_by_host = 4,
    peer_to_peer_tokens = 5,
    sync_memops = 6,
    buffer_id = 7,
    is_managed = 8,
    device_ordinal = 9,
    is_of_mem_alloc = 10, ///< 0: of cuMemMap(), or of a pool
    range_begin = 11,     ///< of cuMemMap(): of the reserved addresses, as range_bytes and buffer_id are
    range_bytes = 12,
    is_mapped = 13,
    memory_pool = 17,
    mapping_bytes = 18,
    mapping_begin = 19,
    memory_block = 20 ///< an ID of the physical memory
};
enum function_attribute : int { max_threads_per_block = 0 };
inline constexpr unsigned memory_type_host = 1, memory_type_unified = 4;
inline constexpr int dma_buf_handle = 1;
inline constexpr int flush_option_host = 1, flush_target_current_context = 0;
inline constexpr unsigned wait_value_at_least = 0, wait_value_flush = 1u << 30, context_sync_memops = 0x80;

/// CUDA_POINTER_ATTRIBUTE_P2P_TOKENS of the driver's ABI.
struct tokens {
    unsigned long long peer_to_peer;
    unsigned address_space;
};

/// CUDA_MEMCPY2D of the driver's ABI.
struct copy_2d {
    std::size_t from_x, from_y;
    unsigned from_type;
    const void* from_host;
    device_pointer from_device;
    void* from_array;
    std::size_t from_pitch;
    std::size_t to_x, to_y;
    unsigned to_type;
    void* to_host;
    device_pointer to_device;
    void* to_array;
    std::size_t to_pitch;
    std::size_t bytes, rows;
};
static_assert(sizeof(copy_2d) == 128);

/// Entry points. If one is missing, the driver is not used.
struct driver {
    result (*cuInit)(unsigned);
    result (*cuDriverGetVersion)(int*);
    result (*cuDeviceGetCount)(int*);
    result (*cuDeviceGet)(device_number*, int);
    result (*cuDeviceGetByPCIBusId)(device_number*, const char*);
    result (*cuDeviceGetName)(char*, int, device_number);
    result (*cuDeviceGetAttribute)(int*, int, device_number);
    result (*cuDeviceCanAccessPeer)(int*, device_number, device_number);
    result (*cuDevicePrimaryCtxRetain)(context*, device_number);
    result (*cuDevicePrimaryCtxRelease_v2)(device_number);
    result (*cuCtxPushCurrent_v2)(context);
    result (*cuCtxPopCurrent_v2)(context*);
    result (*cuCtxEnablePeerAccess)(context, unsigned);
    result (*cuMemAlloc_v2)(device_pointer*, std::size_t);
    result (*cuMemFree_v2)(device_pointer);
    result (*cuMemHostAlloc)(void**, std::size_t, unsigned);
    result (*cuMemFreeHost)(void*);
    result (*cuMemsetD8Async)(device_pointer, unsigned char, std::size_t, stream);
    result (*cuMemsetD32Async)(device_pointer, unsigned, std::size_t, stream);
    result (*cuMemcpyAsync)(device_pointer, device_pointer, std::size_t, stream);
    result (*cuMemcpyDtoHAsync_v2)(void*, device_pointer, std::size_t, stream);
    result (*cuMemcpyHtoDAsync_v2)(device_pointer, const void*, std::size_t, stream);
    result (*cuMemcpy2DAsync_v2)(const copy_2d*, stream);
    result (*cuStreamWriteValue32_v2)(stream, device_pointer, std::uint32_t, unsigned);
    result (*cuStreamWaitValue32_v2)(stream, device_pointer, std::uint32_t, unsigned);
    result (*cuFlushGPUDirectRDMAWrites)(int target, int scope);
    result (*cuMemGetHandleForAddressRange)(void*, device_pointer, std::size_t, int, unsigned long long);
    result (*cuPointerGetAttribute)(void*, int, device_pointer);
    result (*cuPointerSetAttribute)(const void*, int, device_pointer);
    result (*cuModuleLoadData)(module*, const void*);
    result (*cuModuleGetFunction)(function*, module, const char*);
    result (*cuModuleUnload)(module);
    result (*cuFuncGetAttribute)(int*, int, function);
    result (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, function, int, std::size_t);
    result (*cuLaunchKernel)(function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream,
                             void**, void**);
    result (*cuStreamCreate)(stream*, unsigned);
    result (*cuStreamDestroy_v2)(stream);
    result (*cuLaunchHostFunc)(stream, void (*)(void*), void*);
    result (*cuStreamQuery)(stream);
    result (*cuStreamSynchronize)(stream);
    result (*cuGetErrorName)(result, const char**);
    result (*cuGetErrorString)(result, const char**);
    result (*cuCtxGetFlags)(unsigned*);
    result (*cuCtxSetFlags)(unsigned);                                    ///< nullptr: older than CUDA 12.1
    result (*cuDevicePrimaryCtxGetState)(device_number, unsigned*, int*); ///< nullptr: not there

    /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
    std::string words(result failure) const;
    /// Throws weftio::error errc::device_error if `status` is not success. `what` describes the call for the text.
    void check(result status, const char* what) const;
};

/// The driver, opened and initialized on the first call. Throws weftio::error errc::not_found, with what to install, if
/// there is none, errc::device_error if it does not start.
const driver& the_driver();

/// A context that is current in this thread as long as the object lives; then the one before it is again: callers have
/// contexts of their own.
class current_context {
 public:
    /// Throws weftio::error.
    current_context(const driver& cuda, context which) : current_context(cuda, which, std::nothrow)
    {
        cuda.check(status_, "taking the context");
    }
    current_context(const driver& cuda, context which, std::nothrow_t) noexcept
        : cuda_(cuda), status_(cuda.cuCtxPushCurrent_v2(which))
    {}
    current_context(const current_context&) = delete;
    current_context& operator=(const current_context&) = delete;
    ~current_context()
    {
        context popped = nullptr;
        if (status_ == success)
            cuda_.cuCtxPopCurrent_v2(&popped);
    }

    result status() const noexcept { return status_; }

 private:
    const driver& cuda_;
    const result status_;
};

} // namespace weftio::devices::cuda
