#include "queues/host_submit.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::queues {

void require_submit(const host_queue& queue, std::uint32_t flags, std::uint32_t known, std::string_view names)
{
    const auto refuse = [&](errc code, const std::string& why) {
        throw error(code, fmt::format("weftio: {} {}: {}", queue.kind, queue.number, why));
    };
    if ((flags & ~known) != 0)
        refuse(errc::invalid_argument,
               fmt::format("submit() does not accept flags {:#x}; pass {}", flags & ~known, names));
    if (queue.where.name() != "cpu")
        refuse(errc::invalid_argument, fmt::format("submit() is for queues of device cpu, but kernels on {} own this "
                                                   "one; create another queue for the host",
                                                   queue.where.name()));
    if (queue.stopped)
        refuse(errc::device_error, "an entry failed (progress_engine reports which and why) or running_kernel::watch "
                                   "stopped the queue, so submitted entries would be flushed; call reset() first");
}

void commit_from_host(weftio_dev_send_queue& queue)
{
    weftio_dev_send_queue_publish(&queue, 0, 0, 1);
    weftio_dev_nic_turn(queue.turn, queue.turn_context);
}

} // namespace weftio::queues
