// Memory that an OpenCL device and the host use at the same addresses.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/opencl/discovery.hpp"

namespace weftio::detail::opencl {

/// Fine-grained shared virtual memory of one context.
///
/// - Ownership: frees what is left on destruction.
/// - Threads: any.
class svm_pool {
 public:
    svm_pool(cl::Context context, const device_facts& facts);
    ~svm_pool();
    svm_pool(const svm_pool&) = delete;
    svm_pool& operator=(const svm_pool&) = delete;

    /// Zeroed. OpenCL promises no alignment above that of its largest type, so this aligns inside a larger piece.
    /// @throws weftio::error errc::out_of_memory
    void* allocate(std::size_t bytes, std::size_t alignment);
    /// Frees what allocate() returned. Blocks on nothing: no kernel may use it any more.
    void release(void* address) noexcept;
    /// Whether `address` lies in something that allocate() returned.
    bool contains(const void* address) const;
    /// Every piece as OpenCL knows it.
    std::vector<void*> pieces() const;

 private:
    struct piece {
        void* start;
        std::size_t bytes; ///< from the address that was handed out
    };

    const cl::Context context_;
    const std::string device_;
    const std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::map<const std::byte*, piece> pieces_; ///< by the address that was handed out
};

} // namespace weftio::detail::opencl
