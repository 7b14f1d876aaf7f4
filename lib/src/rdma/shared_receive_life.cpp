#include "rdma/shared_receive_life.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "queues/needs_flush.hpp"

namespace weftio::rdma {

namespace {

constexpr std::size_t line = 64;

/// Offsets in the memory that kernels alone use: the completion that names the last message, a doorbell that nobody
/// hears, one bit for each entry, then the entry of each position.
struct mark_layout {
    std::size_t doorbell, filled, entries, bytes;

    explicit mark_layout(std::size_t depth)
        : doorbell(sizeof(weftio_cqe)), filled(doorbell + line),
          entries(filled + (std::size_t{depth} * sizeof(std::uint32_t) + line - 1) / line * line),
          bytes(entries + depth * sizeof(std::uint32_t))
    {}
};

} // namespace

std::string shared_ring_queue::describe(std::uint32_t /*ring*/) const
{
    const shared_receives_standing now = entries->standing();
    return fmt::format("rdma_connections: shared receive queue {}, {} receives posted{}", number(), now.waiting,
                       now.broken ? ", broken" : "");
}

void shared_ring_queue::stop(std::uint32_t /*ring*/)
{
    for (const auto& pair : pairs)
        pair->stop(pair->ring_number());
}

/// Completions, entries, the doorbell record, and the record of the completion queue, which nobody writes: a position
/// is posted again after its message was read, so that no completion is overwritten.
shared_receive_life::shared_receive_life(nic::backend& nic, const device& device, std::uint32_t depth,
                                         std::uint32_t segments, protection_domain domain)
    : ring_life(device, depth * sizeof(weftio_cqe) +
                            std::size_t{depth} * std::bit_ceil(segments + 1) * WEFTIO_WQE_SEGMENT_BYTES + 2 * line),
      depth_(depth), stride_(std::bit_ceil(segments + 1)), entries_(depth * sizeof(weftio_cqe)),
      posted_(entries_ + std::size_t{depth} * stride_ * WEFTIO_WQE_SEGMENT_BYTES), record_(posted_ + line),
      needs_flush_(queues::needs_flush(nic, device)),
      marks_(device.allocate(mark_layout(depth).bytes, memory_kind::device, queues::small_alignment))
{
    link_entries();
    number_entries();
    at_nic_ = std::make_shared<shared_ring_queue>(
        shared_ring_queue{.entries = nic.make_shared_receives({.entries = memory_at(entries_),
                                                               .depth = depth,
                                                               .segments = stride_,
                                                               .dbrec = memory_at(posted_),
                                                               .domain = domain}),
                          .completions = nic.make_completion_queue({.entries = memory_at(0),
                                                                    .depth = depth,
                                                                    .record = memory_at(record_),
                                                                    .overrun = completion_overrun::ignore})});
    belong_to(at_nic_, 0);
}

/// Each entry leads to the next; no completion has been written.
void shared_receive_life::link_entries()
{
    for (std::uint32_t entry = 0; entry != depth_; ++entry) {
        *cpu_at<std::uint32_t>(entries_ + std::size_t{entry} * stride_ * WEFTIO_WQE_SEGMENT_BYTES) =
            weftio_swap32((entry + 1) & (depth_ - 1));
        cpu_at<weftio_cqe>(0)[entry].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
    }
}

/// Position k has entry k. The last position is not free before a message has been handed out.
void shared_receive_life::number_entries()
{
    const mark_layout layout(depth_);
    std::vector<std::byte> first(layout.bytes);
    weftio_cqe last_taken{};
    last_taken.publication = weftio_cqe_publication(0xfffe, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    std::memcpy(first.data(), &last_taken, sizeof last_taken);
    std::vector<std::uint32_t> numbers(depth_);
    std::iota(numbers.begin(), numbers.end(), 0);
    const std::size_t bytes = numbers.size() * sizeof(std::uint32_t);
    std::memcpy(first.data() + layout.entries, numbers.data(), bytes);
    marks_.upload(first.data(), first.size());
}

nic::rdma_receive_ring shared_receive_life::of_connection(std::uint32_t index) const
{
    return {.segments = stride_,
            .target = {.queue = at_nic_->completions, .user_index = index},
            .shared = at_nic_->entries};
}

weftio_dev_rdma_recv shared_receive_life::make_handle() const
{
    const mark_layout layout(depth_);
    void* const marks = marks_.device_address();
    auto* const taken = static_cast<weftio_cqe*>(marks);
    weftio_dev_rdma_recv made{};
    made.queue.ring.segments = device_at<std::uint32_t>(entries_);
    made.queue.ring.dbrec = device_at<std::uint32_t>(posted_);
    made.queue.ring.doorbell = queues::at<std::uint64_t>(marks, layout.doorbell);
    made.queue.ring.completion = taken;
    made.queue.ring.filled = queues::at<std::uint32_t>(marks, layout.filled);
    made.queue.ring.completed = ~0u; // as `taken` says
    made.queue.ring.mask = depth_ - 1;
    made.queue.ring.needs_flush = needs_flush_;
    made.queue.ring.queue = fill_in(made.queue, WEFTIO_DEV_ABI_RDMA_RECV);
    made.completions = {.entries = device_at<weftio_cqe>(0),
                        .mask = depth_ - 1,
                        .log_depth = static_cast<std::uint32_t>(std::countr_zero(depth_))};
    made.connection = taken; // which never is an error: a connection that fails leaves the ring to the others
    made.taken = &taken->publication;
    made.segments = stride_ - 1;
    made.entries = queues::at<std::uint32_t>(marks, layout.entries);
    return made;
}

} // namespace weftio::rdma
