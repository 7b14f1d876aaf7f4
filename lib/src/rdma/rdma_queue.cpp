#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>

#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "queues/live_queue.hpp"
#include "queues/reported_queue.hpp"
#include "queues/send_life.hpp"
#include "rdma/rdma_device.hpp"
#include "rdma/receive_life.hpp"
#include "rdma/trace_file.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_receive_segments = 64;

void require_number(const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most)
{
    if (value < least || value > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue: {} is {}; set {} to {}", name, value, least, most));
}

void require_path_mtu(const rdma_device& device, std::uint32_t path_mtu)
{
    const std::uint32_t most = device.most_path_mtu();
    if (path_mtu != 0 && !net::is_path_mtu(path_mtu))
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: rdma_queue: path_mtu is {}; set 256, 512, 1024, 2048 or 4096, or 0 for the port's maximum",
                path_mtu));
    const nic::backend& nic = detail::internals::backend(device);
    if (path_mtu > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue: path_mtu is {}, but port {} with its MTU of {} allows {}; set "
                                "that or less, or open the port with a larger port_options::mtu",
                                path_mtu, nic.spec(), nic.mtu(), most));
}

void require_sound(const rdma_device& device, const rdma_queue_options& options)
{
    queues::require_send_entries("rdma_queue", options.entries);
    queues::require_send_entries("rdma_queue", options.receive_entries, "receive_entries");
    if (!std::has_single_bit(options.receive_segments) || options.receive_segments > most_receive_segments)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue: receive_segments is {}; it must be a power of two from 1 to {}",
                                options.receive_segments, most_receive_segments));
    rdma::require_service("rdma_queue", options.service);
    if ((options.rights & rdma::remote_rights) != options.rights)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: rdma_queue: rights are {:#x}; set access::remote_write, remote_read and remote_atomic only",
                static_cast<unsigned>(options.rights)));
    require_path_mtu(device, options.path_mtu);
    require_number("most_reads", options.most_reads, 1, rdma::most_reads_in_flight);
    require_number("timeout", options.timeout, 0, 31);
    require_number("retry_count", options.retry_count, 0, 7);
    require_number("rnr_retry", options.rnr_retry, 0, 7);
    require_number("min_rnr_timer", options.min_rnr_timer, 0, 31);
    require_number("hop_limit", options.hop_limit, 1, 255);
    require_number("first_psn", options.first_psn.value_or(0), 0, net::psn_mask);
}

const char* name_of_service(rdma_service service) noexcept
{
    switch (service) {
        case rdma_service::reliable: return "reliable (RC)";
        case rdma_service::unreliable: return "unreliable (UC)";
    }
    return "unknown";
}

std::uint32_t fresh_psn(const rdma_queue_options& options)
{
    return options.first_psn.value_or(std::random_device()() & net::psn_mask);
}

/// Both rings of a queue pair from creation or reset to the next reset.
struct pair_life {
    pair_life(const device& device, const rdma_queue_options& options)
        : sends(device, {.entries = options.entries, .domain = options.domain, .abi = WEFTIO_DEV_ABI_RDMA}),
          receives(device, options.receive_entries, options.receive_segments, sends.completion())
    {}

    nic::rdma_rings begin() { return {.send = sends.begin(), .receive = receives.begin()}; }
    void belong_to(const std::shared_ptr<nic::rdma_queue>& queue, std::uint32_t ring_number)
    {
        sends.belong_to(queue, ring_number);
        receives.belong_to(queue, ring_number);
    }

    queues::send_life sends;
    rdma::receive_life receives;
};

} // namespace

struct rdma_queue::members final : queues::reported_queue, rdma_receives {
    members(std::shared_ptr<const rdma_device::state> port, const device& kernels, const rdma_queue_options& wanted)
        : at(std::move(port)), where(kernels), options(wanted),
          queue(make_life(),
                [&](const nic::rdma_rings& rings) { return at->nic->make_rdma_queue(rings, options.service); }),
          psn(fresh_psn(wanted))
    {
        own_mtu = options.path_mtu != 0 ? options.path_mtu : net::path_mtu_of(at->nic->mtu());
        mtu = own_mtu;
    }

    std::shared_ptr<pair_life> make_life() const { return core::make_shared_here<pair_life>(where, options); }
    const char* kind() const noexcept override { return "rdma_queue"; }
    nic::send_queue& reports() noexcept override { return *queue; }
    weftio_dev_rdma_recv* handle() const noexcept override { return queue.life()->receives.handle(); }
    weftio_dev_control* control() const noexcept override { return queue.life()->receives.control(); }
    std::shared_ptr<devices::lifeline> line() const noexcept override
    {
        return {queue.life(), &queue.life()->receives};
    }

    rdma::rdma_end_info ours() const
    {
        return {.end = {.mac = at->own().mac, .address = at->own().address, .queue = queue->number(), .first_psn = psn},
                .service = options.service,
                .path_mtu = own_mtu,
                .most_reads = options.most_reads};
    }
    nic::rdma_connection connection_to(const rdma::rdma_end_info& peer) const;
    void require_same_kind(const rdma::rdma_end_info& peer) const;

    const std::shared_ptr<const rdma_device::state> at;
    const device where;
    const rdma_queue_options options;
    queues::live_queue<pair_life, nic::rdma_queue> queue;
    std::uint32_t psn;
    std::uint32_t own_mtu = 0; ///< maximum of this end
    std::uint32_t mtu = 0;     ///< the smaller maximum of both ends, once connected
    bool connected = false;
};

void rdma_queue::members::require_same_kind(const rdma::rdma_end_info& peer) const
{
    rdma_device::state::require_same_kind("rdma_queue", queue->number(), at->gids.front(), peer.end.address);
    if (peer.service != options.service)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue {}: it is {}, the peer's is {}; set the same "
                                "rdma_queue_options::service at both ends",
                                queue->number(), name_of_service(options.service), name_of_service(peer.service)));
}

nic::rdma_connection rdma_queue::members::connection_to(const rdma::rdma_end_info& peer) const
{
    nic::rdma_connection to;
    to.ours = ours().end;
    to.theirs = peer.end;
    to.path_mtu = std::min(ours().path_mtu, peer.path_mtu);
    to.rights = options.rights;
    to.most_reads = std::min(options.most_reads, peer.most_reads);
    to.most_reads_of_peer = to.most_reads;
    to.timeout = options.timeout;
    to.retry_count = options.retry_count;
    to.rnr_retry = options.rnr_retry;
    to.min_rnr_timer = options.min_rnr_timer;
    to.traffic_class = options.traffic_class;
    to.hop_limit = options.hop_limit;
    to.vlan_tci = at->own().vlan_tci;
    return to;
}

rdma_queue::rdma_queue(const rdma_device& at, const device& device, rdma_queue_options options)
{
    require_sound(at, options);
    state_ = core::make_shared_here<members>(at.state_, device, options);
}

rdma_queue::rdma_queue(rdma_queue&&) noexcept = default;

rdma_queue& rdma_queue::operator=(rdma_queue&& other) noexcept
{
    rdma_queue before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

rdma_queue::~rdma_queue()
{
    if (state_ && state_->may_end())
        state_->queue->stop_sending(); // an attached progress_engine keeps the rest alive
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
    return rdma::to_address(state_->ours());
}

void rdma_queue::connect(const rdma_address& peer)
{
    rdma::rdma_end_info theirs = rdma::from_address(peer);
    state_->require_same_kind(theirs);
    if (!theirs.has_mac() && !state_->connected)
        theirs.end.mac = state_->at->mac_of("rdma_queue", number(), state_->at->gids.front(), theirs.end.address);
    const nic::rdma_connection to = state_->connection_to(theirs);
    state_->queue->connect(to);
    state_->mtu = to.path_mtu;
    state_->connected = true;
}

rdma_state rdma_queue::state() const
{
    if (failed())
        return rdma_state::error;
    return state_->connected ? rdma_state::ready_to_send : rdma_state::init;
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
    return state_->mtu;
}

void rdma_queue::reset()
{
    const std::uint32_t psn = fresh_psn(state_->options);
    state_->queue.reset(state_->make_life());
    state_->psn = psn;
    state_->mtu = state_->own_mtu;
    state_->connected = false;
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
