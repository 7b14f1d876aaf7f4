#include "rdma/receive_life.hpp"

#include <bit>

#include "queues/small_memory.hpp"

namespace weftio::rdma {

namespace {

template <class T>
T* in_receive_ring(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace

receive_life::receive_life(const device& device, std::uint32_t depth, std::uint32_t segments)
    : where_(device), depth_(depth), segments_(segments), layout_(depth, segments),
      ring_(device.allocate(layout_.bytes, memory_kind::cpu_device)),
      marks_(device.allocate(sizeof(weftio_cqe) + depth / 8, memory_kind::device, queues::small_alignment)),
      control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device, queues::small_alignment)),
      handle_(device.allocate(sizeof(weftio_dev_rdma_recv), memory_kind::device, queues::small_alignment))
{}

nic::rdma_receive_ring receive_life::begin()
{
    void* const base = ring_.cpu_address();
    auto* const completions = in_receive_ring<weftio_cqe>(base, 0);
    for (std::uint32_t slot = 0; slot < depth_; ++slot)
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
    weftio_cqe none_taken{};
    none_taken.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    marks_.upload(&none_taken, sizeof none_taken);
    return {.words = in_receive_ring<std::uint32_t>(base, layout_.entries),
            .dbrec = in_receive_ring<std::uint32_t>(base, layout_.dbrec),
            .completions = completions,
            .depth = depth_,
            .segments = segments_};
}

void receive_life::belong_to(std::shared_ptr<nic::rdma_queue> queue, std::uint32_t ring_number,
                             const weftio_cqe* connection)
{
    queue_ = std::move(queue);
    ring_number_ = ring_number;
    fill_handle(connection);
}

std::string receive_life::describe() const
{
    return "receives of " + queue_->describe(ring_number_);
}

void receive_life::quiesce()
{
    queue_->stop(ring_number_);
}

void receive_life::fill_handle(const weftio_cqe* connection)
{
    void* const base = ring_.device_address();
    auto* const taken = in_receive_ring<weftio_cqe>(marks_.device_address(), 0);
    weftio_dev_rdma_recv made{};
    made.queue.abi = WEFTIO_DEV_ABI_RDMA_RECV;
    made.queue.ring.segments = in_receive_ring<std::uint32_t>(base, layout_.entries);
    made.queue.ring.dbrec = in_receive_ring<std::uint32_t>(base, layout_.dbrec);
    made.queue.ring.doorbell = in_receive_ring<std::uint64_t>(base, layout_.doorbell);
    made.queue.ring.completion = taken;
    made.queue.ring.filled = in_receive_ring<std::uint32_t>(marks_.device_address(), sizeof(weftio_cqe));
    made.queue.ring.mask = depth_ - 1;
    made.queue.ring.queue = queue_->number();
    made.queue.control = static_cast<weftio_dev_control*>(control_.device_address());
    made.queue.clock = where_.clock();
    const nic::inline_turn turn = queue_->turn();
    made.queue.turn = reinterpret_cast<std::uint64_t>(turn.turn);
    made.queue.turn_context = reinterpret_cast<std::uint64_t>(turn.context);
    made.completions = {.entries = in_receive_ring<weftio_cqe>(base, 0),
                        .mask = depth_ - 1,
                        .log_depth = static_cast<std::uint32_t>(std::countr_zero(depth_))};
    made.connection = connection;
    made.taken = &taken->publication;
    made.segments = segments_;
    handle_.upload(&made, sizeof made);
}

} // namespace weftio::rdma
