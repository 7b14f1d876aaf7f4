#include "queues/send_life.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "weftio/error.hpp"

namespace weftio::queues {

namespace {

constexpr std::uint32_t fewest_entries = 64, most_entries = 32768;
constexpr std::size_t result_bytes = sizeof(std::uint64_t);

} // namespace

void require_send_entries(std::string_view who, std::uint32_t entries, std::string_view option)
{
    if (!std::has_single_bit(entries) || entries < fewest_entries || entries > most_entries)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: {} is {}; it must be a power of two from {} to {}",
                                                        who, option, entries, fewest_entries, most_entries));
}

send_life::send_life(const device& device, const send_ring_options& options, control_block control)
    : ring_life(device, ring_layout(options.entries).bytes + (options.results ? options.entries * result_bytes : 0),
                std::move(control)),
      options_(options), layout_(options.entries),
      filled_(
          device.allocate(std::size_t{options.entries} * sizeof(std::uint32_t), memory_kind::device, small_alignment))
{}

nic::send_ring send_life::begin() const
{
    // Each entry carries an index that its slot never has in the first pass, so that an entry that is not written is
    // refused (docs/formats.md, "Entries").
    for (std::uint32_t slot = 0; slot < options_.entries; ++slot)
        *cpu_at<std::uint32_t>(std::size_t{slot} * WEFTIO_WQE_BLOCK_BYTES) =
            weftio_swap32((slot + options_.entries) << 8 & 0xffff00u);
    // The first completion names entry 0xffff: nothing is done yet (docs/formats.md, "Completions").
    weftio_store_release_sys_u32(&cpu_at<weftio_cqe>(layout_.completion)->publication,
                                 weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    return {.entries = memory_at(0),
            .depth = options_.entries,
            .dbrec = memory_at(layout_.dbrec),
            .completion = memory_at(layout_.completion),
            .horizon_ns = options_.horizon_ns,
            .domain = options_.domain,
            .results = options_.results ? memory_at(layout_.bytes) : nic::ring_memory{}};
}

weftio_dev_send_queue send_life::make_handle() const
{
    weftio_dev_send_queue made{};
    made.ring.segments = device_at<std::uint32_t>(0);
    made.ring.dbrec = device_at<std::uint32_t>(layout_.dbrec);
    made.ring.doorbell = queue().doorbell();
    made.ring.completion = device_at<weftio_cqe>(layout_.completion);
    made.ring.filled = static_cast<std::uint32_t*>(filled_.device_address());
    made.ring.mask = options_.entries - 1;
    made.ring.queue = fill_in(made, options_.abi);
    made.ring.checksums = options_.checksums;
    made.ring.needs_flush = options_.needs_flush;
    return made;
}

} // namespace weftio::queues
