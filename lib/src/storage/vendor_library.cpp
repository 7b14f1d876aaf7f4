#include "storage/vendor_library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/log.hpp"

namespace weftio::storage {

int errno_of_cufile(int error) noexcept
{
    switch (error - cufile_abi::first_error) {
        case 6: return ESHUTDOWN; // the driver is closing
        case 7:                   // platform
        case 8:                   // IO
        case 9:                   // device
        case 13:                  // type of memory
        case 38: return ENOTSUP;  // asynchronous
        case 12:                  // pointer
        case 14:                  // range of a pointer
        case 15:                  // context
        case 16:                  // size of a mapping
        case 17: return EFAULT;   // range of a mapping
        case 18:                  // type of file
        case 19:                  // flags of open()
        case 20:                  // no O_DIRECT
        case 22: return EINVAL;   // value
        case 25: return EACCES;   // permission
        case 27: return EBADF;    // unknown handle
        case 36:                  // pinning
        case 43: return ENOMEM;   // memory
        default: return EIO;
    }
}

void vendor_library::tell_once(const char* function, int error) const noexcept
{
    const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(error - cufile_abi::first_error) % 64);
    if ((logged_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
        core::log_or_lose(log_level::warning, [&] {
            return fmt::format("weftio: files: {}: {} failed with {}; later failures with this code are not logged",
                               path_, function, error);
        });
}

void* vendor_library::enter_file(int descriptor) const noexcept
{
    cufile_abi::description about{};
    about.type = cufile_abi::opaque_descriptor;
    about.of.descriptor = descriptor;
    void* handle = nullptr;
    const cufile_abi::status entered = call_.handle_register(&handle, &about);
    if (entered.error == 0)
        return handle;
    tell_once("cuFileHandleRegister", entered.error);
    return nullptr;
}

void vendor_library::leave_file(void* handle) const noexcept
{
    if (process_ == ::getpid())
        call_.handle_deregister(handle);
}

bool vendor_library::enter_memory(const void* address, std::size_t bytes) const noexcept
{
    const cufile_abi::status entered = call_.buffer_register(address, bytes, 0);
    if (entered.error != 0)
        tell_once("cuFileBufRegister", entered.error);
    return entered.error == 0;
}

void vendor_library::leave_memory(const void* address) const noexcept
{
    if (process_ == ::getpid())
        call_.buffer_deregister(address);
}

std::int64_t vendor_library::transfer(bool write, void* handle, std::byte* base, std::size_t base_offset,
                                      std::size_t bytes, std::uint64_t offset) const noexcept
{
    const auto at = static_cast<off_t>(offset), within = static_cast<off_t>(base_offset);
    ssize_t result = -1;
    do {
        errno = 0;
        result = write ? call_.write(handle, base, bytes, at, within) : call_.read(handle, base, bytes, at, within);
    } while ((result == -1 && errno == EINTR) || result == -EINTR);
    if (result >= 0 && static_cast<std::size_t>(result) > bytes)
        return -EIO; // nobody knows what it has moved
    if (result >= 0)
        return result;
    if (result == -1) // errno has the reason
        return errno != 0 ? -errno : -EIO;
    if (result > -cufile_abi::first_error)
        return result;
    tell_once(write ? "cuFileWrite" : "cuFileRead", static_cast<int>(-result));
    return -errno_of_cufile(static_cast<int>(-result));
}

} // namespace weftio::storage
