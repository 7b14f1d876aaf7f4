#include "nic/soft/soft_rdma_queue.hpp"

#include <fmt/format.h>

#include <utility>

#include "net/roce_rules.hpp"
#include "nic/soft/soft_completion_queue.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

/// @param what  what is wrong with the connection
[[noreturn]] void refuse(std::uint32_t number, const std::string& what)
{
    throw error(errc::invalid_argument, fmt::format("weftio: rdma_queue {}: {}", number, what));
}

void require_range(std::uint32_t number, const char* name, std::uint32_t value, std::uint32_t most)
{
    if (value > most)
        refuse(number, fmt::format("{} is {}; set {} at most", name, value, most));
}

void require_sound(std::uint32_t number, const rdma_connection& to, std::uint16_t port_mtu)
{
    const std::uint32_t most_mtu = net::path_mtu_of(port_mtu);
    if (!net::is_path_mtu(to.path_mtu) || to.path_mtu > most_mtu)
        refuse(number,
               fmt::format(
                   "the path MTU is {}; set 256, 512, 1024, 2048 or 4096, and at most {} with the port's MTU of {}",
                   to.path_mtu, most_mtu, port_mtu));
    require_range(number, "the peer's queue number", to.theirs.queue, net::psn_mask);
    require_range(number, "our first sequence number", to.ours.first_psn, net::psn_mask);
    require_range(number, "the peer's first sequence number", to.theirs.first_psn, net::psn_mask);
    require_range(number, "timeout", to.timeout, 31);
    require_range(number, "retry_count", to.retry_count, 7);
    require_range(number, "rnr_retry", to.rnr_retry, 7);
    require_range(number, "min_rnr_timer", to.min_rnr_timer, 31);
}

} // namespace

soft_rdma_queue::soft_rdma_queue(std::shared_ptr<soft_port> port, const rdma_rings& rings)
    : soft_executed_queue("rdma_queue", std::move(port), rings.send), receive_(rings.receive)
{
    const pair_rings first = cpu_rings(rings);
    const bool has_completion_queue = first.send.completions.ring || first.receive.target.ring;
    between_all_turns([&] {
        if (!has_completion_queue)
            home_ = port_->engines().directory().emptiest();
        number_ = unit().add(first);
        queue_ = unit().find(number_);
    });
}

/// Requires a completion queue of this port, because a queue pair and its completion queues share one engine.
completions_at soft_rdma_queue::cpu_target(const completion_target& target) const
{
    if (!target.queue)
        return {};
    const auto* const queue = dynamic_cast<const soft_completion_queue*>(target.queue.get());
    completion_ring* const ring = queue ? queue->at(*port_) : nullptr;
    if (!ring)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {}: its completion queue belongs to another port than {}; create both at one port",
                        kind_, port_->spec()));
    return {.ring = ring, .only_asked = target.only_asked, .user_index = target.user_index};
}

pair_rings soft_rdma_queue::cpu_rings(const rdma_rings& rings) const
{
    const rdma_receive_ring& receive = rings.receive;
    for (const ring_memory* each : {&receive.entries, &receive.dbrec, &receive.completions})
        require_cpu(*each, kind_);
    tx_ring send = cpu_ring(rings.send);
    send.completions = cpu_target(rings.send.completions);
    return {.send = send,
            .receive = {.words = receive.entries.cpu<std::uint32_t>(),
                        .dbrec = receive.dbrec.cpu<std::uint32_t>(),
                        .completions = receive.completions.cpu<weftio_cqe>(),
                        .target = cpu_target(receive.target),
                        .depth = receive.depth,
                        .segments = receive.segments}};
}

void soft_rdma_queue::connect(const rdma_connection& to)
{
    require_sound(number_, to, port_->mtu());
    between_all_turns([&] {
        if (queue_->connected())
            refuse(number_, "it is already connected; reset it first");
        unit().connect(number_, to);
    });
}

void soft_rdma_queue::restart(const rdma_rings& rings)
{
    const std::scoped_lock one_at_a_time(changing_);
    const pair_rings next = cpu_rings(rings);
    between_all_turns([&] {
        queue_->stop();
        unit().restart(number_, next);
        ring_ = rings.send;
        receive_ = rings.receive;
        ++ring_number_;
    });
}

void soft_rdma_queue::modify(rdma_state to, const rdma_connection& how)
{
    if (to == rdma_state::ready_to_receive || to == rdma_state::ready_to_send)
        require_sound(number_, how, port_->mtu());
    const pair_rings rings = cpu_rings({.send = ring_, .receive = receive_});
    between_all_turns([&] { unit().modify(number_, to, how, rings); });
}

rdma_queue::standing soft_rdma_queue::state() const
{
    standing now;
    between_turns([&] { now = {.state = queue_->state(), .draining = queue_->draining()}; });
    return now;
}

std::string soft_rdma_queue::progress() const
{
    const rdma_counters count = queue_->counters();
    return fmt::format("{} enqueued, {} done, {} failed, {} flushed; {} receives filled, {} failed{}", count.enqueued,
                       count.done, count.failed, count.flushed, count.filled, count.receive_failed,
                       queue_->failed() ? ", in error" : "");
}

rdma_counters soft_rdma_queue::counters() const
{
    rdma_counters counters;
    between_turns([&] { counters = queue_->counters(); });
    return counters;
}

rdma_dump soft_rdma_queue::dump() const
{
    rdma_dump all;
    between_turns([&] { all = queue_->dump(); });
    all.engine = home_;
    return all;
}

std::vector<std::uint8_t> soft_rdma_queue::trace(const std::string& comment) const
{
    std::vector<std::uint8_t> file;
    between_turns([&] {
        if (const packet_trace* const kept = unit().trace())
            file = kept->pcapng(comment);
    });
    return file;
}

bool soft_rdma_queue::next(send_outcome& outcome)
{
    responder_failure failure;
    if (soft_executed_queue::next(outcome))
        return true;
    if (!queue_->failures().get(failure))
        return false;
    outcome = {.position = failure.entry.value_or(0),
               .syndrome = syndrome_of(failure),
               .text = fmt::format("weftio: rdma_queue {}: {}", number_, explain(failure)),
               .time_ns = failure.time_ns,
               .what = failure.entry ? outcome_of::receive_ring : outcome_of::none,
               .reason = failure.entry ? failure.reason : failure.request.reason};
    return true;
}

} // namespace weftio::nic::soft
