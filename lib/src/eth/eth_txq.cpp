#include "weftio/eth_txq.hpp"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/clock.hpp"
#include "eth/txq_life.hpp"
#include "nic/soft/soft_port.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t fewest_entries = 64, most_entries = 32768;

void check(const eth_txq_options& options)
{
    if (!std::has_single_bit(options.entries) || options.entries < fewest_entries || options.entries > most_entries)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_txq: entries is {}; it must be a power of two from {} to {}",
                                options.entries, fewest_entries, most_entries));
    if (options.clock != detail::utc_clock::name)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_txq: clock \"{}\" is not the port's; this port schedules by \"{}\", take "
                                "timestamps from utc_now_ns()",
                                options.clock, detail::utc_clock::name));
}

} // namespace

struct eth_txq::state {
    state(const port& port, const device& device, const eth_txq_options& wanted)
        : nic(port.share()), where(device), options(wanted),
          life(detail::make_shared_here<detail::eth_txq_life>(nic, home, where, options))
    {
        auto ring = life->begin();
        nic::engines& engines = nic->engines();
        engines.between_all_turns([&] {
            const unsigned engine = options.engine < 0 ? engines.emptiest_tx() : static_cast<unsigned>(options.engine);
            home->store(engine, std::memory_order_relaxed);
            number = engines.add_tx(engine, ring);
            queue_ = &nic->sender(engine).queue(number);
            try {
                life->announce(number);
            } catch (...) {
                leave();
                throw;
            }
            life->began(*queue_);
        });
    }
    ~state()
    {
        stop();
        drain();
        nic->engines().between_all_turns([&] { leave(); });
    }
    /// Between all turns: the NIC forgets the queue.
    void leave()
    {
        life->end();
        sender().remove(number);
    }
    /// Between two turns: that of the queue's engine.
    nic::sender& sender() const { return nic->sender(*home); }

    /// Nothing more is handed to the port; what has not been is flushed.
    void stop() const
    {
        nic->engines().between_turns_at(*home, [&] { queue().stop(); });
    }
    /// Whether the port has given back what it took, after a second at most.
    bool drain() const
    {
        return nic->engines().keep_trying(
            [&] {
                bool drained = false;
                nic->engines().between_turns_at(*home, [&] { drained = sender().drained(number); });
                return drained;
            },
            std::chrono::seconds(1));
    }
    class pausing;
    void move_to(unsigned engine);
    /// The queue object stays where it is until the destructor removes it; its counters and events may be read at any
    /// time.
    nic::tx_queue& queue() const { return *queue_; }

    std::shared_ptr<nic::soft_port> nic;
    device where;
    eth_txq_options options;
    const std::shared_ptr<nic::home> home = std::make_shared<nic::home>(0);
    std::shared_ptr<detail::eth_txq_life> life;
    std::uint32_t number = 0;
    nic::tx_queue* queue_ = nullptr;
    std::atomic<bool> attached{false};
    std::mutex changing; ///< held by who resets or moves the queue
};

/// While it lives the queue executes nothing, unless it gets to another engine.
class eth_txq::state::pausing {
 public:
    explicit pausing(const state& queue) : queue_(queue)
    {
        queue_.nic->engines().between_turns_at(*queue_.home, [&] { queue_.sender().pause(queue_.number); });
    }
    pausing(const pausing&) = delete;
    pausing& operator=(const pausing&) = delete;
    ~pausing()
    {
        nic::engines& engines = queue_.nic->engines();
        engines.between_turns_at(*queue_.home, [&] { queue_.sender().resume(queue_.number); });
        if (!engines.have_threads()) // what kernels have pushed meanwhile: they need not push again
            engines.engine(*queue_.home).send_turn(queue_.number);
    }

 private:
    const state& queue_;
};

void eth_txq::state::move_to(unsigned engine)
{
    nic::engines& engines = nic->engines();
    nic::home& home = *this->home;
    const pausing pausing(*this);
    auto try_once = [&] {
        bool settled = false;
        engines.between_turns_at(home, [&] { settled = sender().settled(number); });
        if (!settled)
            return false;
        engines.between_all_turns([&] {
            settled = sender().settled(number); // a wait may have ended since, and its frames have gone
            if (settled) {
                engines.move_tx(number, home, engine);
                home = engine;
            }
        });
        return settled;
    };
    if (!engines.keep_trying(try_once, std::chrono::seconds(1)))
        throw error(
            errc::in_use,
            fmt::format(
                "weftio: eth_txq {}: port {} still holds frames of this queue after 1 s; try again when they have gone",
                number, nic->spec()));
}

eth_txq::eth_txq(const port& port, const device& device, eth_txq_options options)
{
    check(options);
    port.backend().require_sending();
    if (options.engine >= 0)
        port.backend().require_engine("eth_txq", static_cast<unsigned>(options.engine));
    state_ = detail::make_shared_here<state>(port, device, options);
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
        state_->stop(); // a progress_engine may keep the rest
}

weftio_dev_eth_txq* eth_txq::handle() const noexcept
{
    return state_->life->handle();
}

weftio_dev_control* eth_txq::control() const noexcept
{
    return state_->life->control();
}

std::uint32_t eth_txq::entries() const noexcept
{
    return state_->options.entries;
}

std::uint32_t eth_txq::number() const noexcept
{
    return state_->number;
}

unsigned eth_txq::engine() const noexcept
{
    return *state_->home;
}

void eth_txq::move_to(unsigned engine)
{
    state_->nic->require_engine("eth_txq", engine);
    std::scoped_lock one_at_a_time(state_->changing);
    if (engine != this->engine())
        state_->move_to(engine);
}

const std::string& eth_txq::clock_name() const noexcept
{
    return state_->options.clock;
}

eth_txq_counters eth_txq::counters() const
{
    nic::tx_queue& queue = state_->queue();
    return {.enqueued = queue.enqueued.value(),
            .sent = queue.sent.value(),
            .sent_bytes = queue.sent_bytes.value(),
            .waited = queue.waited.value(),
            .failed = queue.failed_entries.value(),
            .flushed = queue.flushed.value(),
            .copied_bytes = queue.copied_bytes.value(),
            .tx_pp_timestamp_past_errors = queue.schedule().past_errors.value(),
            .tx_pp_timestamp_future_errors = queue.schedule().future_errors.value(),
            .tx_pp_timestamp_order_errors = queue.schedule().order_errors.value(),
            .lost_events = queue.events().lost.value()};
}

schedule_error eth_txq::schedule() const
{
    const nic::lateness& error = state_->queue().schedule().error;
    return {.count = error.count(),
            .p50_ns = error.quantile_ns(0.5),
            .p99_ns = error.quantile_ns(0.99),
            .p999_ns = error.quantile_ns(0.999),
            .max_ns = error.max_ns()};
}

bool eth_txq::failed() const
{
    bool failed = false;
    state_->nic->engines().between_turns_at(*state_->home, [&] { failed = state_->queue().failed(); });
    return failed;
}

void eth_txq::reset()
{
    if (state_->nic->gone())
        throw error(
            errc::closed,
            fmt::format(
                "weftio: eth_txq {}: port {} is gone, its device or its interface was removed; close the queue and the "
                "port, and open them again",
                number(), state_->nic->spec()));
    std::scoped_lock one_at_a_time(state_->changing);
    state_->stop();
    if (!state_->drain())
        throw error(
            errc::in_use,
            fmt::format(
                "weftio: eth_txq {}: port {} still holds frames of this queue after 1 s; try again, or close the "
                "queue",
                number(), state_->nic->spec()));
    auto next =
        detail::make_shared_here<detail::eth_txq_life>(state_->nic, state_->home, state_->where, state_->options);
    auto ring = next->begin();
    next->announce(number()); // what can fail comes first
    state_->nic->engines().between_turns_at(*state_->home, [&] {
        state_->life->end();
        state_->sender().restart(number(), ring);
        next->began(state_->queue());
    });
    state_->life = std::move(next);
}

std::shared_ptr<detail::lifeline> eth_txq::line() const noexcept
{
    return state_->life;
}

struct progress_engine::attachment {
    struct hold {
        std::shared_ptr<eth_txq::state> queue;
        ~hold()
        {
            if (queue)
                queue->attached.store(false);
        }
    };

    std::unique_ptr<hold> held;
    callbacks call;

    unsigned report();
};

progress_engine::progress_engine() = default;
progress_engine::progress_engine(progress_engine&&) noexcept = default;
progress_engine& progress_engine::operator=(progress_engine&&) noexcept = default;
progress_engine::~progress_engine() = default;

void progress_engine::attach(const eth_txq& queue, callbacks callbacks)
{
    auto held = std::make_unique<attachment::hold>();
    if (queue.state_->attached.exchange(true))
        throw error(errc::in_use,
                    fmt::format("weftio: eth_txq {}: already attached to a progress_engine; a queue belongs to one",
                                queue.number()));
    held->queue = queue.state_;
    attached_.push_back({std::move(held), std::move(callbacks)});
}

namespace {

/// The reason, with the values that belong to it.
std::string words_of(const nic::send_event& event, const nic::soft_port& nic)
{
    constexpr unsigned ethernet_bytes = 14;
    const char* reason = to_string(event.reason);
    const unsigned mtu = nic.device().mtu();
    switch (event.reason) {
        case nic::refusal::too_long:
            return fmt::format(
                "{}: it has at least {} bytes, and {} are the most with an MTU of {}, 4 more with each of up to "
                "two VLAN tags; send shorter frames, or raise the MTU of both ends of the link",
                reason, event.detail, mtu + ethernet_bytes, mtu);
        case nic::refusal::link_down:
            return fmt::format(
                "{}: the interface of port {} is down, or its peer is; bring them up with \"ip link set NAME "
                "up\", then reset the queue",
                reason, nic.spec());
        case nic::refusal::file_failed:
            return fmt::format("{}: {}; the file of port {} ends with the last frame that was sent", reason,
                               std::strerror(static_cast<int>(event.detail)), nic.spec());
        default: return reason;
    }
}

} // namespace

unsigned progress_engine::attachment::report()
{
    unsigned seen = 0;
    const std::uint32_t number = held->queue->number;
    for (nic::send_event event; held->queue->queue().events().get(event); ++seen) {
        if (event.reason == nic::refusal::none) {
            if (call.on_sent)
                call.on_sent({.queue = number, .position = event.position, .time_ns = event.time_ns});
        } else if (call.on_error) {
            call.on_error({.queue = number,
                           .position = event.position,
                           .syndrome = nic::syndrome_of(event.reason),
                           .text = fmt::format("weftio: eth_txq {}: entry at position {} failed: {}", number,
                                               event.position, words_of(event, *held->queue->nic)),
                           .time_ns = event.time_ns});
        }
    }
    return seen;
}

unsigned progress_engine::progress()
{
    unsigned seen = 0;
    for (auto each = attached_.begin(); each != attached_.end();) {
        bool queue_is_gone = each->held->queue.use_count() == 1;
        seen += each->report();
        each = queue_is_gone ? attached_.erase(each) : std::next(each);
    }
    return seen;
}

} // namespace weftio
