#include "weftio/shared_receives.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/process.hpp"
#include "nic/rdma_backend.hpp"
#include "queues/placed.hpp"
#include "rdma/pair_attributes.hpp"
#include "rdma/rdma_device.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

const shared_receives_options& checked(const shared_receives_options& options)
{
    rdma::require_power("shared_receives", "entries", options.entries, 2, 32768);
    rdma::require_power("shared_receives", "stride", options.stride, 32, 512);
    return options;
}

/// Each entry leads to the next, the last to the first.
void link(const nic::shared_receive_ring& ring) noexcept
{
    for (std::uint32_t index = 0; index != ring.depth; ++index) {
        auto* const words = ring.entries.cpu<std::uint32_t>() + std::size_t{index} * ring.segments * 4;
        *words = weftio_swap32((index + 1) & (ring.depth - 1));
    }
}

nic::shared_receive_ring ring_of(const device& device, const shared_receives_options& options)
{
    constexpr std::size_t word = sizeof(std::uint32_t);
    const std::size_t bytes = std::size_t{options.entries} * options.stride;
    const nic::shared_receive_ring made{
        .entries = queues::placed({"shared_receives", "ring", bytes, WEFTIO_WQE_SEGMENT_BYTES}, options.ring, device),
        .depth = options.entries,
        .segments = options.stride / WEFTIO_WQE_SEGMENT_BYTES,
        .dbrec = queues::placed({"shared_receives", "record", word, word}, options.record, device),
        .domain = options.domain};
    if (!options.ring.of)
        link(made);
    return made;
}

} // namespace

struct shared_receives::state {
    state(nic::backend& nic, nic::shared_receive_ring memory)
        : ring(std::move(memory)), queue(nic.make_shared_receives(ring))
    {}

    const nic::shared_receive_ring ring;
    const std::shared_ptr<nic::shared_receives> queue; ///< keeps the port alive
};

shared_receives::shared_receives(const rdma_device& at, const device& device, shared_receives_options options)
    : state_(core::make_shared_here<state>(detail::internals::backend(at), ring_of(device, checked(options))))
{}

shared_receives::shared_receives(shared_receives&&) noexcept = default;
shared_receives& shared_receives::operator=(shared_receives&&) noexcept = default;
shared_receives::~shared_receives() = default;

std::uint32_t shared_receives::number() const noexcept
{
    return state_->queue->number();
}

void* shared_receives::ring() const noexcept
{
    return state_->ring.entries.device<void>();
}

void* shared_receives::record() const noexcept
{
    return state_->ring.dbrec.device<void>();
}

void shared_receives::set_limit(std::uint32_t limit)
{
    if (limit >= state_->ring.depth)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: shared_receives {}: the limit is {}, but at most {} entries can be posted; set "
                        "less than that, or 0 for none",
                        number(), limit, state_->ring.depth - 1));
    state_->queue->set_limit(limit);
}

shared_receives_standing shared_receives::standing() const
{
    return state_->queue->standing();
}

const std::shared_ptr<nic::shared_receives>& detail::internals::share(const shared_receives& receives) noexcept
{
    return receives.state_->queue;
}

} // namespace weftio
