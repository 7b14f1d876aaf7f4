#include "nic/soft/soft_send_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

/// Pauses the queue in the constructor and resumes it in the destructor. A queue that has moved to another engine
/// meanwhile is not paused there.
class soft_send_queue::pausing {
 public:
    explicit pausing(const soft_send_queue& queue) : queue_(queue)
    {
        queue_.between_turns([&] { queue_.sender().pause(queue_.number_); });
    }
    pausing(const pausing&) = delete;
    pausing& operator=(const pausing&) = delete;
    ~pausing()
    {
        queue_.between_turns([&] { queue_.sender().resume(queue_.number_); });
        if (queue_.is_inline()) // executes what kernels have pushed during the pause; they do not push it again
            queue_.run_turn();
    }

 private:
    const soft_send_queue& queue_;
};

soft_send_queue::soft_send_queue(std::shared_ptr<soft_port> port, const send_ring& ring, int engine)
    : soft_executed_queue("eth_txq", std::move(port), ring)
{
    nic::soft::engines& engines = port_->engines();
    const tx_ring first = cpu_ring(ring);
    between_all_turns([&] {
        const unsigned at = engine < 0 ? engines.emptiest_tx() : static_cast<unsigned>(engine);
        home_.store(at, std::memory_order_relaxed);
        number_ = engines.add_tx(at, first);
        queue_ = &sender().queue(number_);
    });
}

void soft_send_queue::remove() noexcept
{
    sender().remove(number_);
}

bool soft_send_queue::drain()
{
    stop_sending();
    return port_->engines().keep_trying(
        [&] {
            bool drained = false;
            between_turns([&] { drained = sender().drained(number_); });
            return drained;
        },
        std::chrono::seconds(1));
}

void soft_send_queue::restart(const send_ring& ring)
{
    if (port_->gone())
        throw error(errc::closed, fmt::format("weftio: eth_txq {}: port {} is gone: its device or its interface was "
                                              "removed; close the queue and the port, and open them again",
                                              number_, port_->spec()));
    const std::scoped_lock one_at_a_time(changing_);
    const tx_ring next = cpu_ring(ring);
    if (!drain())
        throw error(
            errc::in_use,
            fmt::format(
                "weftio: eth_txq {}: port {} still holds frames of this queue after 1 s; try again, or close the "
                "queue",
                number_, port_->spec()));
    between_turns([&] {
        sender().restart(number_, next);
        ring_ = ring;
        ++ring_number_;
    });
}

/// Moves the queue if the driver holds no frame of it. Returns whether it has moved.
bool soft_send_queue::try_to_move(unsigned engine)
{
    bool driver_holds_none = false;
    between_turns([&] { driver_holds_none = sender().driver_holds_none(number_); });
    if (!driver_holds_none)
        return false;
    between_all_turns([&] {
        // Checked again: a wait may have ended since, and its frames may be with the driver.
        driver_holds_none = sender().driver_holds_none(number_);
        if (driver_holds_none) {
            port_->engines().move_tx(number_, home_, engine);
            home_ = engine;
        }
    });
    return driver_holds_none;
}

void soft_send_queue::move_to(unsigned engine)
{
    const std::scoped_lock one_at_a_time(changing_);
    if (engine == home_)
        return;
    const pausing pausing(*this);
    if (!port_->engines().keep_trying([&] { return try_to_move(engine); }, std::chrono::seconds(1)))
        throw error(
            errc::in_use,
            fmt::format("weftio: eth_txq {}: port {} still holds frames of this queue after 1 s; try again later",
                        number_, port_->spec()));
}

inline_turn soft_send_queue::turn() noexcept
{
    return turn_of(this);
}

void soft_send_queue::run_turn() const
{
    const unsigned here = home_.load(std::memory_order_relaxed);
    port_->engine(here).send_turn([&] { port_->sender(here).wake(number_); });
}

std::string soft_send_queue::progress() const
{
    return fmt::format("{} enqueued, {} sent, {} waited, {} failed, {} flushed{}", queue_->enqueued.value(),
                       queue_->sent.value(), queue_->waited.value(), queue_->failed_entries.value(),
                       queue_->flushed.value(), queue_->failed() ? ", in error" : "");
}

eth_txq_counters soft_send_queue::counters() const
{
    const pacing& schedule = queue_->schedule();
    return {.enqueued = queue_->enqueued.value(),
            .sent = queue_->sent.value(),
            .sent_bytes = queue_->sent_bytes.value(),
            .waited = queue_->waited.value(),
            .failed = queue_->failed_entries.value(),
            .flushed = queue_->flushed.value(),
            .copied_bytes = queue_->copied_bytes.value(),
            .tx_pp_timestamp_past_errors = schedule.past_errors.value(),
            .tx_pp_timestamp_future_errors = schedule.future_errors.value(),
            .tx_pp_timestamp_order_errors = schedule.order_errors.value(),
            .lost_events = queue_->events().lost.value()};
}

schedule_error soft_send_queue::schedule() const
{
    const lateness& error = queue_->schedule().error;
    return {.count = error.count(),
            .p50_ns = error.quantile_ns(0.5),
            .p99_ns = error.quantile_ns(0.99),
            .p999_ns = error.quantile_ns(0.999),
            .max_ns = error.max_ns()};
}

std::string soft_send_queue::words_of(const send_event& event) const
{
    constexpr unsigned ethernet_bytes = 14;
    const char* reason = explain(event.reason);
    const unsigned mtu = port_->mtu();
    switch (event.reason) {
        case refusal::frame_too_long:
            return fmt::format("{}: it has at least {} bytes, the limit is {} with an MTU of {}, plus 4 for each of up "
                               "to two VLAN tags; send shorter frames, or raise the MTU at both ends of the link",
                               reason, event.detail, mtu + ethernet_bytes, mtu);
        case refusal::link_down:
            return fmt::format("{}: the interface of port {} or its peer is down; bring both up with \"ip link set "
                               "NAME up\", then reset the queue",
                               reason, port_->spec());
        case refusal::file_failed:
            return fmt::format("{}: {}; the file of port {} ends with the last frame that was sent", reason,
                               std::strerror(static_cast<int>(event.detail)), port_->spec());
        default: return reason;
    }
}

} // namespace weftio::nic::soft
