// NVIDIA's libcufile, opened by its full path: what the way `cufile` calls.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/configuration.hpp"

namespace weftio::storage {

/// The used part of cuFile's ABI, as public callers show it. tests/unit/cufile compares it with our cufile.h.
namespace cufile_abi {

struct status {
    int error; ///< CUfileOpError
    int cuda_error;
};
struct description {
    int type; ///< opaque_descriptor
    union {
        int descriptor;
        void* handle;
    } of;
    const void* operations;
};
inline constexpr int opaque_descriptor = 1, first_error = 5000, already_open = 5026;

} // namespace cufile_abi

/// The symbol that Weftio's own libcufile.so.0 exports, and NVIDIA's does not.
inline constexpr const char* own_library_mark = "weftio_cufile_version";

/// The library that a program or its user has asked for: the environment variable WEFTIO_CUFILE_LIBRARY names it, else
/// the key weftio.cufile_library. Empty: none.
std::string vendor_library_asked_for(const configuration& by);

/// errno for a CUfileOpError; EIO for one that is unknown.
int errno_of_cufile(int error) noexcept;

/// The library with its driver open. One for each path; it stays open until the process ends. Any thread.
class vendor_library {
 public:
    /// @throws weftio::error errc::not_supported no full path, no such library, a function is missing, its driver does
    ///         not open, it is Weftio's own libcufile.so.0, or it was opened before fork(): the text says which
    static const vendor_library& open(const std::string& path);

    vendor_library(const vendor_library&) = delete;
    vendor_library& operator=(const vendor_library&) = delete;

    const std::string& path() const noexcept { return path_; }

    /// Registers a descriptor. @return its handle; nullptr: the library refuses it, which is logged once for each code
    void* enter_file(int descriptor) const noexcept;
    void leave_file(void* handle) const noexcept;
    /// Registers memory. @return false: refused, logged as above; transfers do without
    bool enter_memory(const void* address, std::size_t bytes) const noexcept;
    void leave_memory(const void* address) const noexcept;
    /// Blocks. @param base  of the registered memory in which the bytes lie; the first byte if there is none
    /// @return bytes, or -errno
    std::int64_t transfer(bool write, void* handle, std::byte* base, std::size_t base_offset, std::size_t bytes,
                          std::uint64_t offset) const noexcept;

 private:
    struct functions {
        cufile_abi::status (*driver_open)();
        cufile_abi::status (*handle_register)(void**, cufile_abi::description*);
        void (*handle_deregister)(void*);
        cufile_abi::status (*buffer_register)(const void*, std::size_t, int);
        cufile_abi::status (*buffer_deregister)(const void*);
        ssize_t (*read)(void*, void*, std::size_t, off_t, off_t);
        ssize_t (*write)(void*, const void*, std::size_t, off_t, off_t);
    };

    explicit vendor_library(const std::string& path);
    void find_functions(void* library);
    void tell_once(const char* function, int error) const noexcept;

    const std::string path_;
    const pid_t process_; ///< that has opened it
    functions call_{};
    mutable std::atomic<std::uint64_t> logged_{0}; ///< errors that were logged: a bit for each from first_error on
};

/// A descriptor that is registered with the library. Ends in the process that made it.
class vendor_file {
 public:
    vendor_file(const vendor_library& library, void* handle) noexcept : library_(library), handle_(handle) {}
    vendor_file(const vendor_file&) = delete;
    vendor_file& operator=(const vendor_file&) = delete;
    ~vendor_file() { library_.leave_file(handle_); }

    const vendor_library& library() const noexcept { return library_; }
    void* handle() const noexcept { return handle_; }

 private:
    const vendor_library& library_;
    void* const handle_;
};

} // namespace weftio::storage
