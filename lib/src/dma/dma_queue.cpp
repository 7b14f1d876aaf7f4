#include <fmt/format.h>

#include "nic/dma_backend.hpp"
#include "queues/host_submit.hpp"
#include "queues/live_queue.hpp"
#include "queues/reported_queue.hpp"
#include "queues/send_life.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"

namespace weftio {

struct dma_queue::state final : queues::reported_queue {
    state(const dma_engine& engine, const device& device, const dma_queue_options& wanted)
        : where(device), options(wanted), queue(make_life(), [&](const nic::send_ring& ring) {
              return detail::internals::backend(engine).make_queue(ring);
          })
    {}

    std::shared_ptr<queues::send_life> make_life() const
    {
        return core::make_shared_here<queues::send_life>(
            where,
            queues::send_ring_options{.entries = options.entries, .domain = options.domain, .abi = WEFTIO_DEV_ABI_DMA});
    }
    const char* kind() const noexcept override { return "dma_queue"; }
    nic::send_queue& reports() noexcept override { return *queue; }

    device where;
    dma_queue_options options;
    queues::live_queue<queues::send_life, nic::dma_send_queue> queue;
};

dma_queue::dma_queue(const dma_engine& engine, const device& device, dma_queue_options options)
{
    queues::require_send_entries("dma_queue", options.entries);
    state_ = core::make_shared_here<state>(engine, device, options);
}

dma_queue::dma_queue(dma_queue&&) noexcept = default;

dma_queue& dma_queue::operator=(dma_queue&& other) noexcept
{
    dma_queue before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

dma_queue::~dma_queue()
{
    if (state_ && state_->may_end())
        state_->queue->stop_sending(); // a progress_engine that has attached the queue keeps the rest alive
}

weftio_dev_dma* dma_queue::handle() const noexcept
{
    static_assert(sizeof(weftio_dev_dma) == sizeof(weftio_dev_send_queue));
    return reinterpret_cast<weftio_dev_dma*>(state_->queue.life()->handle());
}

weftio_dev_control* dma_queue::control() const noexcept
{
    return state_->queue.life()->control();
}

namespace {

void require_in(const char* side, const weftio_dev_buf& buffer, std::uint64_t offset, std::uint64_t bytes)
{
    if (!weftio_dev_dma_fits(buffer, offset, bytes))
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: dma_queue: {} bytes at offset {} of the {}, which has {} bytes; an entry copies 1 to {} bytes",
                bytes, offset, side, buffer.bytes, WEFTIO_DEV_DMA_MOST_BYTES));
}

} // namespace

/// @param enqueue  of a handle and a position: what a function of weftio/device/dma.h returns
template <class Enqueue>
std::optional<std::uint32_t> dma_queue::submit_by(std::uint32_t flags, Enqueue&& enqueue)
{
    queues::require_submit({"dma_queue", number(), state_->where, state_->queue->stopped()}, flags,
                           WEFTIO_DEV_SEND_NOTIFY, "WEFTIO_DEV_SEND_NOTIFY or WEFTIO_DEV_SEND_NONE");
    weftio_u32 position = 0;
    const bool fits = enqueue(handle(), &position) == WEFTIO_DEV_OK;
    queues::commit_from_host(
        handle()->queue); // also when the ring is full: of entries, perhaps, that a kernel has left behind
    return fits ? std::optional(position) : std::nullopt;
}

std::optional<std::uint32_t> dma_queue::submit(const dma_copy& copy, std::uint32_t flags)
{
    require_in("source", copy.source, copy.source_offset, copy.bytes);
    require_in("destination", copy.destination, copy.destination_offset, copy.bytes);
    return submit_by(flags, [&](weftio_dev_dma* dma, weftio_u32* position) {
        return weftio_dev_dma_memcpy_position(dma, copy.source, copy.source_offset, copy.destination,
                                              copy.destination_offset, copy.bytes, flags, position);
    });
}

std::optional<std::uint32_t> dma_queue::submit(const dma_fill& fill, std::uint32_t flags)
{
    require_in("destination", fill.destination, fill.destination_offset, fill.bytes);
    return submit_by(flags, [&](weftio_dev_dma* dma, weftio_u32* position) {
        return weftio_dev_dma_fill_position(dma, fill.pattern, fill.destination, fill.destination_offset, fill.bytes,
                                            flags, position);
    });
}

std::uint32_t dma_queue::entries() const noexcept
{
    return state_->options.entries;
}

std::uint32_t dma_queue::number() const noexcept
{
    return state_->queue->number();
}

dma_counters dma_queue::counters() const
{
    return state_->queue->counters();
}

bool dma_queue::failed() const
{
    return state_->queue->failed();
}

void dma_queue::reset()
{
    state_->queue.reset(state_->make_life());
}

std::shared_ptr<devices::lifeline> detail::internals::line(const dma_queue& queue) noexcept
{
    return queue.state_->queue.life();
}

std::shared_ptr<queues::reported_queue> detail::internals::reports(const dma_queue& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
