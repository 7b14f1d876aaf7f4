#include "queues/send_life.hpp"

#include <fmt/format.h>

#include <bit>

#include "queues/small_memory.hpp"
#include "weftio/error.hpp"

namespace weftio::queues {

namespace {

constexpr std::uint32_t fewest_entries = 64, most_entries = 32768;

template <class T>
T* at(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace

void require_send_entries(std::string_view who, std::uint32_t entries, std::string_view option)
{
    if (!std::has_single_bit(entries) || entries < fewest_entries || entries > most_entries)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: {} is {}; it must be a power of two from {} to {}",
                                                        who, option, entries, fewest_entries, most_entries));
}

send_life::send_life(const device& device, const send_ring_options& options)
    : where_(device), options_(options), layout_(options.entries),
      ring_(device.allocate(layout_.bytes, memory_kind::cpu_device)),
      filled_(device.allocate(options.entries / 8, memory_kind::device, small_alignment)),
      control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device, small_alignment)),
      handle_(device.allocate(sizeof(weftio_dev_send_queue), memory_kind::device, small_alignment))
{}

nic::tx_ring send_life::begin() const
{
    void* base = ring_.cpu_address();
    // Each entry carries an index that its slot never has in the first pass, so that an entry that is not written is
    // refused (docs/formats.md, "Entries").
    for (std::uint32_t slot = 0; slot < options_.entries; ++slot)
        *at<std::uint32_t>(base, std::size_t{slot} * WEFTIO_WQE_BLOCK_BYTES) =
            weftio_swap32((slot + options_.entries) << 8 & 0xffff00u);
    // The first completion names entry 0xffff: nothing is done yet (docs/formats.md, "Completions").
    weftio_store_release_sys_u32(&at<weftio_cqe>(base, layout_.completion)->publication,
                                 weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    return {.entries = {.words = at<std::uint32_t>(base, 0), .depth = options_.entries, .queue = 0},
            .dbrec = at<std::uint32_t>(base, layout_.dbrec),
            .doorbell = at<std::uint64_t>(base, layout_.doorbell),
            .completion = at<weftio_cqe>(base, layout_.completion),
            .horizon_ns = options_.horizon_ns,
            .domain = options_.domain};
}

void send_life::belong_to(std::shared_ptr<nic::send_queue> queue, std::uint32_t ring_number)
{
    queue_ = std::move(queue);
    ring_number_ = ring_number;
    fill_handle();
}

std::string send_life::describe() const
{
    return queue_->describe(ring_number_);
}

void send_life::quiesce()
{
    queue_->stop(ring_number_);
}

void send_life::fill_handle()
{
    void* base = ring_.device_address();
    weftio_dev_send_queue made{};
    made.ring.segments = at<std::uint32_t>(base, 0);
    made.ring.dbrec = at<std::uint32_t>(base, layout_.dbrec);
    made.ring.doorbell = at<std::uint64_t>(base, layout_.doorbell);
    made.ring.completion = at<weftio_cqe>(base, layout_.completion);
    made.ring.filled = static_cast<std::uint32_t*>(filled_.device_address());
    made.ring.mask = options_.entries - 1;
    made.ring.queue = queue_->number();
    made.ring.checksums = options_.checksums;
    made.abi = options_.abi;
    made.control = static_cast<weftio_dev_control*>(control_.device_address());
    made.clock = where_.clock();
    const nic::inline_turn turn = queue_->turn();
    made.turn = reinterpret_cast<std::uint64_t>(turn.turn);
    made.turn_context = reinterpret_cast<std::uint64_t>(turn.context);
    handle_.upload(&made, sizeof made);
}

} // namespace weftio::queues
