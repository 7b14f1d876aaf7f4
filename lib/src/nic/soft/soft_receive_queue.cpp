#include "nic/soft/soft_receive_queue.hpp"

#include <fmt/format.h>

#include <chrono>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

soft_receive_queue::soft_receive_queue(std::shared_ptr<soft_port> port, const receive_ring& ring, int engine)
    : soft_queue("eth_rxq", std::move(port)), ring_(ring)
{
    nic::soft::engines& engines = port_->engines();
    const rx_ring first = cpu_ring(ring);
    between_all_turns([&] {
        const unsigned at = engine < 0 ? engines.emptiest_rx() : static_cast<unsigned>(engine);
        home_.store(at, std::memory_order_relaxed);
        number_ = engines.add_rx(at, first);
        queue_ = &port_->receiver(at).queue(number_);
    });
}

rx_ring soft_receive_queue::cpu_ring(const receive_ring& ring) const
{
    for (const ring_memory* each : {&ring.completions, &ring.dbrec, &ring.slots})
        require_cpu(*each, kind_);
    return {.completions = ring.completions.cpu<weftio_cqe>(),
            .dbrec = ring.dbrec.cpu<std::uint32_t>(),
            .slots = ring.slots.cpu<std::byte>(),
            .depth = ring.depth,
            .stride_bytes = ring.stride_bytes,
            .slot_bytes = ring.slot_bytes,
            .cut_bytes = port_->device().cut_bytes(),
            .verify_checksums = ring.verify_checksums,
            .lendable = ring.lendable,
            .consecutive = ring.consecutive,
            .zeroed_bytes = ring.zeroed_bytes,
            .staged = ring.staged};
}

void soft_receive_queue::remove() noexcept
{
    port_->engines().remove_rx(home_, number_);
}

eth_rxq_counters soft_receive_queue::counters() const
{
    // Reads the counters while the engine runs: a program that polls them must not keep the engine waiting.
    return {.delivered = queue_->delivered.value(),
            .delivered_bytes = queue_->delivered_bytes.value(),
            .out_of_buffer = queue_->all_out_of_buffer(),
            .too_long = queue_->too_long.value(),
            .flushed = queue_->flushed.value()};
}

void soft_receive_queue::restart(const receive_ring& ring)
{
    const std::scoped_lock one_at_a_time(changing_);
    const rx_ring next = cpu_ring(ring);
    between_all_turns([&] {
        port_->receiver(home_).restart(number_, next);
        ring_ = ring;
        ++ring_number_;
    });
}

void soft_receive_queue::move_to(unsigned engine)
{
    const std::scoped_lock one_at_a_time(changing_);
    nic::soft::engines& engines = port_->engines();
    auto try_once = [&] {
        bool moved = home_ == engine;
        if (!moved)
            between_all_turns([&] {
                moved = engines.move_rx(number_, home_, engine);
                if (moved)
                    home_ = engine;
            });
        return moved;
    };
    if (!engines.keep_trying(try_once, std::chrono::seconds(1)))
        throw error(errc::in_use,
                    fmt::format("weftio: eth_rxq {}: engine {} of port {} had no space within 1 s for packets on their "
                                "way to the queue; let kernels release packets of its queues, and try again",
                                number_, engine, port_->spec()));
}

inline_turn soft_receive_queue::turn() noexcept
{
    return turn_of(this);
}

void soft_receive_queue::run_turn() const
{
    port_->engine(home_.load(std::memory_order_relaxed)).turn();
}

std::string soft_receive_queue::progress() const
{
    return fmt::format("{} slots, {} delivered, {} flushed, {} out_of_buffer{}", queue_->ring().depth,
                       queue_->delivered.value(), queue_->flushed.value(), queue_->all_out_of_buffer(),
                       queue_->stopped() ? ", stopped" : "");
}

} // namespace weftio::nic::soft
