#include "initiated/fabric.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "common/arguments.hpp"
#include "devices/backend.hpp"
#include "weftio/detail/internals.hpp"

namespace weftio::bench {

namespace {

constexpr access all_rights = access::local_write | access::remote_write;

/// A core for each engine and each proxy, behind one that is left for the rest; none if there are too few.
initiated_cores divide(std::uint32_t engines)
{
    const std::vector<int> usable = usable_cores();
    if (usable.size() < 1 + engines + fabric::most_proxies)
        return {};
    const auto first = usable.begin() + 1, middle = first + engines;
    return {{first, middle}, {middle, middle + fabric::most_proxies}};
}

} // namespace

fabric::fabric(std::span<const device> devices, path path, std::uint32_t engines, std::size_t bytes,
               memory_kind payload, std::uint32_t mtu)
    : path_(path), mtu_(mtu), devices_(devices.begin(), devices.end()),
      cores_(divide(path == path::wire ? 2 * engines : engines)), sent_(devices.front().allocate(bytes, payload)),
      written_(devices.back().allocate(bytes, payload)), pairs_(devices.size() + 1)
{
    for (const device& each : devices_)
        detail::internals::backend(each).reach(detail::internals::backend(devices_.front()), memory_kind::cpu_device,
                                               "initiated_bench");
    for (std::uint32_t engine = 0; engine < engines; ++engine)
        ports_.push_back(open(engine, engine));
    for (std::uint32_t engine = 0; engine < engines; ++engine)
        far_ports_.push_back(path == path::wire ? open(engine, engines + engine) : ports_[engine]);
    sent_region_ = std::make_unique<memory_region>(sent_, region_options{.rights = all_rights});
    written_region_ = std::make_unique<memory_region>(written_, region_options{.rights = all_rights});
    for (std::uint32_t engine = 0; engine < engines; ++engine) {
        near_.emplace_back(ports_[engine], rdma_device_options{.address = "10.0.0.1"});
        far_.emplace_back(far_ports_[engine], rdma_device_options{.address = "10.0.0.2"});
        sent_region_->register_with(ports_[engine]);
        written_region_->register_with(far_ports_[engine]);
    }
}

port fabric::open(std::uint32_t number, std::uint32_t engine) const
{
    return port::open(path_ == path::wire ? fmt::format("wire:initiated{}-{}", getpid(), number) : "loopback",
                      {.idle = cores_.engines.empty() ? idle_policy::yield : idle_policy::busy,
                       .core = cores_.engines.empty() ? -1 : cores_.engines[engine],
                       .mtu = static_cast<std::uint16_t>(mtu_ > 1024 ? 9000 : 0)}); // 0: the driver's own
}

std::string fabric::engines() const
{
    return fmt::format("{} engines{}{}", ports_.size(), path_ == path::wire ? " on each side of wires" : "",
                       devices() > 1 ? ", two devices" : "") +
           (sent_.kind() == memory_kind::device ? ", payload in the device's memory" : "");
}

const rdma_queue& fabric::near_end(poster who, std::uint32_t device, std::uint32_t number)
{
    constexpr std::uint8_t one_second = 18; // a preempted engine is late, not lost
    const rdma_queue_options options{.entries = depth, .receive_entries = 64, .path_mtu = mtu_, .timeout = one_second};
    std::deque<pair>& pairs = who == poster::kernel ? pairs_[device] : pairs_.back();
    while (pairs.size() <= number) {
        const std::size_t engine = pairs.size() % ports_.size();
        pair& made =
            pairs.emplace_back(pair{rdma_queue(near_[engine], who == poster::kernel ? devices_[device] : cpu_, options),
                                    rdma_queue(far_[engine], cpu_, options)});
        made.near_end.connect(made.far_end.address());
        made.far_end.connect(made.near_end.address());
    }
    return pairs[number].near_end;
}

weftio_dev_remote fabric::there(std::size_t offset, std::size_t bytes) const
{
    return remote_region::of(*written_region_, offset, bytes).on_device();
}

ways::ways(fabric& fabric, poster who, std::span<const way_bytes> bytes, std::uint32_t of_ring)
    : of_ring_(of_ring), ways_(bytes.size()),
      words_(fabric.kernels().allocate(rings_count() * sizeof(initiated_words), memory_kind::cpu_device)),
      requests_(fabric.kernels().allocate(std::size_t{rings_count()} * fabric::depth * sizeof(initiated_write),
                                          memory_kind::cpu_device))
{
    std::vector<std::uint32_t> of_device(fabric.devices()); // queue pairs so far
    for (std::uint32_t each = 0; each < count(); ++each) {
        const std::uint32_t device = bytes[each].device;
        near_ends_.push_back(&fabric.near_end(who, device, who == poster::kernel ? of_device[device]++ : each));
        ways_[each] = {.queue = who == poster::kernel ? near_ends_.back()->handle() : nullptr,
                       .words = static_cast<initiated_words*>(words_.device_address()) + each / of_ring,
                       .requests = static_cast<weftio_u32*>(requests_.device_address()) +
                                   std::size_t{each / of_ring} * fabric::depth * 4,
                       .depth = fabric::depth,
                       .number = each,
                       .remote = fabric.there(bytes[each].written, bytes[each].written_bytes),
                       .here = fabric.here(bytes[each].sent, bytes[each].sent_bytes)};
    }
    for (std::uint32_t device = 0; device < fabric.devices(); ++device) {
        tables_.push_back(fabric.kernels(device).allocate(ways_.size() * sizeof(initiated_way), memory_kind::device));
        tables_.back().upload(ways_.data(), tables_.back().bytes());
    }
}

std::vector<proxy_ring> ways::rings() const
{
    std::vector<proxy_ring> rings;
    for (std::uint32_t each = 0; each < rings_count(); ++each)
        rings.push_back({.words = static_cast<initiated_words*>(words_.cpu_address()) + each,
                         .requests = static_cast<const weftio_u32*>(requests_.cpu_address()) +
                                     std::size_t{each} * fabric::depth * 4,
                         .depth = fabric::depth,
                         .one_queue = of_ring_ == 1});
    return rings;
}

std::vector<proxy_queue> ways::queues() const
{
    std::vector<proxy_queue> queues;
    for (std::uint32_t each = 0; each < count(); ++each) {
        weftio_dev_rdma* const rdma = near_ends_[each]->handle();
        weftio_u32 position = 0, mask = 0;
        weftio_dev_rdma_get_info(rdma, &position, &mask);
        queues.push_back({.rdma = rdma, .remote = ways_[each].remote, .here = ways_[each].here, .position = position});
    }
    return queues;
}

std::uint64_t ways::executed() const
{
    std::uint64_t sum = 0;
    for (std::uint32_t each = 0; each < count(); ++each)
        sum += near_ends_[each]->counters().done;
    return sum;
}

std::uint64_t ways::executed_of(std::uint64_t total) const
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::uint64_t sum = executed();
    for (; sum < total && std::chrono::steady_clock::now() < end; sum = executed())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return sum;
}

} // namespace weftio::bench
