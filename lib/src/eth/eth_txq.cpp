#include "weftio/eth_txq.hpp"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <thread>

#include "core/clock.hpp"
#include "nic/soft_port.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t fewest_entries = 64, most_entries = 32768;

void check(const eth_txq_options& options)
{
    if (!std::has_single_bit(options.entries) || options.entries < fewest_entries || options.entries > most_entries)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_txq: entries is {}; it must be a power of two from {} to {}",
                                                        options.entries, fewest_entries, most_entries));
    if (options.clock != detail::utc_clock::name)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_txq: clock \"{}\" is not the port's; this port schedules by \"{}\", take "
                                                        "timestamps from utc_now_ns()",
                                                        options.clock, detail::utc_clock::name));
}

/// Entries, then marks of filled entries, then completion, doorbell record and doorbell on lines of their own.
struct ring_layout {
    std::size_t filled, completion, dbrec, doorbell, bytes;

    explicit ring_layout(std::size_t entries)
        : filled(entries * WEFTIO_WQE_BLOCK_BYTES), completion(filled + entries * sizeof(std::uint32_t)), dbrec(completion + 64),
          doorbell(dbrec + 64), bytes(doorbell + 64)
    {
    }
};

template <class T>
T* at(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace

struct eth_txq::state {
    state(const port& port, const device& device, const eth_txq_options& options);
    ~state();

    void fresh_ring() const;
    void fill_handle();
    /// The queue object stays where it is until the destructor removes it; its counters and events may be read at any time.
    nic::tx_queue& queue() const { return *queue_; }
    template <class Wanted>
    bool wait_between_turns(Wanted wanted) const;

    std::shared_ptr<nic::soft_port> nic;
    device where;
    eth_txq_options options;
    ring_layout layout;
    memory ring, control, handle;
    std::uint32_t number = 0;
    nic::tx_queue* queue_ = nullptr;
    std::atomic<bool> attached{false};
};

eth_txq::state::state(const port& port, const device& device, const eth_txq_options& wanted)
    : nic(port.share()), where(device), options(wanted), layout(wanted.entries),
      ring(device.allocate(layout.bytes, memory_kind::cpu_device)),
      control(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
      handle(device.allocate(sizeof(weftio_dev_eth_txq), memory_kind::device))
{
    fresh_ring();
    nic->engine().between_turns([&] {
        void* base = ring.cpu_address();
        number = nic->sender().add({.entries = {.words = at<std::uint32_t>(base, 0), .depth = options.entries, .queue = 0},
                                    .dbrec = at<std::uint32_t>(base, layout.dbrec),
                                    .doorbell = at<std::uint64_t>(base, layout.doorbell),
                                    .completion = at<weftio_cqe>(base, layout.completion),
                                    .horizon_ns = options.horizon_ns});
        queue_ = &nic->sender().queue(number);
    });
    fill_handle();
}

eth_txq::state::~state()
{
    nic->engine().between_turns([&] { queue().stop(); });
    wait_between_turns([&] { return nic->sender().drained(number); });
    nic->engine().between_turns([&] { nic->sender().remove(number); });
}

/// Nothing written, nothing completed: a completion that says the entry before the first is done.
void eth_txq::state::fresh_ring() const
{
    void* base = ring.cpu_address();
    std::fill_n(at<std::byte>(base, 0), layout.bytes, std::byte{0});
    for (std::uint32_t slot = 0; slot < options.entries; ++slot) // no entry carries the index that its slot would first have
        *at<std::uint32_t>(base, std::size_t{slot} * WEFTIO_WQE_BLOCK_BYTES) = weftio_swap32((slot + options.entries) << 8 & 0xffff00u);
    weftio_store_release_sys_u32(&at<weftio_cqe>(base, layout.completion)->publication,
                                 weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0));
}

void eth_txq::state::fill_handle()
{
    void* base = ring.device_address();
    weftio_dev_eth_txq made{};
    made.ring.segments = at<std::uint32_t>(base, 0);
    made.ring.dbrec = at<std::uint32_t>(base, layout.dbrec);
    made.ring.doorbell = at<std::uint64_t>(base, layout.doorbell);
    made.ring.completion = at<weftio_cqe>(base, layout.completion);
    made.ring.filled = at<std::uint32_t>(base, layout.filled);
    made.ring.mask = options.entries - 1;
    made.ring.queue = number;
    made.control = static_cast<weftio_dev_control*>(control.device_address());
    made.clock = where.clock();
    if (!nic->engine().has_thread()) {
        void (*turn)(void*) = [](void* engine) { static_cast<nic::engine*>(engine)->turn(); };
        made.turn = reinterpret_cast<std::uint64_t>(turn);
        made.turn_context = reinterpret_cast<std::uint64_t>(&nic->engine());
    }
    handle.upload(&made, sizeof made);
}

/// Looks again and again, at most a second; the engine works in between.
template <class Wanted>
bool eth_txq::state::wait_between_turns(Wanted wanted) const
{
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1); !nic->engine().between_turns(wanted);) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

eth_txq::eth_txq(const port& port, const device& device, eth_txq_options options)
{
    check(options);
    state_ = std::make_shared<state>(port, device, options);
}

eth_txq::eth_txq(eth_txq&&) noexcept = default;
eth_txq& eth_txq::operator=(eth_txq&&) noexcept = default;
eth_txq::~eth_txq() = default;

weftio_dev_eth_txq* eth_txq::handle() const noexcept
{
    return static_cast<weftio_dev_eth_txq*>(state_->handle.device_address());
}

weftio_dev_control* eth_txq::control() const noexcept
{
    return static_cast<weftio_dev_control*>(state_->control.cpu_address());
}

std::uint32_t eth_txq::entries() const noexcept
{
    return state_->options.entries;
}

std::uint32_t eth_txq::number() const noexcept
{
    return state_->number;
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
    return state_->nic->engine().between_turns([&] { return state_->queue().failed(); });
}

void eth_txq::reset()
{
    nic::engine& engine = state_->nic->engine();
    engine.between_turns([&] { state_->queue().stop(); });
    if (!state_->wait_between_turns([&] { return state_->nic->sender().drained(state_->number); }))
        throw error(errc::in_use, fmt::format("weftio: eth_txq {}: port {} still holds frames of this queue after 1 s; try again, or close the "
                                              "queue",
                                              number(), state_->nic->spec()));
    engine.between_turns([&] {
        state_->fresh_ring();
        state_->queue().restart();
    });
    state_->fill_handle();
}

struct progress_engine::attachment {
    std::shared_ptr<eth_txq::state> queue;
    callbacks call;
};

progress_engine::progress_engine() = default;
progress_engine::progress_engine(progress_engine&&) noexcept = default;
progress_engine& progress_engine::operator=(progress_engine&&) noexcept = default;

progress_engine::~progress_engine()
{
    for (attachment& each : attached_)
        each.queue->attached.store(false);
}

void progress_engine::attach(const eth_txq& queue, callbacks callbacks)
{
    if (queue.state_->attached.exchange(true))
        throw error(errc::in_use, fmt::format("weftio: eth_txq {}: already attached to a progress_engine; a queue belongs to one", queue.number()));
    attached_.push_back({queue.state_, std::move(callbacks)});
}

unsigned progress_engine::progress()
{
    unsigned seen = 0;
    for (attachment& each : attached_) {
        std::uint32_t number = each.queue->number;
        for (nic::send_event event; each.queue->queue().events().get(event); ++seen) {
            if (event.reason == nic::refusal::none) {
                if (each.call.on_sent)
                    each.call.on_sent({.queue = number, .position = event.position, .time_ns = event.time_ns});
            } else if (each.call.on_error) {
                each.call.on_error({.queue = number,
                                    .position = event.position,
                                    .syndrome = nic::syndrome_of(event.reason),
                                    .text = fmt::format("weftio: eth_txq {}: entry at position {} failed: {}", number, event.position,
                                                        to_string(event.reason)),
                                    .time_ns = event.time_ns});
            }
        }
    }
    return seen;
}

} // namespace weftio
