#include "nic/soft/soft_rdma_queue.hpp"

#include <fmt/format.h>

#include <utility>

#include "nic/soft/soft_completion_queue.hpp"
#include "nic/soft/soft_shared_receives.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

soft_rdma_queue::soft_rdma_queue(std::shared_ptr<soft_port> port, const rdma_rings& rings, rdma_service service)
    : soft_executed_queue("rdma_queue", std::move(port), rings.send), receive_(rings.receive)
{
    const pair_rings first = cpu_rings(rings);
    const bool has_completion_queue = first.send.completions.ring || first.receive.target.ring;
    between_all_turns([&] {
        if (!has_completion_queue)
            home_ = port_->engines().directory().emptiest();
        number_ = unit().add(first, service);
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

linked_receives* soft_rdma_queue::cpu_shared(const std::shared_ptr<nic::shared_receives>& shared) const
{
    if (!shared)
        return nullptr;
    auto* const queue = dynamic_cast<soft_shared_receives*>(shared.get());
    linked_receives* const entries = queue ? queue->at(*port_) : nullptr;
    if (!entries)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {}: its shared_receives belong to another port than {}; create both at one port",
                        kind_, port_->spec()));
    return entries;
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
                        .segments = receive.segments,
                        .shared = cpu_shared(receive.shared)},
            .windows = rings.windows};
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
    const pair_rings rings = cpu_rings({.send = ring_, .receive = receive_});
    between_all_turns([&] { unit().modify(number_, to, how, rings); });
}

void soft_rdma_queue::attach(const net::roce_gid& group)
{
    between_all_turns([&] { unit().attach(number_, group); });
}

bool soft_rdma_queue::detach(const net::roce_gid& group)
{
    bool had_joined = false;
    between_all_turns([&] { had_joined = unit().detach(number_, group); });
    return had_joined;
}

void soft_rdma_queue::take_management()
{
    between_all_turns([&] { unit().take_management(number_); });
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

std::uint32_t soft_rdma_queue::windows() const
{
    std::uint32_t held = 0;
    between_turns([&] { held = queue_->windows(); });
    return held;
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
