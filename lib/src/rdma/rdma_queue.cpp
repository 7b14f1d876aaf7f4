#include "rdma/rdma_queue.hpp"

#include <fmt/format.h>

#include <bit>

#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "queues/needs_flush.hpp"
#include "rdma/kept_pairs.hpp"
#include "rdma/trace_file.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_receive_segments = 64;

void require_rings(const rdma_queue_options& options)
{
    queues::require_send_entries("rdma_queue", options.entries);
    queues::require_send_entries("rdma_queue", options.receive_entries, "receive_entries");
    if (!std::has_single_bit(options.receive_segments) || options.receive_segments > most_receive_segments)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue: receive_segments is {}; it must be a power of two from 1 to {}",
                                options.receive_segments, most_receive_segments));
}

/// The attributes of this end, as its options set them. @throws weftio::error errc::invalid_argument
rdma::pair_attributes attributes_of(const rdma::local_addresses& at, const rdma_queue_options& options)
{
    require_rings(options);
    rdma::require_queue_key("rdma_queue", options.queue_key);
    rdma::pair_attributes made("rdma_queue", at, options.service);
    if ((options.rights & net::remote_rights) != options.rights)
        rdma::refuse_rights("rdma_queue", options.rights);
    rdma::require_range("rdma_queue", "most_reads", options.most_reads, 1, rdma::most_reads_in_flight);
    rdma::require_range("rdma_queue", "hop_limit", options.hop_limit, 1, 255);
    rdma::require_range("rdma_queue", "first_psn", options.first_psn.value_or(0), 0, net::psn_mask);
    made.begin_with({.rights = options.rights,
                     .queue_key = options.queue_key,
                     .path_mtu = options.path_mtu == 0 ? std::nullopt : std::optional(options.path_mtu),
                     .send_psn = options.first_psn,
                     .most_reads = options.most_reads,
                     .min_rnr_timer = options.min_rnr_timer,
                     .timeout = options.timeout,
                     .retry_count = options.retry_count,
                     .rnr_retry = options.rnr_retry});
    made.begin_with(options.traffic_class, options.hop_limit);
    return made;
}

} // namespace

rdma::pair_life::pair_life(const device& device, const rdma_queue_options& options, nic::window_options windows,
                           connection_place place, bool needs_flush)
    : sends(device,
            {.entries = options.entries,
             .domain = options.domain,
             .abi = WEFTIO_DEV_ABI_RDMA,
             .needs_flush = needs_flush},
            place.control),
      windows_(windows), place_(std::move(place))
{
    if (!place_.receives)
        own_.emplace(device, options.receive_entries, options.receive_segments, sends.completion(), needs_flush);
}

nic::rdma_rings rdma::pair_life::begin()
{
    return {.send = sends.begin(),
            .receive = own_ ? own_->begin() : place_.receives->of_connection(place_.index),
            .windows = windows_};
}

void rdma::pair_life::belong_to(const std::shared_ptr<nic::rdma_queue>& queue, std::uint32_t ring_number)
{
    sends.belong_to(queue, ring_number);
    if (own_)
        own_->belong_to(queue, ring_number);
}

weftio_dev_rdma_recv* rdma::pair_life::receives() const noexcept
{
    return own_ ? own_->handle() : place_.receives->handle();
}

devices::lifeline& rdma::pair_life::receive_line() noexcept
{
    return own_ ? static_cast<devices::lifeline&>(*own_) : *place_.receives;
}

rdma_queue::members::members(std::shared_ptr<const rdma_device::state> port, const device& kernels,
                             const rdma_queue_options& wanted, rdma::connection_place among)
    : at(std::move(port)), where(kernels), options(wanted), place(std::move(among)),
      attributes(attributes_of(*at, wanted)),
      queue(make_life(),
            [&](const nic::rdma_rings& rings) { return at->nic->make_rdma_queue(rings, options.service); }),
      own(attributes.address(queue->number(), attributes.first().send_psn))
{
    if (place.receives)
        place.receives->add(queue.share());
    if (options.service == rdma_service::datagram)
        attributes.begin_datagrams(*queue);
}

std::shared_ptr<rdma::pair_life> rdma_queue::members::make_life() const
{
    return core::make_shared_here<rdma::pair_life>(where, options, at->windows, place,
                                                   queues::needs_flush(*at->nic, where));
}

rdma_queue::rdma_queue(const rdma_device& at, const device& device, rdma_queue_options options)
{
    state_ = core::make_shared_here<members>(at.state_, device, options);
}

rdma_queue::rdma_queue(std::shared_ptr<members> state) noexcept : state_(std::move(state)) {}

rdma_queue::rdma_queue(rdma_queue&&) noexcept = default;

rdma_queue& rdma_queue::operator=(rdma_queue&& other) noexcept
{
    rdma_queue before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

rdma_queue::~rdma_queue()
{
    if (!state_ || !state_->may_end())
        return;
    state_->queue->stop_sending(); // an attached progress_engine keeps the rest alive
    rdma::keep_while_bound("rdma_queue", *state_->queue, state_);
}

weftio_dev_rdma* rdma_queue::handle() const noexcept
{
    static_assert(sizeof(weftio_dev_rdma) == sizeof(weftio_dev_send_queue));
    return reinterpret_cast<weftio_dev_rdma*>(state_->queue.life()->sends.handle());
}

weftio_dev_control* rdma_queue::control() const noexcept
{
    return state_->queue.life()->sends.control();
}

const rdma_receives& rdma_queue::receives() const noexcept
{
    return *state_;
}

rdma_address rdma_queue::address() const noexcept
{
    return state_->own;
}

void rdma_queue::connect(const rdma_address& peer)
{
    state_->attributes.connect(*state_->queue, peer);
}

void rdma_queue::attach(const std::string& group)
{
    state_->attributes.attach(*state_->queue, group);
}

void rdma_queue::detach(const std::string& group)
{
    state_->attributes.detach(*state_->queue, group);
}

rdma_state rdma_queue::state() const
{
    return state_->queue->state().state;
}

bool rdma_queue::failed() const
{
    return state_->queue->failed();
}

rdma_counters rdma_queue::counters() const
{
    return state_->queue->counters();
}

rdma_dump rdma_queue::dump() const
{
    return state_->queue->dump();
}

void rdma_queue::write_trace(const std::string& path) const
{
    rdma::write_trace("rdma_queue", *state_->queue, path);
}

std::uint32_t rdma_queue::number() const noexcept
{
    return state_->queue->number();
}

std::uint32_t rdma_queue::path_mtu() const noexcept
{
    return state_->attributes.present().path_mtu;
}

void rdma_queue::reset()
{
    const std::uint32_t psn = state_->options.first_psn.value_or(rdma::random_psn());
    const rdma_address own = state_->attributes.address(number(), psn);
    state_->queue.reset(state_->make_life());
    state_->attributes.begin_again(psn);
    state_->own = own;
    if (state_->options.service == rdma_service::datagram)
        state_->attributes.begin_datagrams(*state_->queue);
}

void rdma_queue::close()
{
    if (state_->may_end())
        rdma::require_no_windows("rdma_queue", *state_->queue);
    const rdma_queue gone(std::move(*this));
}

std::shared_ptr<rdma::connectable> rdma::connectable_of(const rdma_queue& queue) noexcept
{
    return std::dynamic_pointer_cast<connectable>(detail::internals::reports(queue));
}

std::shared_ptr<devices::lifeline> detail::internals::line(const rdma_queue& queue) noexcept
{
    return {queue.state_->queue.life(), &queue.state_->queue.life()->sends};
}

std::shared_ptr<devices::lifeline> detail::internals::line(const rdma_receives& receives) noexcept
{
    return receives.line();
}

std::shared_ptr<queues::reported_queue> detail::internals::reports(const rdma_queue& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
