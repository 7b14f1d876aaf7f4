#include "device/opencl/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/embed.hpp"
#include "weftio/device/eth_txq.h" // so that an edit of a header rebuilds this file
#include "weftio/device/semaphore.h"
#include "weftio/device/wqe.h"

/// The headers of the device library in dependency order. A new header of device/include/weftio/device that kernels may
/// include needs a line here.
#define WEFTIO_DEVICE_HEADERS(HEADER)                                                                                  \
    HEADER(platform_opencl, "weftio/device/platform/opencl.h")                                                         \
    HEADER(platform, "weftio/device/platform.h")                                                                       \
    HEADER(handle, "weftio/device/handle.h")                                                                           \
    HEADER(clock, "weftio/device/clock.h")                                                                             \
    HEADER(cqe, "weftio/device/cqe.h")                                                                                 \
    HEADER(wqe, "weftio/device/wqe.h")                                                                                 \
    HEADER(queue_control, "weftio/device/queue/control.h")                                                             \
    HEADER(queue_scope, "weftio/device/queue/scope.h")                                                                 \
    HEADER(queue_completion, "weftio/device/queue/completion.h")                                                       \
    HEADER(queue_send_ring, "weftio/device/queue/send_ring.h")                                                         \
    HEADER(queue_send, "weftio/device/queue/send.h")                                                                   \
    HEADER(buf, "weftio/device/buf.h")                                                                                 \
    HEADER(eth_rxq, "weftio/device/eth_rxq.h")                                                                         \
    HEADER(eth_txq, "weftio/device/eth_txq.h")                                                                         \
    HEADER(dma, "weftio/device/dma.h")                                                                                 \
    HEADER(rdma_request, "weftio/device/rdma/request.h")                                                               \
    HEADER(rdma_receive, "weftio/device/rdma/receive.h")                                                               \
    HEADER(rdma, "weftio/device/rdma.h")                                                                               \
    HEADER(semaphore, "weftio/device/semaphore.h")

namespace weftio::detail::opencl {

namespace {

#define WEFTIO_EMBED_HEADER(NAME, FILE) WEFTIO_EMBED(device_header_##NAME, FILE);
#define WEFTIO_LIST_HEADER(NAME, FILE) embedded_header{FILE, device_header_##NAME()},

WEFTIO_DEVICE_HEADERS(WEFTIO_EMBED_HEADER)

/// Whether a line is dropped from the text: an include of the library, whose text is already there, or a #pragma once.
bool is_dropped(std::string_view line)
{
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.starts_with("#pragma once") || line.starts_with("#include \"weftio/") ||
           line.starts_with("#include <weftio/");
}

void append_file(std::string& unit, std::string_view text, std::string_view file)
{
    unit += fmt::format("#line 1 \"{}\"\n", file);
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (!is_dropped(line))
            unit += line;
        unit += '\n'; // a dropped line stays as an empty one, to keep line numbers
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

} // namespace

const std::vector<embedded_header>& device_headers()
{
    static const std::vector<embedded_header> headers{WEFTIO_DEVICE_HEADERS(WEFTIO_LIST_HEADER)};
    return headers;
}

std::string translation_unit(std::string_view kernel, std::string_view file, std::string_view before)
{
    std::string unit;
    if (kernel.find("#define WEFTIO_DEV_CHECKS") != std::string_view::npos) // which its header says before its includes
        unit += "#define WEFTIO_DEV_CHECKS\n";
    for (const embedded_header& header : device_headers())
        append_file(unit, header.text, header.file);
    unit += before;
    append_file(unit, kernel, file);
    return unit;
}

} // namespace weftio::detail::opencl
