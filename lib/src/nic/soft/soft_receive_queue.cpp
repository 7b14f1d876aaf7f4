#include "nic/soft/soft_receive_queue.hpp"

#include <fmt/format.h>

#include <chrono>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

soft_receive_queue::soft_receive_queue(std::shared_ptr<soft_port> port, const rx_ring& ring, int engine)
    : port_(std::move(port))
{
    nic::soft::engines& engines = port_->engines();
    engines.between_all_turns([&] {
        const unsigned at = engine < 0 ? engines.emptiest_rx() : static_cast<unsigned>(engine);
        home_.store(at, std::memory_order_relaxed);
        number_ = engines.add_rx(at, filled_in(ring));
        queue_ = &port_->receiver(at).queue(number_);
    });
}

rx_ring soft_receive_queue::filled_in(rx_ring ring) const noexcept
{
    ring.cut_bytes = port_->device().cut_bytes();
    return ring;
}

void soft_receive_queue::close() noexcept
{
    if (!port_->may_end())
        return;
    port_->engines().between_all_turns([&] {
        port_->engines().remove_rx(home_, number_);
        queue_ = nullptr;
        ++ring_number_;
    });
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

void soft_receive_queue::restart(const rx_ring& ring)
{
    const std::scoped_lock one_at_a_time(changing_);
    port_->engines().between_all_turns([&] {
        port_->receiver(home_).restart(number_, filled_in(ring));
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
            engines.between_all_turns([&] {
                moved = engines.move_rx(number_, home_, engine);
                if (moved)
                    home_ = engine;
            });
        return moved;
    };
    if (!engines.keep_trying(try_once, std::chrono::seconds(1)))
        throw error(errc::in_use, fmt::format("weftio: eth_rxq {}: engine {} of port {} has had no room for 1 s for "
                                              "packets on their way to the queue; let "
                                              "kernels release packets of the queues there, and try again",
                                              number_, engine, port_->spec()));
}

inline_turn soft_receive_queue::turn() noexcept
{
    if (!port_->is_inline())
        return {};
    return {.turn =
                [](void* queue) {
                    auto* self = static_cast<soft_receive_queue*>(queue);
                    self->port_->engine(self->home_.load(std::memory_order_relaxed)).turn();
                },
            .context = this};
}

void soft_receive_queue::stop(std::uint32_t ring)
{
    port_->engines().between_turns_at(home_, [&] {
        if (ring == ring_number_)
            queue_->stop();
    });
}

std::string soft_receive_queue::describe(std::uint32_t ring) const
{
    std::string text = fmt::format("eth_rxq {} on {}", number_, port_->spec());
    port_->engines().between_turns_at(home_, [&] {
        if (ring == ring_number_)
            text += fmt::format(": {} slots, {} delivered, {} flushed, {} out_of_buffer{}", queue_->ring().depth,
                                queue_->delivered.value(), queue_->flushed.value(), queue_->all_out_of_buffer(),
                                queue_->stopped() ? ", stopped" : "");
        else
            text += ": reset or closed since";
    });
    return text;
}

} // namespace weftio::nic::soft
