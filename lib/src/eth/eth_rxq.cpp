#include "weftio/eth_rxq.hpp"

#include <fmt/format.h>

#include <bit>

#include "queues/live_queue.hpp"
#include "queues/ring_life.hpp"
#include "regions/named_region.hpp"
#include "weftio/device/wqe.h"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t fewest_packets = 64, most_packets = 65536;
constexpr std::uint32_t smallest_slot = 64, largest_slot = 16384, most_zeroed = 4096;

void check(const eth_rxq_options& options)
{
    if (!std::has_single_bit(options.packets) || options.packets < fewest_packets || options.packets > most_packets)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_rxq: packets is {}; it must be a power of two from {} to {}",
                                options.packets, fewest_packets, most_packets));
    if (options.max_packet_bytes < smallest_slot || options.max_packet_bytes > largest_slot)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_rxq: max_packet_bytes is {}; set {} to {}",
                                                        options.max_packet_bytes, smallest_slot, largest_slot));
    if (options.zeroed_bytes > most_zeroed)
        throw error(errc::invalid_argument, fmt::format("weftio: eth_rxq: zeroed_bytes is {}; set {} at most",
                                                        options.zeroed_bytes, most_zeroed));
    devices::require_kind("eth_rxq: buffers", options.buffers);
    if (options.buffers == memory_kind::device_cpu)
        throw error(errc::invalid_argument, "weftio: eth_rxq: buffers is device_cpu, which cannot receive packets; use "
                                            "memory_kind::cpu_device, or device for memory of a GPU");
    if (!options.region && (options.offset_bytes != 0 || options.stride_bytes != 0))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_rxq: offset_bytes is {} and stride_bytes {}, but the queue allocates its "
                                "own slots; leave both 0, or set region",
                                options.offset_bytes, options.stride_bytes));
}

/// Rounds up to an odd number of cache lines. If slots are an even number of lines apart, their first lines share at
/// most half the sets of a cache, while the other sets stay unused.
constexpr std::uint32_t odd_lines(std::uint32_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

constexpr std::uint32_t whole_lines(std::uint32_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/// What does not change when a queue is reset: the size of its slots, and where the caller wants them.
struct slot_plan {
    std::uint32_t packets, slot_bytes, stride_bytes;
    std::size_t headroom_bytes; ///< before each slot
    memory_kind kind;
    nic::ring_memory callers{}; ///< memory of the caller for the slots; empty: the queue allocates it
    std::uint32_t lkey = 0;     ///< lkey of the caller's memory
    bool consecutive;
    std::uint32_t zeroed_bytes;

    std::size_t bytes() const { return std::size_t{packets} * stride_bytes; }
};

slot_plan plan_of_own(const eth_rxq_options& options)
{
    constexpr std::size_t headroom = nic::receive_ring::headroom_bytes;
    const std::uint32_t slot_bytes = whole_lines(options.max_packet_bytes);
    return {.packets = options.packets,
            .slot_bytes = slot_bytes,
            .stride_bytes = odd_lines(static_cast<std::uint32_t>(headroom) + slot_bytes + options.zeroed_bytes),
            .headroom_bytes = headroom,
            .kind = options.buffers,
            .consecutive = options.consecutive,
            .zeroed_bytes = options.zeroed_bytes};
}

void check_callers(const eth_rxq_options& options, std::uint32_t room, std::uint32_t stride)
{
    if (stride < room)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: eth_rxq: stride_bytes is {}, less than a slot of {} bytes (max_packet_bytes + "
                                "zeroed_bytes); leave it 0 for the default",
                                stride, room));
    if ((options.region->rights() & access::local_write) == access::none)
        throw error(errc::invalid_argument, "weftio: eth_rxq: the region lacks access::local_write, which receiving "
                                            "needs; add it to region_options::rights");
    if (options.buffers != memory_kind::cpu_device || options.domain != protection_domain{})
        throw error(
            errc::invalid_argument,
            "weftio: eth_rxq: buffers or domain is set together with region, which has its own; leave them out");
}

slot_plan plan_of_callers(const nic::backend& port, const eth_rxq_options& options, const device& device)
{
    const std::uint32_t room = options.max_packet_bytes + options.zeroed_bytes;
    const std::uint32_t stride = options.stride_bytes ? options.stride_bytes : whole_lines(room);
    check_callers(options, room, stride);
    regions::require_within(
        "eth_rxq", *options.region, device,
        {.count = options.packets, .bytes = room, .stride_bytes = stride, .offset_bytes = options.offset_bytes});
    return {.packets = options.packets,
            .slot_bytes = options.max_packet_bytes,
            .stride_bytes = stride,
            .headroom_bytes = 0,
            .kind = detail::internals::block(*options.region)->kind,
            .callers = {detail::internals::block(*options.region),
                        detail::internals::offset(*options.region) + options.offset_bytes},
            .lkey = detail::internals::lkey(*options.region, port),
            .consecutive = options.consecutive,
            .zeroed_bytes = options.zeroed_bytes};
}

slot_plan plan_of(const nic::backend& port, const eth_rxq_options& options, const device& device)
{
    return options.region ? plan_of_callers(port, options, device) : plan_of_own(options);
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

/// The ring and slots of a receive queue from creation or reset to the next reset.
class eth_rxq_life final : public queues::ring_life<weftio_dev_eth_rxq, nic::receive_queue> {
 public:
    eth_rxq_life(std::shared_ptr<nic::backend> nic, const device& device, const slot_plan& plan,
                 const eth_rxq_options& options);

    /// Initializes the ring with all slots posted. Returns what the NIC needs to know.
    nic::receive_ring begin() const;
    /// Called when the queue has another ring or is closed: entries may no longer name the slots.
    void end() noexcept { region_.revoke(); }

 private:
    nic::ring_memory own(memory_kind kind) const;
    nic::ring_memory filled_by_nic() const;
    regions::region_use use_of_slots() const;
    /// The key by which entries name the slots, in host byte order; 0: entries cannot send from them.
    std::uint32_t lkey() const noexcept { return plan_.callers.block ? plan_.lkey : region_.lkey(); }
    /// Slots held back from posting: one of 65,536, because the 16-bit doorbell record cannot tell 65,536 entries from
    /// none.
    std::uint32_t held_back() const noexcept { return plan_.packets > UINT16_MAX ? 1 : 0; }
    void fresh_ring() const;
    weftio_dev_eth_rxq make_handle() const override;

    const std::shared_ptr<nic::backend> nic_;
    const slot_plan plan_;
    const bool verify_checksums_;
    const ring_layout layout_;
    const nic::ring_memory filled_; ///< slots as the NIC fills them
    regions::named_region region_;  ///< region of filled_: frames may be sent from these slots again
    nic::ring_memory seen_;         ///< slots as kernels see them; other memory if packets are copied to the device
    nic::staging_target staged_;
};

eth_rxq_life::eth_rxq_life(std::shared_ptr<nic::backend> nic, const device& device, const slot_plan& plan,
                           const eth_rxq_options& options)
    : ring_life(device, ring_layout(plan.packets).bytes), nic_(std::move(nic)), plan_(plan),
      verify_checksums_(options.verify_checksums), layout_(plan.packets), filled_(filled_by_nic()),
      region_(filled_.block, use_of_slots(), {.domain = options.domain}), seen_(filled_)
{
    if (plan_.kind != memory_kind::cpu_device) {
        seen_ = plan_.callers.block ? plan_.callers : own(plan_.kind);
        staged_ = {.copies = detail::internals::make_copy_queue(device), .slots = seen_.device<std::byte>()};
    }
    region_.register_with(*nic_);
}

nic::ring_memory eth_rxq_life::own(memory_kind kind) const
{
    return {detail::internals::block(where_.allocate(plan_.bytes(), kind)), plan_.headroom_bytes};
}

nic::ring_memory eth_rxq_life::filled_by_nic() const
{
    const bool is_callers = plan_.callers.block && plan_.kind == memory_kind::cpu_device;
    return is_callers ? plan_.callers : own(memory_kind::cpu_device);
}

/// Whether entries may name the slots by a key of this queue. If packets are copied to the device, they may not: the
/// NIC does not have what a kernel writes to its copy of a slot. The caller's slots have the caller's key.
regions::region_use eth_rxq_life::use_of_slots() const
{
    const bool has_own_key = plan_.kind == memory_kind::cpu_device && !plan_.callers.block;
    return has_own_key ? regions::region_use::entries : regions::region_use::own;
}

nic::receive_ring eth_rxq_life::begin() const
{
    fresh_ring();
    return {.completions = memory_at(0),
            .entries = memory_at(layout_.entries),
            .dbrec = memory_at(layout_.dbrec),
            .slots = filled_,
            .depth = plan_.packets,
            .stride_bytes = plan_.stride_bytes,
            .slot_bytes = plan_.slot_bytes,
            .verify_checksums = verify_checksums_,
            .lendable = plan_.headroom_bytes == nic::receive_ring::headroom_bytes && !plan_.consecutive,
            .consecutive = plan_.consecutive,
            .zeroed_bytes = plan_.zeroed_bytes,
            .staged = staged_};
}

/// Initializes the ring: no completion is written, entry k posts slot k, and the doorbell record posts all entries
/// (docs/formats.md, "Completions" and "Entries").
void eth_rxq_life::fresh_ring() const
{
    auto* completions = cpu_at<weftio_cqe>(0);
    auto* entries = cpu_at<weftio_wqe_data_segment>(layout_.entries);
    auto base = reinterpret_cast<std::uint64_t>(seen_.device<std::byte>());
    for (std::uint32_t slot = 0; slot < plan_.packets; ++slot) {
        completions[slot].publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        entries[slot] = {.byte_count_be = weftio_swap32(plan_.slot_bytes),
                         .lkey_be = weftio_swap32(lkey()),
                         .address_be = weftio_swap64(base + std::uint64_t{slot} * plan_.stride_bytes)};
    }
    weftio_dev_post_receive(cpu_at<std::uint32_t>(layout_.dbrec), plan_.packets - held_back());
}

weftio_dev_eth_rxq eth_rxq_life::make_handle() const
{
    weftio_dev_eth_rxq made{};
    made.completions = {.entries = device_at<weftio_cqe>(0),
                        .mask = plan_.packets - 1,
                        .log_depth = static_cast<std::uint32_t>(std::countr_zero(plan_.packets))};
    made.dbrec = device_at<std::uint32_t>(layout_.dbrec);
    made.slots = reinterpret_cast<std::uint8_t*>(seen_.device<std::byte>());
    made.slot_bytes = plan_.slot_bytes;
    made.stride_bytes = plan_.stride_bytes;
    made.lkey_be = weftio_swap32(lkey());
    made.held_back = held_back();
    made.queue = fill_in(made, WEFTIO_DEV_ABI_ETH_RXQ);
    return made;
}

} // namespace

struct eth_rxq::state {
    state(const port& port, const device& device, const eth_rxq_options& wanted)
        : nic(detail::internals::share(port)), where(device), options(wanted), plan(plan_of(*nic, wanted, device)),
          queue(make_life(),
                [&](const nic::receive_ring& ring) { return nic->make_receive_queue(ring, options.engine); })
    {}
    ~state()
    {
        queue.close();
        queue.life()->end();
    }

    std::shared_ptr<eth_rxq_life> make_life() const
    {
        return core::make_shared_here<eth_rxq_life>(nic, where, plan, options);
    }

    std::shared_ptr<nic::backend> nic;
    device where;
    eth_rxq_options options; ///< its region may have been destroyed
    slot_plan plan;
    queues::live_queue<eth_rxq_life, nic::receive_queue> queue;
};

eth_rxq::eth_rxq(const port& port, const device& device, eth_rxq_options options)
{
    check(options);
    nic::require_engine_or_any(detail::internals::backend(port), "eth_rxq", options.engine);
    state_ = std::make_unique<state>(port, device, options);
}

eth_rxq::eth_rxq(eth_rxq&&) noexcept = default;
eth_rxq& eth_rxq::operator=(eth_rxq&&) noexcept = default;
eth_rxq::~eth_rxq() = default;

weftio_dev_eth_rxq* eth_rxq::handle() const noexcept
{
    return state_->queue.life()->handle();
}

weftio_dev_control* eth_rxq::control() const noexcept
{
    return state_->queue.life()->control();
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
    state_->queue.reset(state_->make_life())->end();
}

std::shared_ptr<devices::lifeline> detail::internals::line(const eth_rxq& queue) noexcept
{
    return queue.state_->queue.life();
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

nic::backend& detail::internals::backend(const eth_rxq& queue) noexcept
{
    return *queue.state_->nic;
}

} // namespace weftio
