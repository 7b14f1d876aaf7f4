// Stands in for NVIDIA's libcufile.so.0: cuFile's functions on memory that the CPU sees, by pread and pwrite.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cufile.h"
#include "vendor_control.hpp"
#undef cuFileDriverClose

namespace {

weftio::test::vendor_control& control()
{
    static weftio::test::vendor_control only;
    return only;
}

CUfileError_t status(int error)
{
    return {static_cast<CUfileOpError>(error), static_cast<CUresult>(0)};
}

/// The caller's descriptor without O_DIRECT, so that it takes any alignment.
struct registered {
    int descriptor;
};

/// Whether this call is the one that fails.
bool fails()
{
    long left = control().fail_after.load();
    while (left >= 0 && !control().fail_after.compare_exchange_weak(left, left - 1)) {
    }
    return left == 0;
}

ssize_t transfer(bool write, CUfileHandle_t handle, void* base, size_t size, off_t offset, off_t memory_offset)
{
    (write ? control().writes : control().reads)++;
    control().add(std::string(write ? "write " : "read ") + std::to_string(size) + " at " + std::to_string(offset) +
                  " memory+" + std::to_string(memory_offset));
    if (fails()) {
        errno = control().failure_errno;
        return control().failure;
    }
    const int descriptor = static_cast<registered*>(handle)->descriptor;
    char* const memory = static_cast<char*>(base) + memory_offset;
    size = std::min<size_t>(size, control().most);
    return write ? pwrite(descriptor, memory, size, offset) : pread(descriptor, memory, size, offset);
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

weftio::test::vendor_control* vendor_stand_in()
{
    return &control();
}

CUfileError_t cuFileGetVersion(int* version)
{
    *version = 9990;
    return status(0);
}

CUfileError_t cuFileDriverOpen(void)
{
    int version = 0;
    cuFileGetVersion(&version);
    control().version = version;
    control().drivers++;
    const char* refused = std::getenv("VENDOR_STAND_IN_DRIVER");
    return status(refused ? std::atoi(refused) : 0);
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t* handle, CUfileDescr_t* about)
{
    if (control().refuse_files != 0)
        return status(control().refuse_files);
    const std::string path = "/proc/self/fd/" + std::to_string(about->handle.fd);
    const int flags = fcntl(about->handle.fd, F_GETFL);
    *handle = new registered{open(path.c_str(), (flags & O_ACCMODE) | O_CLOEXEC)};
    control().files++;
    control().files_ever++;
    return status(about->type == CU_FILE_HANDLE_TYPE_OPAQUE_FD ? 0 : CU_FILE_INVALID_VALUE);
}

void cuFileHandleDeregister(CUfileHandle_t handle)
{
    close(static_cast<registered*>(handle)->descriptor);
    delete static_cast<registered*>(handle);
    control().files--;
}

CUfileError_t cuFileBufRegister(const void*, size_t length, int)
{
    control().add("register " + std::to_string(length));
    if (control().refuse_memory != 0)
        return status(control().refuse_memory);
    control().memories++;
    return status(0);
}

CUfileError_t cuFileBufDeregister(const void*)
{
    control().memories--;
    return status(0);
}

ssize_t cuFileRead(CUfileHandle_t handle, void* base, size_t size, off_t offset, off_t memory_offset)
{
    return transfer(false, handle, base, size, offset, memory_offset);
}

ssize_t cuFileWrite(CUfileHandle_t handle, const void* base, size_t size, off_t offset, off_t memory_offset)
{
    return transfer(true, handle, const_cast<void*>(base), size, offset, memory_offset);
}

} // extern "C"
#pragma GCC visibility pop
