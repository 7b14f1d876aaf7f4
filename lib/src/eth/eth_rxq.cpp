#include "weftio/eth_rxq.hpp"

#include <fmt/format.h>

#include <bit>

#include "memory/named_region.hpp"
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

/// Rounds up to an odd number of cache lines. When slots are an even number of lines apart, their first lines share
/// half the sets of a cache, or fewer, while the other sets lie idle.
constexpr std::uint32_t odd_lines(std::uint32_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

/// Whether entries may name the slots. When packets go through staging, kernels see copies of the slots that the NIC
/// does not have, so entries must not name them.
detail::region_use use_of_slots(const eth_rxq_options& options)
{
    return options.buffers == memory_kind::cpu_device ? detail::region_use::entries : detail::region_use::own;
}

/// Offsets in the memory of a receive ring: completions, receive entries, then the doorbell record on a cache line of
/// its own (docs/formats.md).
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

/// One life of a receive queue, from one reset to the next: the memory of its ring and slots, which a running kernel
/// keeps alive (a lifeline).
class eth_rxq_life final : public detail::lifeline {
 public:
    eth_rxq_life(std::shared_ptr<nic::backend> nic, const device& device, const eth_rxq_options& options);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const detail::device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Initializes the ring: all slots are posted. Returns what the NIC needs of it.
    nic::rx_ring begin() const;
    /// Fills the handle that kernels read. @param ring_number  number of this ring at `queue`
    /// Throws what an upload to the device throws.
    void belong_to(std::shared_ptr<nic::receive_queue> queue, std::uint32_t ring_number);
    /// Ends this life, because the queue has another ring or is closed: no entry may name the slots any more.
    void end() noexcept { region_.revoke(); }
    weftio_dev_eth_rxq* handle() const noexcept { return static_cast<weftio_dev_eth_rxq*>(handle_.device_address()); }

 private:
    /// Device address of the memory in which kernels read packets.
    void* seen() const noexcept { return landed_ ? landed_.device_address() : slots_.device_address(); }
    void fresh_ring() const;
    void fill_handle();

    const std::shared_ptr<nic::backend> nic_;
    device where_;
    eth_rxq_options options_;
    std::uint32_t slot_bytes_, stride_bytes_;
    ring_layout layout_;
    memory ring_, slots_; ///< the slots that the NIC fills
    memory landed_;       ///< copies of the slots in device memory, when packets go through staging
    memory control_, handle_;
    nic::staging_target staged_;
    detail::named_region region_; ///< region of slots_, because kernels may send packets from their slots
    std::shared_ptr<nic::receive_queue> queue_;
    std::uint32_t ring_number_ = 0; ///< number of ring_ at queue_
};

eth_rxq_life::eth_rxq_life(std::shared_ptr<nic::backend> nic, const device& device, const eth_rxq_options& options)
    : nic_(std::move(nic)), where_(device), options_(options), slot_bytes_((options.max_packet_bytes + 63) / 64 * 64),
      stride_bytes_(odd_lines(nic::rx_ring::headroom_bytes + slot_bytes_)), layout_(options.packets),
      ring_(device.allocate(layout_.bytes, memory_kind::cpu_device)),
      slots_(device.allocate(std::size_t{options.packets} * stride_bytes_, memory_kind::cpu_device)),
      control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
      handle_(device.allocate(sizeof(weftio_dev_eth_rxq), memory_kind::device)),
      region_(slots_.block(), use_of_slots(options), {.domain = options.domain})
{
    if (options.buffers != memory_kind::cpu_device) {
        landed_ = device.allocate(slots_.bytes(), options.buffers);
        staged_ = {.copies = device.make_copy_queue(),
                   .slots = at<std::byte>(landed_.device_address(), nic::rx_ring::headroom_bytes)};
    }
    region_.register_with(*nic_);
}

nic::rx_ring eth_rxq_life::begin() const
{
    fresh_ring();
    return {.completions = at<weftio_cqe>(ring_.cpu_address(), 0),
            .dbrec = at<std::uint32_t>(ring_.cpu_address(), layout_.dbrec),
            .slots = static_cast<std::byte*>(slots_.cpu_address()) + nic::rx_ring::headroom_bytes,
            .depth = options_.packets,
            .stride_bytes = stride_bytes_,
            .slot_bytes = slot_bytes_,
            .verify_checksums = options_.verify_checksums,
            .staged = staged_};
}

void eth_rxq_life::belong_to(std::shared_ptr<nic::receive_queue> queue, std::uint32_t ring_number)
{
    queue_ = std::move(queue);
    ring_number_ = ring_number;
    fill_handle();
}

std::string eth_rxq_life::describe() const
{
    return queue_->describe(ring_number_);
}

void eth_rxq_life::quiesce()
{
    queue_->stop(ring_number_);
}

/// Initializes the ring: no completion is written, entry k posts slot k, and the doorbell record posts all entries
/// (docs/formats.md, "Completions" and "Entries").
void eth_rxq_life::fresh_ring() const
{
    auto* completions = at<weftio_cqe>(ring_.cpu_address(), 0);
    auto* entries = at<weftio_wqe_data_segment>(ring_.cpu_address(), layout_.entries);
    auto base = reinterpret_cast<std::uint64_t>(at<std::byte>(seen(), nic::rx_ring::headroom_bytes));
    for (std::uint32_t slot = 0; slot < options_.packets; ++slot) {
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        entries[slot] = {.byte_count_be = weftio_swap32(slot_bytes_),
                         .lkey_be = weftio_swap32(region_.lkey()),
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
    made.lkey_be = weftio_swap32(region_.lkey());
    made.queue = queue_->number();
    const nic::inline_turn turn = queue_->turn();
    made.turn = reinterpret_cast<std::uint64_t>(turn.turn);
    made.turn_context = reinterpret_cast<std::uint64_t>(turn.context);
    handle_.upload(&made, sizeof made);
}

} // namespace

struct eth_rxq::state {
    state(const port& port, const device& device, const eth_rxq_options& wanted)
        : nic(port.share()), where(device), options(wanted),
          life(detail::make_shared_here<eth_rxq_life>(nic, where, options)),
          queue(nic->make_receive_queue(life->begin(), options.engine))
    {
        life->belong_to(queue.share(), queue->ring_number());
    }
    ~state()
    {
        queue.close();
        life->end();
    }

    std::shared_ptr<nic::backend> nic;
    device where;
    eth_rxq_options options;
    std::shared_ptr<eth_rxq_life> life;
    nic::open_queue<nic::receive_queue> queue;
};

eth_rxq::eth_rxq(const port& port, const device& device, eth_rxq_options options)
{
    check(options);
    nic::require_engine_or_any(port.backend(), "eth_rxq", options.engine);
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
    return state_->queue->counters();
}

void eth_rxq::reset()
{
    auto next = detail::make_shared_here<eth_rxq_life>(state_->nic, state_->where, state_->options);
    // Belong_to() may throw, so it comes before anything changes.
    next->belong_to(state_->queue.share(), state_->queue->ring_number() + 1);
    state_->queue->restart(next->begin());
    state_->life->end();
    state_->life = std::move(next);
}

std::shared_ptr<detail::lifeline> eth_rxq::line() const noexcept
{
    return state_->life;
}

std::uint32_t eth_rxq::number() const noexcept
{
    return state_->queue->number();
}

unsigned eth_rxq::engine() const noexcept
{
    return state_->queue->engine();
}

void eth_rxq::move_to(unsigned engine)
{
    nic::require_engine(*state_->nic, "eth_rxq", engine);
    state_->queue->move_to(engine);
}

const std::shared_ptr<nic::backend>& eth_rxq::port_backend() const noexcept
{
    return state_->nic;
}

} // namespace weftio
