#include "weftio/queue_pair.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/process.hpp"
#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"
#include "queues/placed.hpp"
#include "queues/reported_queue.hpp"
#include "rdma/kept_pairs.hpp"
#include "rdma/pair_attributes.hpp"
#include "rdma/trace_file.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_entries = 32768, least_stride = 16, most_stride = 512, most_user_index = 0xffffff;

void check(const queue_pair_options& options)
{
    rdma::require_power("queue_pair", "send_blocks", options.send_blocks, 1, most_entries);
    const bool has_ring = options.receive_entries != 0 && !options.shared;
    if (has_ring)
        rdma::require_power("queue_pair", "receive_entries", options.receive_entries, 1, most_entries);
    if (has_ring)
        rdma::require_power("queue_pair", "receive_stride", options.receive_stride, least_stride, most_stride);
    if (options.management && options.service != rdma_service::datagram)
        throw error(errc::invalid_argument, "weftio: queue_pair: management is set, but the service is not datagram; "
                                            "set rdma_service::datagram");
    if (options.user_index > most_user_index)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair: user_index is {}; set {} at most",
                                                        options.user_index, most_user_index));
}

nic::doorbell_memory doorbell_of(const device& device, const queue_pair_options& options)
{
    constexpr std::size_t word = sizeof(std::uint64_t);
    const std::size_t bytes = options.two_doorbells ? nic::doorbell_memory::to_the_next + word : word;
    return {.words = queues::placed({"queue_pair", "doorbell", bytes, word}, options.doorbell, device),
            .count = options.two_doorbells ? 2u : 1u};
}

nic::rdma_rings rings_of(const device& device, const queue_pair_options& options, const completion_queue& sends,
                         const completion_queue& receives, nic::window_options windows)
{
    constexpr std::size_t segment_bytes = WEFTIO_WQE_SEGMENT_BYTES, word = sizeof(std::uint32_t);
    const std::size_t receive_bytes =
        options.shared ? 0 : std::size_t{options.receive_entries} * options.receive_stride;
    const nic::ring_memory record = queues::placed({"queue_pair", "record", 2 * word, word}, options.record, device);
    nic::rdma_rings made;
    made.windows = windows;
    made.send = {.entries = queues::placed({"queue_pair", "send_ring",
                                            std::size_t{options.send_blocks} * WEFTIO_WQE_BLOCK_BYTES, segment_bytes},
                                           options.send_ring, device),
                 .depth = options.send_blocks,
                 .dbrec = record.behind(word),
                 .completions = {.queue = detail::internals::share(sends),
                                 .only_asked = !options.signal_all,
                                 .user_index = options.user_index},
                 .domain = options.domain};
    made.receive = {.depth = options.shared ? 0 : options.receive_entries,
                    .segments = options.receive_stride / WEFTIO_WQE_SEGMENT_BYTES,
                    .dbrec = record,
                    .target = {.queue = detail::internals::share(receives), .user_index = options.user_index}};
    if (options.shared)
        made.receive.shared = detail::internals::share(*options.shared);
    if (options.doorbell.of)
        made.send.doorbell = doorbell_of(device, options);
    if (receive_bytes != 0)
        made.receive.entries =
            queues::placed({"queue_pair", "receive_ring", receive_bytes, segment_bytes}, options.receive_ring, device);
    return made;
}

} // namespace

struct queue_pair::members final : queues::reported_queue {
    members(std::shared_ptr<const rdma_device::state> port, const device& kernels, const completion_queue& sends,
            const completion_queue& receives, const queue_pair_options& wanted)
        : at(std::move(port)), where(kernels), options(wanted),
          rings(rings_of(kernels, wanted, sends, receives, at->windows)), attributes("queue_pair", *at, wanted.service),
          queue(at->nic->make_rdma_queue(rings, wanted.service))
    {
        try {
            if (wanted.management)
                queue->take_management();
        } catch (...) {
            queue->close(); // the NIC would go on to read the rings
            throw;
        }
    }
    members(const members&) = delete;
    members& operator=(const members&) = delete;
    ~members() override { queue->close(); }

    const char* kind() const noexcept override { return "queue_pair"; }
    nic::send_queue& reports() noexcept override { return *queue; }
    /// The NIC stops using all memory of the queue pair. Reports that it has made before can still be read.
    void leave() noexcept { queue->modify(rdma_state::reset, attributes.first()); }

    const std::shared_ptr<const rdma_device::state> at;
    const device where;
    const queue_pair_options options;
    const nic::rdma_rings rings;
    rdma::pair_attributes attributes;
    const std::shared_ptr<nic::rdma_queue> queue;
};

queue_pair::queue_pair(const rdma_device& at, const device& device, const completion_queue& sends,
                       const completion_queue& receives, queue_pair_options options)
{
    check(options);
    state_ = core::make_shared_here<members>(at.state_, device, sends, receives, options);
}

queue_pair::queue_pair(queue_pair&&) noexcept = default;
queue_pair& queue_pair::operator=(queue_pair&& other) noexcept
{
    queue_pair before(std::move(other));
    state_.swap(before.state_);
    return *this;
}
queue_pair::~queue_pair()
{
    if (!state_ || !state_->may_end())
        return;
    state_->leave(); // an attached progress_engine keeps the rest alive
    rdma::keep_while_bound("queue_pair", *state_->queue, state_);
}

std::uint32_t queue_pair::number() const noexcept
{
    return state_->queue->number();
}

std::uint64_t* queue_pair::doorbell() const noexcept
{
    const nic::doorbell_memory& own = state_->rings.send.doorbell;
    return own.words ? own.words.device<std::uint64_t>() : state_->queue->doorbell();
}

void* queue_pair::send_ring() const noexcept
{
    return state_->rings.send.entries.device<void>();
}

void* queue_pair::receive_ring() const noexcept
{
    return state_->rings.receive.entries.device<void>();
}

void* queue_pair::record() const noexcept
{
    return state_->rings.receive.dbrec.device<void>();
}

void queue_pair::modify(rdma_state to, const queue_pair_attributes& with)
{
    state_->attributes.modify(*state_->queue, to, with);
}

rdma_address queue_pair::address() const
{
    return state_->attributes.address(number(), state_->attributes.first().send_psn);
}

void queue_pair::connect(const rdma_address& peer)
{
    state_->attributes.connect(*state_->queue, peer);
}

void queue_pair::attach(const std::string& group)
{
    state_->attributes.attach(*state_->queue, group);
}

void queue_pair::detach(const std::string& group)
{
    state_->attributes.detach(*state_->queue, group);
}

rdma_state queue_pair::state() const
{
    return state_->queue->state().state;
}

bool queue_pair::draining() const
{
    return state_->queue->state().draining;
}

rdma_dump queue_pair::dump() const
{
    return state_->queue->dump();
}

void queue_pair::write_trace(const std::string& path) const
{
    rdma::write_trace("queue_pair", *state_->queue, path);
}

rdma_counters queue_pair::counters() const
{
    return state_->queue->counters();
}

void queue_pair::close()
{
    if (state_->may_end())
        rdma::require_no_windows("queue_pair", *state_->queue);
    const queue_pair gone(std::move(*this));
}

std::shared_ptr<queues::reported_queue> detail::internals::reports(const queue_pair& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
