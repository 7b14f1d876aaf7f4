#include "wired_ports.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "dpdk/environment.hpp"

namespace weftio::test {

namespace {

constexpr unsigned wire_frames = 1024, pool_mbufs = 255 + wire_copies;

std::string fresh_name()
{
    static std::atomic<unsigned> made{0};
    return fmt::format("rdma{}", made.fetch_add(1));
}

} // namespace

wired_ports::wired_ports(engine_mode mode, bool rdma_by_packet, unsigned engines) : name_(fresh_name())
{
    dpdk::start_environment(false, {});
    pool_ = rte_pktmbuf_pool_create(name_.c_str(), pool_mbufs, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    for (unsigned to = 0; to < 2; ++to)
        for (unsigned engine = 0; engine < engines; ++engine)
            wires_[to].push_back(
                rte_ring_create(fmt::format("{}_{}_{}", name_, to, engine).c_str(), wire_frames, SOCKET_ID_ANY, 0));
    if (!pool_ || !wires_[0].back() || !wires_[1].back())
        throw std::runtime_error("no rings");
    for (unsigned number = 0; number < 2; ++number) {
        const std::string name = fmt::format("{}{}", name_, number == 0 ? 'a' : 'b');
        std::vector<rte_ring*> sends = wires_[1 - number];
        std::rotate(sends.begin(), sends.begin() + 1, sends.end());
        const int id = rte_eth_from_rings(name.c_str(), wires_[number].data(), engines, sends.data(), engines, 0);
        if (id < 0)
            throw std::runtime_error("no DPDK port on rings");
        ports_[number] =
            port::open("net_ring_" + name, {.mode = mode, .engines = engines, .rdma_by_packet = rdma_by_packet});
        seen_[number].begin(static_cast<std::uint16_t>(id), static_cast<std::uint16_t>(engines), pool_);
    }
}

wired_ports::~wired_ports()
{
    for (unsigned to = 0; to < 2; ++to)
        take(to);
    for (unsigned number = 0; number < 2; ++number) {
        ports_[number].reset();
        seen_[number].end();
        rte_eal_hotplug_remove("vdev", fmt::format("net_ring_{}{}", name_, number == 0 ? 'a' : 'b').c_str());
    }
    EXPECT_EQ(rte_mempool_avail_count(pool_), pool_mbufs) << "mbufs have leaked";
    for (const std::vector<rte_ring*>& wires : wires_)
        for (rte_ring* wire : wires)
            rte_ring_free(wire);
    rte_mempool_free(pool_);
}

void wired_ports::send_to(unsigned number, const std::vector<std::uint8_t>& frame) const
{
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_);
    ASSERT_NE(mbuf, nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size())), frame.data(), frame.size());
    ASSERT_EQ(rte_ring_enqueue(wires_[number][0], mbuf), 0);
}

std::vector<std::vector<std::uint8_t>> wired_ports::take(unsigned number) const
{
    std::vector<std::vector<std::uint8_t>> all;
    void* each = nullptr;
    for (rte_ring* wire : wires_[number])
        while (rte_ring_dequeue(wire, &each) == 0) {
            auto* const mbuf = static_cast<rte_mbuf*>(each);
            const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
            all.emplace_back(data, data + mbuf->data_len);
            rte_pktmbuf_free(mbuf);
        }
    return all;
}

} // namespace weftio::test
