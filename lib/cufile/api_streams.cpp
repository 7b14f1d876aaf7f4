#include "driver.hpp"

using namespace weftio::cufile;

namespace {

/// @param operation  gets the file
template <class Operation>
CUfileError_t enqueue(const char* function, CUfileHandle_t fh, void* base, const weftio::file::at_execution& arguments,
                      Operation operation) noexcept
{
    return guarded(function, [&] {
        const auto session = driver::here().current();
        const held_handle file = session->find_handle(fh);
        require(base && arguments.bytes && arguments.offset && arguments.memory_offset && arguments.result,
                CU_FILE_INVALID_VALUE);
        file->stream_ordered.store(true, std::memory_order_relaxed);
        (void)operation;
        throw failure{CU_FILE_ASYNC_NOT_SUPPORTED}; // the engine has no streams yet
    });
}

} // namespace

extern "C" {

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void* bufPtr_base, size_t* size_p, off_t* file_offset_p,
                              off_t* bufPtr_offset_p, ssize_t* bytes_read_p, CUstream)
{
    const weftio::file::at_execution arguments{size_p, file_offset_p, bufPtr_offset_p, bytes_read_p};
    return enqueue(__func__, fh, bufPtr_base, arguments, [](const weftio::file&) {});
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void* bufPtr_base, size_t* size_p, off_t* file_offset_p,
                               off_t* bufPtr_offset_p, ssize_t* bytes_written_p, CUstream)
{
    const weftio::file::at_execution arguments{size_p, file_offset_p, bufPtr_offset_p, bytes_written_p};
    return enqueue(__func__, fh, bufPtr_base, arguments, [](const weftio::file&) {});
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags)
{
    constexpr unsigned known = CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET |
                               CU_FILE_STREAM_FIXED_FILE_SIZE | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS;
    return guarded(__func__, [&] {
        require((flags & ~known) == 0, CU_FILE_INVALID_VALUE);
        driver::here().current()->add_stream(stream);
    });
}

CUfileError_t cuFileStreamDeregister(CUstream stream)
{
    return guarded(__func__, [&] {
        const auto session = driver::here().if_open();
        require(session != nullptr, CU_FILE_INVALID_VALUE);
        session->end_stream(stream);
    });
}

} // extern "C"
