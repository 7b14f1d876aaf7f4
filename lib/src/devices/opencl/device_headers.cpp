// The texts of the device library's headers. A compiler cache keeps no file that embeds others, so this one is small.
#include "core/embed.hpp"
#include "devices/opencl/source.hpp"
#include "weftio/device/completion_queue.h"
#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h" // so that an edit of a header rebuilds this file
#include "weftio/device/file.h"
#include "weftio/device/rdma_connections.h"
#include "weftio/device/rdma_datagram.h"
#include "weftio/device/semaphore.h"

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
    HEADER(queue_reserve, "weftio/device/queue/reserve.h")                                                             \
    HEADER(buf, "weftio/device/buf.h")                                                                                 \
    HEADER(eth_rxq, "weftio/device/eth_rxq.h")                                                                         \
    HEADER(eth_txq, "weftio/device/eth_txq.h")                                                                         \
    HEADER(dma, "weftio/device/dma.h")                                                                                 \
    HEADER(file, "weftio/device/file.h")                                                                               \
    HEADER(rdma_request, "weftio/device/rdma/request.h")                                                               \
    HEADER(rdma_receive, "weftio/device/rdma/receive.h")                                                               \
    HEADER(rdma, "weftio/device/rdma.h")                                                                               \
    HEADER(rdma_connections, "weftio/device/rdma_connections.h")                                                       \
    HEADER(rdma_datagram, "weftio/device/rdma_datagram.h")                                                             \
    HEADER(completion_queue, "weftio/device/completion_queue.h")                                                       \
    HEADER(semaphore_layout, "weftio/device/semaphore/layout.h")                                                       \
    HEADER(semaphore_any, "weftio/device/semaphore/any.h")                                                             \
    HEADER(semaphore, "weftio/device/semaphore.h")

namespace weftio::devices::opencl {

#define WEFTIO_EMBED_HEADER(NAME, FILE) WEFTIO_EMBED(device_header_##NAME, FILE);
#define WEFTIO_LIST_HEADER(NAME, FILE) embedded_header{FILE, device_header_##NAME()},

namespace {

WEFTIO_DEVICE_HEADERS(WEFTIO_EMBED_HEADER)

} // namespace

const std::vector<embedded_header>& device_headers()
{
    static const std::vector<embedded_header> headers{WEFTIO_DEVICE_HEADERS(WEFTIO_LIST_HEADER)};
    return headers;
}

} // namespace weftio::devices::opencl
