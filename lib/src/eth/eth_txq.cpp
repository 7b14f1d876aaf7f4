#include "weftio/eth_txq.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "core/clock.hpp"
#include "nic/backend.hpp"
#include "queues/live_queue.hpp"
#include "queues/reported_queue.hpp"
#include "queues/send_life.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

void check(const eth_txq_options& options)
{
    queues::require_send_entries("eth_txq", options.entries);
    if (options.clock != core::utc_clock::name)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_txq: clock \"{}\" is not the port's clock; this "
                                                        "port schedules by \"{}\", use timestamps from utc_now_ns()",
                                                        options.clock, core::utc_clock::name));
    constexpr std::uint32_t known = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM;
    if ((options.checksums & ~known) != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_txq: checksums is {:#x}, which has unknown bits; combine "
                                "WEFTIO_DEV_SEND_L3_CHECKSUM and WEFTIO_DEV_SEND_L4_CHECKSUM",
                                options.checksums));
}

} // namespace

struct eth_txq::state final : queues::reported_queue {
    state(const port& port, const device& device, const eth_txq_options& wanted)
        : nic(detail::internals::share(port)), where(device), options(wanted),
          queue(make_life(), [&](const nic::send_ring& ring) { return nic->make_send_queue(ring, options.engine); })
    {}

    std::shared_ptr<queues::send_life> make_life() const
    {
        return core::make_shared_here<queues::send_life>(
            where, queues::send_ring_options{.entries = options.entries,
                                             .horizon_ns = options.horizon_ns,
                                             .domain = options.domain,
                                             .abi = WEFTIO_DEV_ABI_ETH_TXQ,
                                             .checksums = weftio_dev_checksum_flags(options.checksums)});
    }

    const char* kind() const noexcept override { return "eth_txq"; }
    nic::send_queue& reports() noexcept override { return *queue; }

    std::shared_ptr<nic::backend> nic;
    device where;
    eth_txq_options options;
    queues::live_queue<queues::send_life, nic::eth_send_queue> queue;
};

eth_txq::eth_txq(const port& port, const device& device, eth_txq_options options)
{
    check(options);
    nic::require_engine_or_any(detail::internals::backend(port), "eth_txq", options.engine);
    state_ = core::make_shared_here<state>(port, device, options);
}

eth_txq::eth_txq(eth_txq&&) noexcept = default;

eth_txq& eth_txq::operator=(eth_txq&& other) noexcept
{
    eth_txq before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

eth_txq::~eth_txq()
{
    if (state_ && state_->nic->may_end())
        state_->queue->stop_sending(); // an attached progress_engine keeps the rest alive
}

weftio_dev_eth_txq* eth_txq::handle() const noexcept
{
    static_assert(offsetof(weftio_dev_eth_txq, queue) == 0 &&
                  sizeof(weftio_dev_eth_txq) == sizeof(weftio_dev_send_queue));
    static_assert(offsetof(weftio_dev_send_queue, ring.ready) + sizeof(weftio_u32) == 32 &&
                      offsetof(weftio_dev_send_queue, ring.reserved) == 64,
                  "a weak enqueue reads one sector; what many lanes write begins a line");
    return reinterpret_cast<weftio_dev_eth_txq*>(state_->queue.life()->handle());
}

weftio_dev_control* eth_txq::control() const noexcept
{
    return state_->queue.life()->control();
}

std::uint32_t eth_txq::entries() const noexcept
{
    return state_->options.entries;
}

std::uint32_t eth_txq::number() const noexcept
{
    return state_->queue->number();
}

unsigned eth_txq::engine() const noexcept
{
    return state_->queue->engine();
}

void eth_txq::move_to(unsigned engine)
{
    nic::require_engine(*state_->nic, "eth_txq", engine);
    state_->queue->move_to(engine);
}

const std::string& eth_txq::clock_name() const noexcept
{
    return state_->options.clock;
}

eth_txq_counters eth_txq::counters() const
{
    return state_->queue->counters();
}

schedule_error eth_txq::schedule() const
{
    return state_->queue->schedule();
}

bool eth_txq::failed() const
{
    return state_->queue->failed();
}

void eth_txq::reset()
{
    state_->queue.reset(state_->make_life());
}

std::shared_ptr<devices::lifeline> detail::internals::line(const eth_txq& queue) noexcept
{
    return queue.state_->queue.life();
}

std::shared_ptr<queues::reported_queue> detail::internals::reports(const eth_txq& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
