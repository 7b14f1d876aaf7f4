#include "nic/soft/soft_port.hpp"

#include <fmt/format.h>

#include <mutex>
#include <new>
#include <optional>
#include <span>

#include "core/log.hpp"
#include "core/undying.hpp"
#include "devices/unfinished_copies.hpp"
#include "dpdk/dma_mapping.hpp"
#include "dpdk/environment.hpp"
#include "dpdk/leftover.hpp"
#include "nic/soft/soft_completion_queue.hpp"
#include "nic/soft/soft_rdma_address.hpp"
#include "nic/soft/soft_rdma_queue.hpp"
#include "nic/soft/soft_receive_queue.hpp"
#include "nic/soft/soft_region.hpp"
#include "nic/soft/soft_rule.hpp"
#include "nic/soft/soft_send_queue.hpp"
#include "nic/soft/soft_shared_receives.hpp"
#include "nic/soft/soft_window.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

/// Memory of regions that end while the process exits, or in a child of fork(): kept for good. Several threads may be
/// about to end some, and no engine runs turns between which they could change the pool of a port.
struct left_behind {
    std::mutex mutex;
    frame_memory_list memory; ///< guarded by mutex
};

bool holds_when_full(const dpdk::port_spec& parsed, const port_options& options)
{
    if (options.hold_when_full == port_options::hold::automatic)
        return !parsed.capture.empty();
    return options.hold_when_full == port_options::hold::on;
}

std::vector<engine_supplies::engine_queue> queues(const dpdk::dpdk_port& device, const slot_pools& slots, bool apart)
{
    std::vector<engine_supplies::engine_queue> queues;
    for (dpdk::port_queue each : device.port_queues()) {
        each.apart = apart;
        queues.push_back({each, slots.of_queue(each.queue)});
    }
    return queues;
}

} // namespace

soft_port::soft_port(std::string spec, const dpdk::port_spec& parsed, const port_options& options)
    : spec_(std::move(spec)), sends_(parsed.sends),
      lock_(parsed.interface.empty() ? dpdk::interface_lock() : dpdk::interface_lock(spec_, parsed.interface)),
      environment_(dpdk::start_environment(parsed.candidates.front().pci, options.eal_arguments, options.engines)),
      device_(spec_, parsed, options, slots_),
      engines_({.queues = queues(device_, slots_, options.mode == engine_mode::thread),
                .hold = holds_when_full(parsed, options),
                .capture = parsed.capture,
                .slot = slot(),
                .interface = parsed.interface,
                .name = "weftio/" + std::to_string(device_.id())},
               keys_, send_pool_, options)
{
    if (dpdk::shared_wire* const shared = device_.shared())
        shared->member().tell_queues(engines_.directory().first(), roce_directory::numbers);
    dpdk::free_returned_leftovers();
}

port_counters soft_port::counters()
{
    port_counters counters;
    engines_.count(counters);
    counters.driver_missed = device_.missed();
    counters.tx_dropped = device_.tx_dropped();
    return counters;
}

rdma_port_counters soft_port::rdma_counts()
{
    rdma_port_counters counts;
    engines_.between_all_turns([&] {
        for (unsigned engine = 0; engine != engine_count(); ++engine)
            rdma(engine).count(counts);
    });
    return counts;
}

void soft_port::require_sending() const
{
    if (!sends_)
        throw error(errc::not_supported, fmt::format("weftio: eth_txq: port {} reads a capture and cannot send; open "
                                                     "it as pcap:rx=FILE,tx=FILE, or as pcap:tx=FILE to write only",
                                                     spec_));
}

std::unique_ptr<region> soft_port::register_memory(const region_request& wanted)
{
    return std::make_unique<soft_region>(shared_from_this(), wanted);
}

std::shared_ptr<receive_queue> soft_port::make_receive_queue(const receive_ring& ring, int engine)
{
    return std::make_shared<soft_receive_queue>(shared_from_this(), ring, engine);
}

std::shared_ptr<eth_send_queue> soft_port::make_send_queue(const send_ring& ring, int engine)
{
    require_sending();
    return std::make_shared<soft_send_queue>(shared_from_this(), ring, engine);
}

std::shared_ptr<completion_queue> soft_port::make_completion_queue(const completion_memory& memory)
{
    require_rdma("completion_queue");
    return std::make_shared<soft_completion_queue>(shared_from_this(), memory);
}

void soft_port::require_rdma(std::string_view who) const
{
    if (!sends_)
        throw error(errc::not_supported,
                    fmt::format("weftio: {}: port {} reads a capture and cannot send, but a connection needs both "
                                "directions; open another port, such as loopback or iface:NAME",
                                who, spec_));
}

std::shared_ptr<rdma_queue> soft_port::make_rdma_queue(const rdma_rings& rings, rdma_service service)
{
    require_rdma("rdma_queue");
    return std::make_shared<soft_rdma_queue>(shared_from_this(), rings, service);
}

std::shared_ptr<shared_receives> soft_port::make_shared_receives(const shared_receive_ring& ring)
{
    require_rdma("shared_receives");
    return std::make_shared<soft_shared_receives>(shared_from_this(), ring);
}

std::unique_ptr<window> soft_port::make_window(window_type type, protection_domain domain)
{
    require_rdma("memory_window");
    return std::make_unique<soft_window>(shared_from_this(), type, domain);
}

std::unique_ptr<held_rdma_address> soft_port::add_rdma_address(const rdma_own_address& own)
{
    require_rdma("rdma_device");
    return std::make_unique<soft_rdma_address>(shared_from_this(), own);
}

std::vector<std::unique_ptr<rule>> soft_port::install(std::span<const rule_request> wanted)
{
    return soft_rule::install(shared_from_this(), wanted);
}

void soft_port::announce_first_address() noexcept
{
    dpdk::shared_wire* const shared = device_.shared();
    if (!shared)
        return;
    std::optional<wires::gid> first;
    engines_.directory().addresses().for_each(
        [&](const rdma_own_address& own) { first = first.value_or(own.address); });
    shared->member().tell_address(first.value_or(wires::gid{}));
}

unsigned soft_port::slot() const noexcept
{
    const dpdk::shared_wire* const shared = device_.shared();
    return shared ? shared->member().slot() : 0;
}

void soft_port::require_nobody_has(const net::roce_gid& address, unsigned below) const
{
    const dpdk::shared_wire* const shared = device_.shared();
    if (!shared)
        return;
    for (const wires::member_facts& each : shared->member().members())
        if (each.slot < below && each.slot != slot() && each.first_address == address)
            throw error(errc::in_use, fmt::format("weftio: rdma_device: port {}: process {} already has the address {} "
                                                  "on this wire; use another address",
                                                  spec_, each.process, net::text_of(address)));
}

std::optional<net::mac_address> soft_port::mac_on_wire(const net::roce_gid& address) const
{
    const dpdk::shared_wire* const shared = device_.shared();
    if (!shared)
        return {};
    for (const wires::member_facts& each : shared->member().members())
        if (each.slot != slot() && each.first_address == address)
            return net::mac_address{each.address};
    return {};
}

frame_memory_list soft_port::take_up(std::shared_ptr<const devices::memory_block> block)
{
    frame_memory_list list(1);
    frame_memory& memory = list.front();
    memory.block = std::move(block);
    if (!memory.block->at.cpu) {
        pull_from(memory.block->owner);
        memory.zero_copy = false;
        return list;
    }
    // A driver that copies frames with the CPU would crash if adopted memory is unmapped. A device pins the pages that
    // it reads.
    memory.zero_copy = device_.zero_copy() && (!memory.block->adopted || device_.reads_by_itself());
    if (rte_device* device = device_.reads_by_itself(); device && memory.zero_copy)
        try {
            const std::span<const std::byte> pages = memory.block->pages();
            memory.mapping = std::make_unique<dpdk::dma_mapping>(*device, pages.data(), pages.size());
        } catch (const error& reason) {
            memory.zero_copy = false;
            core::log(log_level::warning,
                      fmt::format("weftio: port {}: frames in this memory are copied before they are sent: {}", spec_,
                                  reason.what()));
        }
    return list;
}

/// Slow.
std::unique_ptr<staged_stream> soft_port::make_staged(const std::shared_ptr<devices::device_backend>& device)
{
    auto block = std::make_shared<devices::memory_block>(device);
    block->bytes = 2 * staged_stream::bytes_each_way;
    block->kind = memory_kind::cpu_device;
    block->at = device->allocate(block->bytes, 64, block->kind);
    return std::make_unique<staged_stream>(device->make_copy_queue(device), std::move(block));
}

void soft_port::pull_from(const std::shared_ptr<devices::device_backend>& device)
{
    const std::scoped_lock one_at_a_time(pulling_);
    for (unsigned each = 0; each != engines_.count(); ++each) {
        bool reached = false;
        engine(each).between_turns([&] { reached = sender(each).pulls().find(device.get()) != nullptr; });
        if (reached)
            continue;
        auto copies = device->make_copy_queue(device); // slow, as is the allocation
        auto block = std::make_shared<devices::memory_block>(device);
        block->bytes = std::size_t{pull_stream::slots} * pull_stream::slot_bytes;
        block->kind = memory_kind::cpu_device;
        block->at = device->allocate(block->bytes, 64, block->kind);
        frame_memory_list memory = take_up(std::move(block));
        auto staged = make_staged(device);
        engines_.between_all_turns([&] {
            sender(each).pulls().add(device,
                                     std::make_unique<pull_stream>(std::move(copies), std::move(memory), send_pool_));
            rdma(each).add_staged(device, std::move(staged));
        });
    }
}

void soft_port::let_go_of_device(const devices::memory_block& block) noexcept
{
    bool done = true;
    for (unsigned each = 0; each != engines_.count(); ++each) {
        pull_stream* stream = nullptr;
        staged_stream* staged = nullptr;
        std::uint64_t last = 0;
        std::uint32_t last_staged = 0;
        engine(each).between_turns([&] {
            stream = sender(each).pulls().find(block.owner.get());
            staged = rdma(each).staged().find(block.owner.get());
            last = stream->ended();
            last_staged = staged->ended();
        });
        auto ask = [&] {
            return engine(each).between_turns(
                [&] { return (stream->completed(last) || stream->failed()) && staged->is_over(last_staged); });
        };
        done = engines_.keep_trying(ask, std::chrono::seconds(1)) && done;
    }
    if (!done)
        core::log_or_lose(log_level::error, [&] {
            return fmt::format(
                "weftio: port {}: memory of {} bytes at {} of {} is released, but its copy engine did not end all "
                "copies of frames and of RDMA within 1 s; close queues before their memory",
                spec_, block.bytes, block.at.device, block.owner->name());
        });
}

void soft_port::leave_copies(const devices::memory_block& block) noexcept
try {
    if (!block.unfinished || block.at.cpu || !may_end())
        return;
    for (unsigned each = 0; each != engines_.count(); ++each)
        engine(each).between_turns([&] {
            const pull_stream& stream = *sender(each).pulls().find(block.owner.get());
            const staged_stream& staged = *rdma(each).staged().find(block.owner.get());
            block.unfinished->add(
                [self = shared_from_this(), &stream, last = stream.ended(), &staged, last_staged = staged.ended()] {
                    return stream.is_over(last) && staged.is_over(last_staged);
                });
        });
} catch (const std::bad_alloc&) {
    let_go_of_device(block);
}

/// Whoever waits for copies afterwards waits for all bytes that the key has let in.
void soft_port::forget_key(std::uint32_t key) noexcept
{
    if (may_end())
        engines_.between_all_turns([&] {
            keys_.forget(key);
            for (unsigned each = 0; each != engines_.count(); ++each) {
                sender(each).key_forgotten();
                rdma(each).staged().end_all();
            }
        });
}

/// @pre every engine is between two turns
bool soft_port::unused(const devices::memory_block& block) noexcept
{
    for (unsigned each = 0; each != engines_.count(); ++each)
        if (sender(each).uses(block.begin(), block.bytes))
            return false;
    return true;
}

void soft_port::free_what_came_back() noexcept
{
    frame_memory_list free; // freed after the change, because freeing may take long
    engines_.between_all_turns(
        [&] { free = send_pool_.take_out([&](const devices::memory_block& block) { return unused(block); }); });
}

void soft_port::let_go(frame_memory_list memory) noexcept
{
    if (!may_end()) { // the port is not destroyed either
        auto& left = core::undying<left_behind>();
        const std::scoped_lock lock(left.mutex);
        return left.memory.splice(left.memory.end(), std::move(memory));
    }
    if (memory.front().block->at.cpu)
        let_go_of_host(std::move(memory));
    else if (!memory.front().block->unfinished)
        let_go_of_device(*memory.front().block);
}

void soft_port::let_go_of_host(frame_memory_list memory) noexcept
{
    free_what_came_back();
    const devices::memory_block& block = *memory.front().block;
    // Engines 0 .. unused - 1 do not use the memory, and will never hand a frame in it to a driver again.
    unsigned unused = 0;
    auto ask = [&] {
        while (unused != engines_.count() &&
               engine(unused).between_turns([&] { return !sender(unused).uses(block.begin(), block.bytes); }))
            ++unused;
        return unused == engines_.count();
    };
    if (engines_.keep_trying(ask, std::chrono::seconds(1)))
        return;
    core::log_or_lose(log_level::error, [&] {
        return fmt::format(
            "weftio: port {}: memory of {} bytes at {} is released, but a driver or a receiver still holds frames in "
            "it; {}; close send queues, or receive looped-back frames, before the memory",
            spec_, block.bytes, block.at.cpu,
            block.adopted ? "it was adopted and cannot be kept: do not unmap it"
                          : "it is kept until they are returned");
    });
    engines_.between_all_turns([&] { send_pool_.keep(std::move(memory)); });
}

std::shared_ptr<backend> open_soft_port(std::string_view spec, const port_options& options)
{
    if (const unsigned most = dpdk::most_mtu_of(spec);
        options.mtu != 0 && (options.mtu < dpdk::least_mtu || options.mtu > most))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: mtu is {}; set {} to {}, or 0 for the driver's own", spec,
                                options.mtu, dpdk::least_mtu, most));
    return core::make_shared_here<soft_port>(std::string(spec),
                                             dpdk::parse_port_spec(spec, options.engines, options.mtu), options);
}

} // namespace weftio::nic::soft
