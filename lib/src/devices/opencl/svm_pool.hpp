// Memory that an OpenCL device and the host use at the same addresses.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "devices/opencl/discovery.hpp"

namespace weftio::devices::opencl {

/// Fine-grained shared virtual memory of one context.
///
/// - Ownership: the destructor frees all memory that was not released.
/// - Threads: any.
class svm_pool {
 public:
    svm_pool(cl::Context context, const device_facts& facts);
    ~svm_pool();
    svm_pool(const svm_pool&) = delete;
    svm_pool& operator=(const svm_pool&) = delete;

    /// Allocates zeroed memory. Aligns it inside a larger piece, because OpenCL guarantees no alignment above that of
    /// its largest type.
    /// @throws weftio::error errc::out_of_memory
    void* allocate(std::size_t bytes, std::size_t alignment);
    /// Frees memory of allocate(). Never blocks. @pre no kernel uses the memory
    void release(void* address) noexcept;
    /// Whether `address` lies in memory of allocate().
    bool contains(const void* address) const;
    /// Addresses of all pieces, for OpenCL.
    std::vector<void*> pieces() const;

 private:
    struct piece {
        void* start;
        std::size_t bytes; ///< counted from the returned address
    };

    const cl::Context context_;
    const std::string device_;
    const std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::map<const std::byte*, piece> pieces_; ///< by the returned address
};

} // namespace weftio::devices::opencl
