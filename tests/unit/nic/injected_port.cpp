#include "injected_port.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "dpdk/environment.hpp"
#include "unit/nic/as_a_driver.hpp"

namespace weftio::test {

namespace {

constexpr unsigned wire_packets = 4096, pool_mbufs = 8191;

int timestamp_offset = -1;
std::uint64_t timestamp_flag = 0;

std::string fresh_name()
{
    static std::atomic<unsigned> made{0};
    return fmt::format("test{}", made.fetch_add(1));
}

} // namespace

injected_port::injected_port(port_options options) : name_(fresh_name())
{
    dpdk::start_environment(false, {});
    rte_mbuf_dyn_rx_timestamp_register(&timestamp_offset, &timestamp_flag);
    pool_ = rte_pktmbuf_pool_create(name_.c_str(), pool_mbufs, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    for (unsigned queue = 0; queue < options.engines; ++queue)
        wires_.push_back(rte_ring_create(fmt::format("{}_{}", name_, queue).c_str(), wire_packets, SOCKET_ID_ANY, 0));
    if (!pool_ || std::count(wires_.begin(), wires_.end(), nullptr) != 0 ||
        rte_eth_from_rings(name_.c_str(), wires_.data(), options.engines, wires_.data(), options.engines, 0) < 0)
        throw std::runtime_error("no DPDK port on a ring");
    port_ = port::open("net_ring_" + name_, std::move(options));
}

injected_port::~injected_port()
{
    port_.reset();
    for (unsigned queue = 0; queue < wires_.size(); ++queue)
        while (rte_mbuf* left = take(queue))
            rte_pktmbuf_free(left);
    EXPECT_EQ(rte_mempool_avail_count(pool_), pool_mbufs)
        << "mbufs have leaked, or queues and flows outlive the port's owner";
    rte_eal_hotplug_remove("vdev", ("net_ring_" + name_).c_str());
    for (rte_ring* wire : wires_)
        rte_ring_free(wire);
    rte_mempool_free(pool_);
}

rte_mbuf* injected_port::make(const bytes& frame) const
{
    as_a_driver unseen;
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    if (mbuf) {
        char* room = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size()));
        std::copy(frame.begin(), frame.end(), room);
    }
    return mbuf;
}

rte_mbuf* injected_port::make(std::initializer_list<bytes> segments) const
{
    as_a_driver unseen;
    rte_mbuf* head = nullptr;
    for (const bytes& segment : segments) {
        rte_mbuf* next = make(segment);
        if (!head)
            head = next;
        else
            rte_pktmbuf_chain(head, next);
    }
    return head;
}

bool injected_port::send(rte_mbuf* mbuf, unsigned queue) const
{
    as_a_driver unseen;
    if (mbuf && rte_ring_enqueue(wires_[queue], mbuf) == 0)
        return true;
    rte_pktmbuf_free(mbuf);
    return false;
}

bool injected_port::send(const bytes& frame, unsigned queue) const
{
    return send(make(frame), queue);
}

unsigned injected_port::on_the_wire(unsigned queue) const
{
    return rte_ring_count(wires_[queue]);
}

rte_mbuf* injected_port::take(unsigned queue) const
{
    void* frame = nullptr;
    return rte_ring_dequeue(wires_[queue], &frame) == 0 ? static_cast<rte_mbuf*>(frame) : nullptr;
}

void injected_port::run_dry()
{
    while (port_->turn() != 0) {
    }
}

void stamp(rte_mbuf& mbuf, std::uint64_t driver_time)
{
    *RTE_MBUF_DYNFIELD(&mbuf, timestamp_offset, rte_mbuf_timestamp_t*) = driver_time;
    mbuf.ol_flags |= timestamp_flag;
}

std::vector<weftio_dev_packet> fake_kernel::receive(std::uint32_t most)
{
    std::uint32_t count = 0, first = 0;
    EXPECT_EQ(weftio_dev_eth_rxq_receive_thread(rxq_, most, 1, &count, &first), WEFTIO_DEV_OK);
    std::vector<weftio_dev_packet> packets(count);
    for (std::uint32_t i = 0; i < count; ++i)
        EXPECT_EQ(weftio_dev_eth_rxq_packet(rxq_, first + i, &packets[i]), WEFTIO_DEV_OK);
    return packets;
}

weftio_dev_packet fake_kernel::receive_one()
{
    std::vector<weftio_dev_packet> packets = receive(1);
    if (packets.size() == 1)
        return packets[0];
    ADD_FAILURE() << "no packet is there";
    static std::uint8_t nothing[64];
    return {.address = nothing, .bytes = 0, .flags = 0, .timestamp_ns = 0, .rss_hash = 0, .vlan_tci = 0};
}

void fake_kernel::release(std::uint32_t count)
{
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq_, rxq_->released, count), WEFTIO_DEV_OK);
}

bytes numbered_frame(std::uint32_t number, std::size_t frame_bytes)
{
    bytes frame = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}; // an ether type for experiments
    for (unsigned shift = 0; shift < 32; shift += 8)
        frame.push_back(static_cast<std::uint8_t>(number >> shift));
    for (std::size_t at = frame.size(); at < frame_bytes; ++at)
        frame.push_back(static_cast<std::uint8_t>((number * 2654435761u >> at % 24) + at));
    return frame;
}

std::uint32_t number_of(const weftio_dev_packet& packet)
{
    std::uint32_t number;
    std::memcpy(&number, packet.address + 14, sizeof number);
    return number;
}

bool is_intact(const weftio_dev_packet& packet)
{
    return content(packet) == numbered_frame(number_of(packet), packet.bytes);
}

testing::AssertionResult conserves(const port_counters& counters)
{
    if (counters.received == counters.delivered + counters.held + counters.dropped_total())
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << fmt::format("received {}, delivered {}, held {}, dropped {}",
                                                      counters.received, counters.delivered, counters.held,
                                                      counters.dropped_total());
}

testing::AssertionResult all_accounted(const port_counters& counters, std::uint64_t sent)
{
    if (counters.received == sent && counters.held == 0)
        return conserves(counters);
    return testing::AssertionFailure() << fmt::format("received {} of {}, held {}", counters.received, sent,
                                                      counters.held);
}

std::uint64_t dropped(const port_counters& counters, drop_reason reason)
{
    return counters.dropped[static_cast<std::size_t>(reason)];
}

} // namespace weftio::test
