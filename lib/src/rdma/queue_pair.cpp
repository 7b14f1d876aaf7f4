#include "weftio/queue_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "core/process.hpp"
#include "net/roce_rules.hpp"
#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"
#include "queues/placed.hpp"
#include "queues/reported_queue.hpp"
#include "rdma/rdma_device.hpp"
#include "rdma/trace_file.hpp"
#include "rdma/transitions.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_entries = 32768, least_stride = 16, most_stride = 512, most_user_index = 0xffffff;

void require_power(const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most)
{
    if (!std::has_single_bit(value) || value < least || value > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: queue_pair: {} is {}; it must be a power of two from {} to {}", name, value,
                                least, most));
}

void check(const queue_pair_options& options)
{
    require_power("send_blocks", options.send_blocks, 1, most_entries);
    if (options.receive_entries != 0)
        require_power("receive_entries", options.receive_entries, 1, most_entries);
    if (options.receive_entries != 0)
        require_power("receive_stride", options.receive_stride, least_stride, most_stride);
    rdma::require_service("queue_pair", options.service);
    if (options.user_index > most_user_index)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair: user_index is {}; set {} at most",
                                                        options.user_index, most_user_index));
}

void require_most(std::uint32_t queue, const char* name, std::uint32_t value, std::uint32_t most)
{
    if (value > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: queue_pair {}: {} is {}; set {} at most", queue, name, value, most));
}

template <class T>
void set(const std::optional<T>& given, T& to, std::uint32_t queue, const char* name, std::uint32_t most)
{
    if (!given)
        return;
    require_most(queue, name, *given, most);
    to = *given;
}

nic::doorbell_memory doorbell_of(const device& device, const queue_pair_options& options)
{
    constexpr std::size_t word = sizeof(std::uint64_t);
    const std::size_t bytes = options.two_doorbells ? nic::doorbell_memory::to_the_next + word : word;
    return {.words = queues::placed({"queue_pair", "doorbell", bytes, word}, options.doorbell, device),
            .count = options.two_doorbells ? 2u : 1u};
}

nic::rdma_rings rings_of(const device& device, const queue_pair_options& options, const completion_queue& sends,
                         const completion_queue& receives)
{
    constexpr std::size_t segment_bytes = WEFTIO_WQE_SEGMENT_BYTES, word = sizeof(std::uint32_t);
    const std::size_t receive_bytes = std::size_t{options.receive_entries} * options.receive_stride;
    const nic::ring_memory record = queues::placed({"queue_pair", "record", 2 * word, word}, options.record, device);
    nic::rdma_rings made;
    made.send = {.entries = queues::placed({"queue_pair", "send_ring",
                                            std::size_t{options.send_blocks} * WEFTIO_WQE_BLOCK_BYTES, segment_bytes},
                                           options.send_ring, device),
                 .depth = options.send_blocks,
                 .dbrec = record.behind(word),
                 .completions = {.queue = detail::internals::share(sends),
                                 .only_asked = !options.signal_all,
                                 .user_index = options.user_index},
                 .domain = options.domain};
    made.receive = {.depth = options.receive_entries,
                    .segments = options.receive_stride / WEFTIO_WQE_SEGMENT_BYTES,
                    .dbrec = record,
                    .target = {.queue = detail::internals::share(receives), .user_index = options.user_index}};
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
        : at(std::move(port)), where(kernels), options(wanted), rings(rings_of(kernels, wanted, sends, receives)),
          queue(at->nic->make_rdma_queue(rings, wanted.service)), how(fresh())
    {}
    members(const members&) = delete;
    members& operator=(const members&) = delete;
    ~members() override { queue->close(); }

    const char* kind() const noexcept override { return "queue_pair"; }
    nic::send_queue& reports() noexcept override { return *queue; }
    /// The NIC stops using all memory of the queue pair. Reports that it has made before can still be read.
    void leave() noexcept { queue->modify(rdma_state::reset, fresh()); }

    nic::rdma_connection fresh() const
    {
        nic::rdma_connection made;
        made.ours = {.mac = at->own().mac, .address = at->own().address};
        made.vlan_tci = at->own().vlan_tci;
        return made;
    }
    nic::rdma_connection with(const queue_pair_attributes& given) const;
    void set_path(const queue_pair_attributes& given, nic::rdma_connection& to) const;
    std::uint32_t most_path_mtu() const { return net::path_mtu_of(at->nic->mtu()); }

    const std::shared_ptr<const rdma_device::state> at;
    const device where;
    const queue_pair_options options;
    const nic::rdma_rings rings;
    const std::shared_ptr<nic::rdma_queue> queue;
    nic::rdma_connection how;                                         ///< attributes set since RESET
    const std::uint32_t psn = std::random_device()() & net::psn_mask; ///< first PSN, for connect()
};

/// The attributes set so far, updated with `given`.
nic::rdma_connection queue_pair::members::with(const queue_pair_attributes& given) const
{
    const std::uint32_t number = queue->number();
    nic::rdma_connection to = how;
    // Verbs programs set local_write, too. It has no effect here.
    constexpr access customary = rdma::remote_rights | access::local_write;
    if (given.rights && (*given.rights & customary) != *given.rights)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: queue_pair {}: rights are {:#x}; set access::remote_write, remote_read and remote_atomic only",
                number, static_cast<unsigned>(*given.rights)));
    to.rights = given.rights.value_or(to.rights) & rdma::remote_rights;
    set(given.partition_key, to.partition_key, number, "partition_key", 0xffff);
    if (given.path_mtu && (!net::is_path_mtu(*given.path_mtu) || *given.path_mtu > most_path_mtu()))
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: path_mtu is {}; set 256, 512, 1024, "
                                                        "2048 or 4096; the port's MTU of {} allows {} at most",
                                                        number, *given.path_mtu, at->nic->mtu(), most_path_mtu()));
    to.path_mtu = given.path_mtu.value_or(to.path_mtu);
    set(given.peer_queue, to.theirs.queue, number, "peer_queue", net::psn_mask);
    set(given.receive_psn, to.theirs.first_psn, number, "receive_psn", net::psn_mask);
    set(given.send_psn, to.ours.first_psn, number, "send_psn", net::psn_mask);
    set(given.most_reads_of_peer, to.most_reads_of_peer, number, "most_reads_of_peer", rdma::most_reads_in_flight);
    set(given.most_reads, to.most_reads, number, "most_reads", rdma::most_reads_in_flight);
    set(given.min_rnr_timer, to.min_rnr_timer, number, "min_rnr_timer", 31);
    set(given.timeout, to.timeout, number, "timeout", 31);
    set(given.retry_count, to.retry_count, number, "retry_count", 7);
    set(given.rnr_retry, to.rnr_retry, number, "rnr_retry", 7);
    if (given.peer_address)
        set_path(given, to);
    else if (given.peer_mac || given.gid_index != 0 || given.traffic_class != 0 ||
             given.hop_limit != queue_pair_attributes{}.hop_limit)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: peer_mac, gid_index, traffic_class and "
                                                        "hop_limit need peer_address; set that, too",
                                                        number));
    return to;
}

void queue_pair::members::set_path(const queue_pair_attributes& given, nic::rdma_connection& to) const
{
    const std::uint32_t number = queue->number();
    const auto address = rdma::address_of_host(*given.peer_address);
    if (!address)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: queue_pair {}: peer_address \"{}\" is not a host address; write an IPv4 or "
                                "IPv6 address without a prefix length",
                                number, *given.peer_address));
    if (given.gid_index >= at->gids.size())
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: gid_index is {}, but its rdma_device "
                                                        "has {} addresses, counted from 0 (rdma_device::gids)",
                                                        number, given.gid_index, at->gids.size()));
    const rdma_device::state::gid& ours = at->gids[given.gid_index];
    rdma_device::state::require_same_kind("queue_pair", number, ours, *address);
    to.ours.address = ours.own.address;
    to.theirs.address = *address;
    to.theirs.mac = given.peer_mac ? *given.peer_mac : at->mac_of("queue_pair", number, ours, *address);
    to.traffic_class = given.traffic_class;
    to.hop_limit = given.hop_limit;
}

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
    if (state_ && state_->may_end())
        state_->leave(); // an attached progress_engine keeps the rest alive
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
    const nic::rdma_queue::standing now = state_->queue->state();
    rdma::require_transition(number(), state_->options.service, now.state, to, with);
    if (now.draining && rdma::attributes_of(with) != 0)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: in SQD, attributes cannot change while "
                                                        "entries drain; wait until draining() is false",
                                                        number()));
    const nic::rdma_connection given = state_->with(with);
    const nic::rdma_connection how = to == rdma_state::reset ? state_->fresh() : given;
    state_->queue->modify(to, how);
    state_->how = how;
}

rdma_address queue_pair::address() const
{
    return rdma::to_address({.end = {.mac = state_->at->own().mac,
                                     .address = state_->at->own().address,
                                     .queue = number(),
                                     .first_psn = state_->psn},
                             .service = state_->options.service,
                             .path_mtu = state_->most_path_mtu(),
                             .most_reads = rdma::most_reads_in_flight});
}

void queue_pair::connect(const rdma_address& peer)
{
    if (const rdma_state now = state(); now != rdma_state::reset && now != rdma_state::init)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: connect() needs RESET or INIT, but the "
                                                        "state is {}; call modify(rdma_state::reset) first",
                                                        number(), to_string(now)));
    const rdma_peer theirs = peer.peer();
    const bool reliable = state_->options.service == rdma_service::reliable;
    const rdma_queue_options usual;
    if (theirs.service != state_->options.service)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: the peer uses the other service; set "
                                                        "the same queue_pair_options::service at both ends",
                                                        number()));
    if (state() == rdma_state::reset)
        modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .rights = usual.rights});
    queue_pair_attributes receiving{.peer_address = theirs.address,
                                    .peer_mac = theirs.mac,
                                    .path_mtu = std::min(theirs.path_mtu, state_->most_path_mtu()),
                                    .peer_queue = theirs.queue,
                                    .receive_psn = theirs.first_psn};
    queue_pair_attributes sending{.send_psn = state_->psn};
    if (reliable) {
        receiving.most_reads_of_peer = theirs.most_reads;
        receiving.min_rnr_timer = usual.min_rnr_timer;
        sending.most_reads = theirs.most_reads;
        sending.timeout = usual.timeout;
        sending.retry_count = usual.retry_count;
        sending.rnr_retry = usual.rnr_retry;
    }
    modify(rdma_state::ready_to_receive, receiving);
    modify(rdma_state::ready_to_send, sending);
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

std::shared_ptr<queues::reported_queue> detail::internals::reports(const queue_pair& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
