#include "weftio/eth_rxq.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "nic/soft_port.hpp"
#include "weftio/device/wqe.h"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t fewest_packets = 64, most_packets = 32768;
constexpr std::uint32_t smallest_slot = 64, largest_slot = 16384;

void check(const eth_rxq_options& options)
{
    if (!std::has_single_bit(options.packets) || options.packets < fewest_packets || options.packets > most_packets)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_rxq: packets is {}; it must be a power of two from {} to {}",
                                                        options.packets, fewest_packets, most_packets));
    if (options.max_packet_bytes < smallest_slot || options.max_packet_bytes > largest_slot)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_rxq: max_packet_bytes is {}; a slot has {} to {} bytes",
                                                        options.max_packet_bytes, smallest_slot, largest_slot));
}

/// What lies in front of the slots: completions, receive entries, the doorbell record on a line of its own.
struct ring_layout {
    std::size_t entries, dbrec, bytes;

    explicit ring_layout(std::size_t packets)
        : entries(packets * sizeof(weftio_cqe)), dbrec(entries + packets * sizeof(weftio_wqe_data_segment)), bytes(dbrec + 64)
    {
    }
};

template <class T>
T* at(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace

struct eth_rxq::state {
    state(const port& port, const device& device, const eth_rxq_options& options);
    ~state();

    void fresh_ring() const;
    void fill_handle();

    std::shared_ptr<nic::soft_port> nic;
    device where;
    eth_rxq_options options;
    std::uint32_t stride_bytes;
    ring_layout layout;
    memory ring, slots, control, handle;
    std::uint32_t key = 0, number = 0;
    const nic::rx_queue* queue = nullptr; ///< stays where it is until the destructor removes it
};

eth_rxq::state::state(const port& port, const device& device, const eth_rxq_options& wanted)
    : nic(port.share()), where(device), options(wanted), stride_bytes((wanted.max_packet_bytes + 63) / 64 * 64), layout(wanted.packets),
      ring(device.allocate(layout.bytes, memory_kind::cpu_device)),
      slots(device.allocate(std::size_t{wanted.packets} * stride_bytes, memory_kind::cpu_device)),
      control(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
      handle(device.allocate(sizeof(weftio_dev_eth_rxq), memory_kind::device))
{
    nic->engine().between_turns([&] {
        key = nic->keys().add({.cpu = static_cast<std::byte*>(slots.cpu_address()),
                               .device_base = reinterpret_cast<std::uint64_t>(slots.device_address()),
                               .bytes = slots.bytes(),
                               .rights = {},
                               .owner = 0});
        fresh_ring();
        number = nic->receiver().add({.completions = at<weftio_cqe>(ring.cpu_address(), 0),
                                      .dbrec = at<std::uint32_t>(ring.cpu_address(), layout.dbrec),
                                      .slots = static_cast<std::byte*>(slots.cpu_address()),
                                      .depth = options.packets,
                                      .stride_bytes = stride_bytes,
                                      .number = 0,
                                      .verify_checksums = options.verify_checksums});
        queue = &nic->receiver().queue(number);
    });
    fill_handle();
}

eth_rxq::state::~state()
{
    nic->engine().between_turns([&] {
        nic->receiver().remove(number);
        nic->keys().remove(key);
    });
}

/// Completions never written, entry k posted for slot k, and the record says so.
void eth_rxq::state::fresh_ring() const
{
    auto* completions = at<weftio_cqe>(ring.cpu_address(), 0);
    auto* entries = at<weftio_wqe_data_segment>(ring.cpu_address(), layout.entries);
    auto base = reinterpret_cast<std::uint64_t>(slots.device_address());
    for (std::uint32_t slot = 0; slot < options.packets; ++slot) {
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        entries[slot] = {.byte_count_be = weftio_swap32(stride_bytes),
                         .lkey_be = weftio_swap32(key),
                         .address_be = weftio_swap64(base + std::uint64_t{slot} * stride_bytes)};
    }
    weftio_dev_post_receive(at<std::uint32_t>(ring.cpu_address(), layout.dbrec), options.packets);
}

void eth_rxq::state::fill_handle()
{
    weftio_dev_eth_rxq made{};
    made.completions = {.entries = at<weftio_cqe>(ring.device_address(), 0),
                         .mask = options.packets - 1,
                         .log_depth = static_cast<std::uint32_t>(std::countr_zero(options.packets))};
    made.dbrec = at<std::uint32_t>(ring.device_address(), layout.dbrec);
    made.control = static_cast<weftio_dev_control*>(control.device_address());
    made.clock = where.clock();
    made.slots = static_cast<std::uint8_t*>(slots.device_address());
    made.stride_bytes = stride_bytes;
    made.lkey_be = weftio_swap32(key);
    made.queue = number;
    if (!nic->engine().has_thread()) {
        void (*turn)(void*) = [](void* engine) { static_cast<nic::engine*>(engine)->turn(); };
        made.turn = reinterpret_cast<std::uint64_t>(turn);
        made.turn_context = reinterpret_cast<std::uint64_t>(&nic->engine());
    }
    handle.upload(&made, sizeof made);
}

eth_rxq::eth_rxq(const port& port, const device& device, eth_rxq_options options)
{
    check(options);
    state_ = std::make_unique<state>(port, device, options);
}

eth_rxq::eth_rxq(eth_rxq&&) noexcept = default;
eth_rxq& eth_rxq::operator=(eth_rxq&&) noexcept = default;
eth_rxq::~eth_rxq() = default;

weftio_dev_eth_rxq* eth_rxq::handle() const noexcept
{
    return static_cast<weftio_dev_eth_rxq*>(state_->handle.device_address());
}

weftio_dev_control* eth_rxq::control() const noexcept
{
    return static_cast<weftio_dev_control*>(state_->control.cpu_address());
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
            .out_of_buffer = queue.out_of_buffer.value(),
            .too_long = queue.too_long.value()};
}

std::uint32_t eth_rxq::number() const noexcept
{
    return state_->number;
}

const std::shared_ptr<nic::soft_port>& eth_rxq::port_backend() const noexcept
{
    return state_->nic;
}

} // namespace weftio
