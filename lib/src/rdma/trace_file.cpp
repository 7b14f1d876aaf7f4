#include "rdma/trace_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/write_file.hpp"
#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

errc code_of(int failed) noexcept
{
    switch (failed) {
        case ENOENT: return errc::not_found;
        case EACCES:
        case EPERM:
        case EROFS: return errc::permission_denied;
        default: return errc::device_error;
    }
}

} // namespace

void write_trace(const char* who, const nic::rdma_queue& queue, const std::string& path)
{
    const std::vector<std::uint8_t> file = queue.trace(to_string(queue.dump()));
    if (file.empty())
        throw error(errc::not_supported, fmt::format("weftio: {} {}: write_trace(): its port records no packets; set "
                                                     "rdma_device_options::trace, or set WEFTIO_RDMA_TRACE to a folder",
                                                     who, queue.number()));
    if (const int failed = core::write_file(path, file); failed != 0)
        throw error(code_of(failed), fmt::format("weftio: {} {}: write_trace(): cannot write {}: {}", who,
                                                 queue.number(), path, std::strerror(failed)));
}

} // namespace weftio::rdma
