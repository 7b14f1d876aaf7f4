// NVIDIA's driver, opened at run time, and a GPU of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weftio::litmus {

using device_pointer = unsigned long long;

struct driver {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int*);
    int (*cuDeviceGet)(int*, int);
    int (*cuDeviceGetByPCIBusId)(int*, const char*);
    int (*cuDeviceGetName)(char*, int, int);
    int (*cuDeviceGetAttribute)(int*, int, int);
    int (*cuDeviceCanAccessPeer)(int*, int, int);
    int (*cuDevicePrimaryCtxRetain)(void**, int);
    int (*cuCtxSetCurrent)(void*);
    int (*cuCtxEnablePeerAccess)(void*, unsigned);
    int (*cuMemAlloc_v2)(device_pointer*, std::size_t);
    int (*cuMemFree_v2)(device_pointer);
    int (*cuMemHostAlloc)(void**, std::size_t, unsigned);
    int (*cuMemFreeHost)(void*);
    int (*cuMemsetD8Async)(device_pointer, unsigned char, std::size_t, void*);
    int (*cuMemcpyHtoDAsync_v2)(device_pointer, const void*, std::size_t, void*);
    int (*cuMemcpyDtoHAsync_v2)(void*, device_pointer, std::size_t, void*);
    int (*cuStreamCreate)(void**, unsigned);
    int (*cuStreamDestroy_v2)(void*);
    int (*cuStreamQuery)(void*);
    int (*cuStreamSynchronize)(void*);
    int (*cuModuleLoadData)(void**, const void*);
    int (*cuModuleUnload)(void*);
    int (*cuModuleGetFunction)(void**, void*, const char*);
    int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                          void**);
    int (*cuGetErrorName)(int, const char**);
    int (*cuFlushGPUDirectRDMAWrites)(int, int); ///< nullptr: an older driver
    int (*cuMemGetHandleForAddressRange)(void*, device_pointer, std::size_t, int, unsigned long long); ///< the same

    /// The library, opened by the first call. Throws failure.
    static const driver& library();
};

/// Throws failure with these words and the driver's name of the error, unless `status` is 0.
void need(int status, const char* what);

/// A GPU, by its primary context. It is never given back: the program ends with it.
class gpu {
 public:
    /// @param wanted  "0": the number of the driver; or the address on PCI, "0000:17:00.0". Throws failure.
    explicit gpu(const std::string& wanted);

    const std::string& name() const { return name_; }
    /// CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING: 0 nobody, 100 this GPU, 200 other GPUs and the CPU, too,
    /// sees the writes of a NIC in order.
    int writes_ordering() const { return ordering_; }
    /// CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: 1 the driver's call, 2 operations of streams.
    int flush_options() const { return flush_options_; }
    /// The driver's number of it.
    int number() const { return number_; }
    /// A CU_DEVICE_ATTRIBUTE_...; 0: a driver that is too old to know it promises nothing.
    int attribute(int which) const;
    /// Calls of the driver by this thread are about this GPU from now on.
    void use() const;
    /// Its kernels reach memory of the other one. Throws failure.
    void reach(const gpu& other) const;
    /// The driver's call, of all writes of NICs into its memory. Blocks. Throws failure.
    /// @param for_all  so that the CPU and other GPUs see them, too
    void flush(bool for_all) const;

 private:
    int number_ = 0, ordering_ = 0, flush_options_ = 0;
    void* context_ = nullptr;
    std::string name_;
};

/// Work of one GPU in order, beside that of other streams. The GPU must be in use, by each thread that calls.
class stream {
 public:
    stream();
    ~stream();
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;

    void to_gpu(std::uint64_t* to, const std::uint64_t* from, std::size_t bytes);
    void from_gpu(std::uint64_t* to, const std::uint64_t* from, std::size_t bytes);
    void zero(std::uint64_t* to, std::size_t bytes);
    void launch(void* function, void** arguments);
    bool is_busy() const;
    void wait();

 private:
    void* made_ = nullptr;
};

/// A kernel that waits for the flag of one pair after the other, and reads its data, the last bytes first.
class reading_kernel {
 public:
    /// Words of pinned memory through which the CPU talks with it.
    enum word { stop = 0, answered = 1, asked = 8, trials = 9, stale = 10, rounds = 11, ended = 12, all_words = 16 };

    /// What it is told: addresses as the GPU sees them; flags lie 64 bytes apart.
    struct task {
        std::uint64_t flags, data, control, pairs, words, trials, until;
        std::uint64_t asks; ///< 1: between flag and data, it asks the CPU to flush, and waits for the answer
    };

    /// The driver compiles it. The GPU must be in use.
    reading_kernel();
    ~reading_kernel();
    reading_kernel(const reading_kernel&) = delete;
    reading_kernel& operator=(const reading_kernel&) = delete;

    void start(stream& in, task what);

 private:
    void *module_ = nullptr, *function_ = nullptr;
};

} // namespace weftio::litmus
