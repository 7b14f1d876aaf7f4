#include "weftio/eth_rxq.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>

#include "nic/soft/soft_port.hpp"
#include "weftio/device/wqe.h"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t fewest_packets = 64, most_packets = 32768;
constexpr std::uint32_t smallest_slot = 64, largest_slot = 16384;

void check(const eth_rxq_options& options)
{
    if (!std::has_single_bit(options.packets) || options.packets < fewest_packets || options.packets > most_packets)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_rxq: packets is {}; it must be a power of two from {} to {}",
                                options.packets, fewest_packets, most_packets));
    if (options.max_packet_bytes < smallest_slot || options.max_packet_bytes > largest_slot)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_rxq: max_packet_bytes is {}; a slot has {} to {} bytes",
                                options.max_packet_bytes, smallest_slot, largest_slot));
}

/// The next odd number of cache lines: first lines of slots that are an even number apart share half the sets of a
/// cache, or fewer, while the others lie idle.
constexpr std::uint32_t odd_lines(std::uint32_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

/// What lies in front of the slots: completions, receive entries, the doorbell record on a line of its own.
struct ring_layout {
    std::size_t entries, dbrec, bytes;

    explicit ring_layout(std::size_t packets)
        : entries(packets * sizeof(weftio_cqe)), dbrec(entries + packets * sizeof(weftio_wqe_data_segment)),
          bytes(dbrec + 64)
    {}
};

template <class T>
T* at(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace

namespace {

/// One life of a queue: its memory, which a kernel keeps while it runs, and whether the NIC still uses it.
class eth_rxq_life final : public detail::lifeline {
 public:
    /// @param home  of the queue, the same for all its lives
    eth_rxq_life(std::shared_ptr<nic::soft_port> nic, std::shared_ptr<const nic::home> home, const device& device,
                 const eth_rxq_options& options);
    /// Packets may be on their way out again, from where they lie.
    ~eth_rxq_life() override { nic_->let_go(std::move(slots_place_)); }

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const detail::device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Between turns of all engines, like began() and end(): takes a key for the slots, posts all of them, gives what
    /// the NIC needs.
    nic::rx_ring begin();
    /// Tells kernels where everything is, as queue `number`. Throws what an upload to the device throws.
    void announce(std::uint32_t number);
    /// The NIC uses this memory from now on.
    void began(nic::rx_queue& queue) noexcept { queue_ = &queue; }
    /// The NIC is done with it.
    void end();
    weftio_dev_eth_rxq* handle() const noexcept { return static_cast<weftio_dev_eth_rxq*>(handle_.device_address()); }

 private:
    /// The slots as kernels see them.
    void* seen() const noexcept { return landed_ ? landed_.device_address() : slots_.device_address(); }
    void fresh_ring() const;
    void fill_handle();

    std::shared_ptr<nic::soft_port> nic_;
    std::shared_ptr<const nic::home> home_;
    device where_;
    eth_rxq_options options_;
    std::uint32_t slot_bytes_, stride_bytes_;
    ring_layout layout_;
    memory ring_, slots_; ///< slots as the NIC fills them
    nic::memory_place slots_place_{nic_->take_up(slots_.block())};
    memory landed_; ///< where kernels read them, when that is elsewhere
    memory control_, handle_;
    nic::staging_target staged_;
    std::uint32_t key_ = 0, number_ = 0;
    nic::rx_queue* queue_ = nullptr; ///< while the NIC uses this life; changes between two turns only
};

eth_rxq_life::eth_rxq_life(std::shared_ptr<nic::soft_port> nic, std::shared_ptr<const nic::home> home,
                           const device& device, const eth_rxq_options& options)
    : nic_(std::move(nic)), home_(std::move(home)), where_(device), options_(options),
      slot_bytes_((options.max_packet_bytes + 63) / 64 * 64),
      stride_bytes_(odd_lines(nic::rx_ring::headroom_bytes + slot_bytes_)), layout_(options.packets),
      ring_(device.allocate(layout_.bytes, memory_kind::cpu_device)),
      slots_(device.allocate(std::size_t{options.packets} * stride_bytes_, memory_kind::cpu_device)),
      control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
      handle_(device.allocate(sizeof(weftio_dev_eth_rxq), memory_kind::device))
{
    if (options.buffers == memory_kind::cpu_device)
        return;
    landed_ = device.allocate(slots_.bytes(), options.buffers);
    staged_ = {.copies = device.make_copy_queue(),
               .slots = at<std::byte>(landed_.device_address(), nic::rx_ring::headroom_bytes)};
}

nic::rx_ring eth_rxq_life::begin()
{
    if (!landed_) // otherwise the NIC does not have what a kernel sees in a slot, and must not send it
        key_ = nic_->keys().add({.cpu = static_cast<std::byte*>(slots_.cpu_address()),
                                 .device_base = reinterpret_cast<std::uint64_t>(slots_.device_address()),
                                 .bytes = slots_.bytes(),
                                 .rights = {},
                                 .owner = 0,
                                 .lendable = slots_place_.front().lendable});
    fresh_ring();
    return {.completions = at<weftio_cqe>(ring_.cpu_address(), 0),
            .dbrec = at<std::uint32_t>(ring_.cpu_address(), layout_.dbrec),
            .slots = static_cast<std::byte*>(slots_.cpu_address()) + nic::rx_ring::headroom_bytes,
            .depth = options_.packets,
            .stride_bytes = stride_bytes_,
            .slot_bytes = slot_bytes_,
            .cut_bytes = nic_->device().cut_bytes(),
            .number = 0,
            .verify_checksums = options_.verify_checksums,
            .staged = staged_};
}

void eth_rxq_life::announce(std::uint32_t number)
{
    number_ = number;
    fill_handle();
}

void eth_rxq_life::end()
{
    queue_ = nullptr;
    if (key_)
        nic_->keys().remove(key_);
}

std::string eth_rxq_life::describe() const
{
    std::string text = fmt::format("eth_rxq {} on {}", number_, nic_->spec());
    nic_->engines().between_turns_at(*home_, [&] {
        if (queue_)
            text += fmt::format(": {} slots, {} delivered, {} flushed, {} out_of_buffer{}", options_.packets,
                                queue_->delivered.value(), queue_->flushed.value(), queue_->all_out_of_buffer(),
                                queue_->stopped() ? ", stopped" : "");
        else
            text += ": reset or closed since";
    });
    return text;
}

void eth_rxq_life::quiesce()
{
    nic_->engines().between_turns_at(*home_, [&] {
        if (queue_)
            queue_->stop();
    });
}

/// Completions never written, entry k posted for slot k, and the record says so.
void eth_rxq_life::fresh_ring() const
{
    auto* completions = at<weftio_cqe>(ring_.cpu_address(), 0);
    auto* entries = at<weftio_wqe_data_segment>(ring_.cpu_address(), layout_.entries);
    auto base = reinterpret_cast<std::uint64_t>(at<std::byte>(seen(), nic::rx_ring::headroom_bytes));
    for (std::uint32_t slot = 0; slot < options_.packets; ++slot) {
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        entries[slot] = {.byte_count_be = weftio_swap32(slot_bytes_),
                         .lkey_be = weftio_swap32(key_),
                         .address_be = weftio_swap64(base + std::uint64_t{slot} * stride_bytes_)};
    }
    weftio_dev_post_receive(at<std::uint32_t>(ring_.cpu_address(), layout_.dbrec), options_.packets);
}

void eth_rxq_life::fill_handle()
{
    weftio_dev_eth_rxq made{};
    made.completions = {.entries = at<weftio_cqe>(ring_.device_address(), 0),
                        .mask = options_.packets - 1,
                        .log_depth = static_cast<std::uint32_t>(std::countr_zero(options_.packets))};
    made.dbrec = at<std::uint32_t>(ring_.device_address(), layout_.dbrec);
    made.control = static_cast<weftio_dev_control*>(control_.device_address());
    made.clock = where_.clock();
    made.slots = at<std::uint8_t>(seen(), nic::rx_ring::headroom_bytes);
    made.slot_bytes = slot_bytes_;
    made.stride_bytes = stride_bytes_;
    made.lkey_be = weftio_swap32(key_);
    made.queue = number_;
    if (!nic_->engines().have_threads()) {
        void (*turn)(void*) = [](void* life) {
            auto* self = static_cast<eth_rxq_life*>(life);
            self->nic_->engine(self->home_->load(std::memory_order_relaxed)).turn();
        };
        made.turn = reinterpret_cast<std::uint64_t>(turn);
        made.turn_context = reinterpret_cast<std::uint64_t>(this);
    }
    handle_.upload(&made, sizeof made);
}

} // namespace

struct eth_rxq::state {
    state(const port& port, const device& device, const eth_rxq_options& wanted)
        : nic(port.share()), where(device), options(wanted),
          life(detail::make_shared_here<eth_rxq_life>(nic, home, where, options))
    {
        nic::engines& engines = nic->engines();
        engines.between_all_turns([&] {
            const unsigned engine = options.engine < 0 ? engines.emptiest_rx() : static_cast<unsigned>(options.engine);
            home->store(engine, std::memory_order_relaxed);
            nic::rx_ring ring = life->begin();
            try {
                number = engines.add_rx(engine, ring);
                queue = &nic->receiver(engine).queue(number);
                life->announce(number);
            } catch (...) {
                leave();
                throw;
            }
            life->began(*queue);
        });
    }
    ~state()
    {
        if (nic->may_end())
            nic->engines().between_all_turns([&] { leave(); });
    }
    /// Between all turns: the NIC forgets the queue and its key.
    void leave() noexcept
    {
        life->end();
        if (queue)
            nic->engines().remove_rx(*home, number);
    }

    std::shared_ptr<nic::soft_port> nic;
    device where;
    eth_rxq_options options;
    const std::shared_ptr<nic::home> home = std::make_shared<nic::home>(0);
    std::shared_ptr<eth_rxq_life> life;
    std::uint32_t number = 0;
    std::mutex changing;            ///< held by who resets or moves the queue
    nic::rx_queue* queue = nullptr; ///< stays where it is until the destructor removes it
};

eth_rxq::eth_rxq(const port& port, const device& device, eth_rxq_options options)
{
    check(options);
    if (options.engine >= 0)
        port.backend().require_engine("eth_rxq", static_cast<unsigned>(options.engine));
    state_ = std::make_unique<state>(port, device, options);
}

eth_rxq::eth_rxq(eth_rxq&&) noexcept = default;
eth_rxq& eth_rxq::operator=(eth_rxq&&) noexcept = default;
eth_rxq::~eth_rxq() = default;

weftio_dev_eth_rxq* eth_rxq::handle() const noexcept
{
    return state_->life->handle();
}

weftio_dev_control* eth_rxq::control() const noexcept
{
    return state_->life->control();
}

std::uint32_t eth_rxq::packets() const noexcept
{
    return state_->options.packets;
}

eth_rxq_counters eth_rxq::counters() const
{
    // Not between two turns: a program that polls its counters would keep the engine waiting.
    const nic::rx_queue& queue = *state_->queue;
    return {.delivered = queue.delivered.value(),
            .delivered_bytes = queue.delivered_bytes.value(),
            .out_of_buffer = queue.all_out_of_buffer(),
            .too_long = queue.too_long.value(),
            .flushed = queue.flushed.value()};
}

void eth_rxq::reset()
{
    std::scoped_lock one_at_a_time(state_->changing);
    auto next = detail::make_shared_here<eth_rxq_life>(state_->nic, state_->home, state_->where, state_->options);
    state_->nic->engines().between_all_turns([&] {
        const unsigned engine = *state_->home;
        nic::rx_ring ring = next->begin();
        try {
            next->announce(state_->number); // what can fail comes first
            state_->nic->receiver(engine).restart(state_->number, ring);
        } catch (...) {
            next->end();
            throw;
        }
        state_->life->end();
        next->began(*state_->queue);
    });
    state_->life = std::move(next);
}

std::shared_ptr<detail::lifeline> eth_rxq::line() const noexcept
{
    return state_->life;
}

std::uint32_t eth_rxq::number() const noexcept
{
    return state_->number;
}

unsigned eth_rxq::engine() const noexcept
{
    return *state_->home;
}

void eth_rxq::move_to(unsigned engine)
{
    nic::engines& engines = state_->nic->engines();
    state_->nic->require_engine("eth_rxq", engine);
    std::scoped_lock one_at_a_time(state_->changing);
    nic::home& home = *state_->home;
    auto try_once = [&] {
        bool moved = home == engine;
        if (!moved)
            engines.between_all_turns([&] {
                moved = engines.move_rx(number(), home, engine);
                if (moved)
                    home = engine;
            });
        return moved;
    };
    if (!engines.keep_trying(try_once, std::chrono::seconds(1)))
        throw error(errc::in_use, fmt::format("weftio: eth_rxq {}: engine {} of port {} has had no room for 1 s for "
                                              "packets on their way to the queue; let "
                                              "kernels release packets of the queues there, and try again",
                                              number(), engine, state_->nic->spec()));
}

const std::shared_ptr<nic::soft_port>& eth_rxq::port_backend() const noexcept
{
    return state_->nic;
}

} // namespace weftio
