#include "storage/names.hpp"

namespace weftio {

const char* storage::explanation_of(file_fall fall) noexcept
{
    switch (fall) {
        case file_fall::none: return "the requested way";
        case file_fall::managed_memory: return "managed memory may migrate, so the host reads it; use cudaMalloc";
        case file_fall::system_memory: return "the GPU reads this ordinary memory through the system";
        case file_fall::no_direct:
            return "GPU memory is staged in host memory; weftio-files --check shows what a direct way lacks";
        case file_fall::above_bar1: return "more bytes than PCIe shows of the GPU's memory (BAR1)";
        case file_fall::better_staged: return "the route across PCIe is slower than a staging buffer";
        case file_fall::no_vendor_library:
            return "NVIDIA's library is unavailable or rejects the file; GPU memory is staged in host memory";
        case file_fall::no_o_direct: return "the file cannot be opened with O_DIRECT; use another file system";
        case file_fall::offset: return "an offset is not aligned for O_DIRECT; align it";
        case file_fall::address: return "memory is not aligned for O_DIRECT; align it";
        case file_fall::size: return "a size is not aligned for O_DIRECT; align it";
        case file_fall::too_small: return "a transfer is at most posix_gds_min_kb of its file system";
        case file_fall::no_uring: return "io_uring is unavailable on this system";
        case file_fall::count_: break;
    }
    return "unknown";
}

const char* to_string(file_way way) noexcept
{
    switch (way) {
        case file_way::none: return "none";
        case file_way::uring: return "uring";
        case file_way::posix: return "posix";
        case file_way::cufile: return "cufile";
        case file_way::direct: return "direct";
        case file_way::count_: break;
    }
    return "unknown";
}

const char* to_string(file_fall fall) noexcept
{
    switch (fall) {
        case file_fall::none: return "none";
        case file_fall::managed_memory: return "managed_memory";
        case file_fall::system_memory: return "system_memory";
        case file_fall::no_direct: return "no_direct";
        case file_fall::above_bar1: return "above_bar1";
        case file_fall::better_staged: return "better_staged";
        case file_fall::no_vendor_library: return "no_vendor_library";
        case file_fall::no_o_direct: return "no_o_direct";
        case file_fall::offset: return "offset";
        case file_fall::address: return "address";
        case file_fall::size: return "size";
        case file_fall::too_small: return "too_small";
        case file_fall::no_uring: return "no_uring";
        case file_fall::count_: break;
    }
    return "unknown";
}

} // namespace weftio
