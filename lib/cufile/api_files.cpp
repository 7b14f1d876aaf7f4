#include <cerrno>

#include "driver.hpp"

using namespace weftio::cufile;
using weftio::file_result;

namespace {

/// What cuFileRead and cuFileWrite return for it. Sets errno.
ssize_t returned(const file_result& result) noexcept
{
    if (result.bytes > 0 || result.ok())
        return result.bytes;
    errno = result.error;
    // A fall that `strict` forbids.
    if (result.error == ENOTSUP && result.fall != weftio::file_fall::none)
        return -CU_FILE_IO_NOT_SUPPORTED;
    return -1;
}

struct range {
    void* base;
    std::size_t bytes;
    off_t file_offset, memory_offset;
};

/// @param operation  gets the file, the address and the offset
template <class Operation>
file_result execute(CUfileHandle_t fh, const range& what, Operation operation)
{
    const auto session = driver::here().current();
    const held_handle file = session->find_handle(fh);
    std::byte* const address = session->memory_of(what.base, what.memory_offset, what.bytes);
    require(what.file_offset >= 0, CU_FILE_INVALID_VALUE);
    return operation(file->on, address, static_cast<std::uint64_t>(what.file_offset));
}

template <class Operation>
ssize_t transfer(const char* function, CUfileHandle_t fh, const range& what, Operation operation) noexcept
try {
    return returned(execute(fh, what, operation)); // nothing runs behind it that could change errno
} catch (...) {
    return -code_of_exception(function);
}

} // namespace

extern "C" {

CUfileError_t cuFileHandleRegister(CUfileHandle_t* fh, CUfileDescr_t* descr)
{
    return guarded(__func__, [&] {
        require(fh && descr, CU_FILE_INVALID_VALUE);
        require(descr->type == CU_FILE_HANDLE_TYPE_OPAQUE_FD, CU_FILE_IO_NOT_SUPPORTED);
        *fh = driver::here().current()->add_handle(descr->handle.fd);
    });
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
    guarded(__func__, [&] {
        if (const auto session = driver::here().if_open())
            session->end_handle(fh);
    });
}

CUfileError_t cuFileBufRegister(const void* bufPtr_base, size_t length, int)
{
    return guarded(__func__, [&] { driver::here().current()->add_buffer(const_cast<void*>(bufPtr_base), length); });
}

CUfileError_t cuFileBufDeregister(const void* bufPtr_base)
{
    return guarded(__func__, [&] {
        const auto session = driver::here().if_open();
        require(session != nullptr, CU_FILE_MEMORY_NOT_REGISTERED);
        session->end_buffer(bufPtr_base);
    });
}

ssize_t cuFileRead(CUfileHandle_t fh, void* bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset)
{
    return transfer(__func__, fh, {bufPtr_base, size, file_offset, bufPtr_offset},
                    [size](const weftio::file& file, std::byte* address, std::uint64_t offset) {
                        return file.read(address, size, offset);
                    });
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void* bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset)
{
    return transfer(__func__, fh, {const_cast<void*>(bufPtr_base), size, file_offset, bufPtr_offset},
                    [size](const weftio::file& file, std::byte* address, std::uint64_t offset) {
                        return file.write(address, size, offset);
                    });
}

} // extern "C"
