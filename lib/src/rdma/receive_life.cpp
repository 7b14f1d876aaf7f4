#include "rdma/receive_life.hpp"

#include <bit>

namespace weftio::rdma {

receive_life::receive_life(const device& device, std::uint32_t depth, std::uint32_t segments,
                           const weftio_cqe* connection, bool needs_flush)
    : ring_life(device, receive_layout(depth, segments).bytes), depth_(depth), segments_(segments),
      connection_(connection), needs_flush_(needs_flush), layout_(depth, segments),
      marks_(device.allocate(sizeof(weftio_cqe) + std::size_t{depth} * sizeof(std::uint32_t), memory_kind::device,
                             queues::small_alignment))
{}

nic::rdma_receive_ring receive_life::begin()
{
    auto* const completions = cpu_at<weftio_cqe>(0);
    for (std::uint32_t slot = 0; slot < depth_; ++slot)
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
    weftio_cqe none_taken{};
    none_taken.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    marks_.upload(&none_taken, sizeof none_taken);
    return {.entries = memory_at(layout_.entries),
            .depth = depth_,
            .segments = segments_,
            .dbrec = memory_at(layout_.dbrec),
            .completions = memory_at(0)};
}

weftio_dev_rdma_recv receive_life::make_handle() const
{
    auto* const taken = static_cast<weftio_cqe*>(marks_.device_address());
    weftio_dev_rdma_recv made{};
    made.queue.ring.segments = device_at<std::uint32_t>(layout_.entries);
    made.queue.ring.dbrec = device_at<std::uint32_t>(layout_.dbrec);
    made.queue.ring.doorbell =
        queue().doorbell(); // that of the queue pair: the NIC reads receive entries when a message arrives
    made.queue.ring.completion = taken;
    made.queue.ring.filled = reinterpret_cast<std::uint32_t*>(taken + 1);
    made.queue.ring.mask = depth_ - 1;
    made.queue.ring.needs_flush = needs_flush_;
    made.queue.ring.queue = fill_in(made.queue, WEFTIO_DEV_ABI_RDMA_RECV);
    made.completions = {.entries = device_at<weftio_cqe>(0),
                        .mask = depth_ - 1,
                        .log_depth = static_cast<std::uint32_t>(std::countr_zero(depth_))};
    made.connection = connection_;
    made.taken = &taken->publication;
    made.segments = segments_;
    return made;
}

} // namespace weftio::rdma
