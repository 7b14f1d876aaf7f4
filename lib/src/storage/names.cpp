#include "weftio/file_result.hpp"

namespace weftio {

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
