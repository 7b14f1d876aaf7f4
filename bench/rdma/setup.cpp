#include "rdma/setup.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>
#include <stdexcept>

#include "dpdk/environment.hpp"

namespace weftio::bench {

namespace {

constexpr unsigned wire_frames = 1024;
constexpr access all_rights =
    access::local_write | access::remote_write | access::remote_read | access::remote_atomic | access::bind;

} // namespace

rdma_memory::rdma_memory(const port& port, const device& device, std::size_t bytes)
    : memory(device.allocate(bytes, memory_kind::cpu_device)), region(port, memory, {.rights = all_rights}),
      buffer(region.buffer()), remote(remote_region::of(region).on_device())
{
    std::memset(memory.cpu_address(), 1, bytes);
}

std::unique_ptr<rdma_setup> rdma_setup::on_rings(const rdma_cores& cores, engine_mode mode)
{
    static unsigned made = 0;
    std::unique_ptr<rdma_setup> setup(new rdma_setup);
    setup->name_ = fmt::format("rdma_bench{}", made++);
    dpdk::start_environment(false, {});
    for (unsigned to = 0; to < 2; ++to)
        setup->wires_[to] =
            rte_ring_create(fmt::format("{}_{}", setup->name_, to).c_str(), wire_frames, SOCKET_ID_ANY, 0);
    for (unsigned end = 0; end < 2; ++end)
        if (!setup->wires_[0] || !setup->wires_[1] ||
            rte_eth_from_rings(fmt::format("{}{}", setup->name_, end).c_str(), &setup->wires_[end], 1,
                               &setup->wires_[1 - end], 1, 0) < 0)
            throw std::runtime_error(
                "rdma_bench: DPDK could not create rings between two ports; it may be short of memory");
    setup->open(fmt::format("net_ring_{}0", setup->name_), fmt::format("net_ring_{}1", setup->name_), cores,
                {mode, mode}, port_mtu);
    setup->has_turns_ = mode != engine_mode::thread;
    return setup;
}

void rdma_setup::run_turns() const
{
    for (std::optional<port> each : ports_)
        each->turn();
}

std::unique_ptr<rdma_setup> rdma_setup::at_one_port(const rdma_cores& cores, engine_mode mode)
{
    std::unique_ptr<rdma_setup> setup(new rdma_setup);
    setup->open("loopback", "", cores, {mode, mode}, port_mtu);
    return setup;
}

std::unique_ptr<rdma_setup> rdma_setup::at(const std::string& near, const std::string& peer, const rdma_cores& cores)
{
    std::unique_ptr<rdma_setup> setup(new rdma_setup);
    setup->timeout_ = rdma_queue_options().timeout;
    setup->open(near, peer, cores, {engine_mode::thread, engine_mode::thread}, 0);
    return setup;
}

std::unique_ptr<rdma_setup> rdma_setup::on_two_cores(const std::string& near, const std::string& peer,
                                                     const rdma_cores& cores)
{
    std::unique_ptr<rdma_setup> setup(new rdma_setup);
    setup->timeout_ = rdma_queue_options().timeout;
    const rdma_cores two{cores.near_kernel, -1, cores.peer_engine, cores.peer_engine};
    setup->open(near, peer, two, {engine_mode::inline_worker, engine_mode::thread}, 0);
    return setup;
}

void rdma_setup::open(const std::string& near, const std::string& peer, const rdma_cores& cores,
                      std::array<engine_mode, 2> modes, std::uint16_t mtu)
{
    const bool shared = cores.near_engine == cores.near_kernel || cores.near_engine == cores.peer_engine;
    const std::array<int, 2> engines{cores.near_engine, cores.peer_engine};
    for (unsigned end = 0; end < 2; ++end) {
        if (end == 1 && peer.empty())
            ports_[1] = ports_[0];
        else
            ports_[end] =
                port::open(end == 0 ? near : peer, {.mode = modes[end],
                                                    .idle = shared ? idle_policy::yield : idle_policy::busy,
                                                    .core = modes[end] == engine_mode::thread ? engines[end] : -1,
                                                    .hold_when_full = port_options::hold::on,
                                                    .mtu = mtu});
        devices_[end].emplace(*ports_[end],
                              rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2",
                                                  .application_turns = modes[end] != engine_mode::thread});
        memories_[end].emplace(*ports_[end], cpu, memory_bytes);
    }
}

rdma_setup::~rdma_setup()
{
    for (unsigned end = 0; end < 2; ++end) {
        memories_[end].reset();
        devices_[end].reset();
    }
    for (rte_ring* const wire : wires_) {
        void* each = nullptr;
        while (wire && rte_ring_dequeue(wire, &each) == 0)
            rte_pktmbuf_free(static_cast<rte_mbuf*>(each));
    }
    for (unsigned end = 0; end < 2; ++end) {
        ports_[end].reset();
        if (!name_.empty())
            rte_eal_hotplug_remove("vdev", fmt::format("net_ring_{}{}", name_, end).c_str());
    }
    for (rte_ring* const wire : wires_)
        rte_ring_free(wire);
}

rdma_pair rdma_setup::pair(std::uint32_t entries, std::uint32_t receives) const
{
    const rdma_queue_options options{.entries = entries, .receive_entries = receives, .timeout = timeout_};
    rdma_pair made{{rdma_queue(*devices_[0], cpu, options), rdma_queue(*devices_[1], cpu, options)}};
    for (unsigned end = 0; end < 2; ++end)
        made.ends[end].connect(made.ends[1 - end].address());
    return made;
}

} // namespace weftio::bench
