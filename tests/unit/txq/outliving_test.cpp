// Frames that are still with a driver, or with whoever received them, when their memory, their queue or their port
// goes.
#include <malloc.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "log_lines.hpp"
#include "sanitized.hpp"
#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t sent_frames = 32;

/// A DPDK port that the application has made, closes, and looks into.
class applications_port {
 public:
    applications_port() : loopback_(port::open("null", {.mode = engine_mode::inline_worker})) // for DPDK
    {
        static std::atomic<unsigned> made{0};
        name_ = fmt::format("outliving{}", made.fetch_add(1));
        out_ = rte_ring_create((name_ + "o").c_str(), 128, SOCKET_ID_ANY, 0);
        in_ = rte_ring_create((name_ + "i").c_str(), 128, SOCKET_ID_ANY, 0);
        EXPECT_GE(rte_eth_from_rings(name_.c_str(), &in_, 1, &out_, 1, 0), 0);
    }
    applications_port(const applications_port&) = delete;
    applications_port& operator=(const applications_port&) = delete;
    ~applications_port()
    {
        rte_eal_hotplug_remove("vdev", ("net_ring_" + name_).c_str());
        rte_ring_free(in_);
        rte_ring_free(out_);
    }
    port open() const { return port::open("net_ring_" + name_, {.mode = engine_mode::inline_worker}); }
    std::vector<rte_mbuf*> take_mbufs() const
    {
        std::vector<rte_mbuf*> taken;
        for (void* frame = nullptr; rte_ring_dequeue(out_, &frame) == 0;)
            taken.push_back(static_cast<rte_mbuf*>(frame));
        return taken;
    }

 private:
    port loopback_;
    std::string name_;
    rte_ring *out_, *in_;
};

unsigned pools()
{
    unsigned count = 0;
    rte_mempool_walk([](rte_mempool*, void* counted) { ++*static_cast<unsigned*>(counted); }, &count);
    return count;
}

bytes contents(const rte_mbuf& mbuf)
{
    const auto* data = rte_pktmbuf_mtod(&mbuf, const std::uint8_t*);
    return {data, data + mbuf.data_len};
}

void run_dry(port& port)
{
    while (port.turn() != 0) {
    }
}

void send_numbered(const eth_txq& queue, const numbered_buffers& frames)
{
    for (std::uint32_t number = 0; number < sent_frames; ++number)
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), frames[number], frames.size(), 0),
                  WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(queue.handle());
    weftio_dev_eth_txq_push(queue.handle());
}

/// Memory that has been freed soon holds something else.
void overwrite_freed_memory(const device& device, std::size_t bytes)
{
    std::vector<memory> taken;
    for (int block = 0; block < 4; ++block) {
        taken.push_back(device.allocate(bytes, memory_kind::cpu_device));
        std::memset(taken.back().cpu_address(), 0xee, bytes);
    }
}

/// What arrives at a port, as far as it does.
std::vector<bytes> receive_all(port& port, const device& device)
{
    eth_rxq queue(port, device, {.packets = 64});
    flow everything(port, flow_match{}, flow_action::to(queue));
    run_dry(port);
    std::uint32_t count = 0, first = 0;
    weftio_dev_eth_rxq_receive_thread(queue.handle(), sent_frames, 1'000'000'000, &count, &first);
    std::vector<bytes> received;
    for (std::uint32_t index = first; index != first + count; ++index) {
        weftio_dev_packet packet{};
        EXPECT_EQ(weftio_dev_eth_rxq_packet(queue.handle(), index, &packet), WEFTIO_DEV_OK);
        received.emplace_back(packet.address, packet.address + packet.bytes);
    }
    weftio_dev_eth_rxq_release(queue.handle(), first, count);
    return received;
}

TEST(Outliving, FramesArriveIntactWhenTheirQueueIsClosedBeforeTheirBuffers)
{
    device cpu = device::open("cpu");
    port loopback = port::open("loopback", {.mode = engine_mode::inline_worker});
    log_lines log;
    {
        numbered_buffers frames(loopback, cpu, 64, 1500);
        eth_txq queue(loopback, cpu, {.entries = 64});
        send_numbered(queue, frames);
        run_dry(loopback);
    }
    overwrite_freed_memory(cpu, 64 * 1536);
    EXPECT_EQ(receive_all(loopback, cpu), numbered_run(0, sent_frames, 1500));
    ASSERT_EQ(log.lines.size(), 1u);
    EXPECT_THAT(log.lines[0], HasSubstr("memory of 98304 bytes at"));
    EXPECT_THAT(log.lines[0], HasSubstr("it is kept until they are returned"));
}

TEST(Outliving, FramesArriveIntactWhenTheirRegionAndMemoryAreClosedFirst)
{
    device cpu = device::open("cpu");
    port loopback = port::open("loopback", {.mode = engine_mode::inline_worker});
    log_lines log;
    eth_txq queue(loopback, cpu, {.entries = 64});
    {
        numbered_buffers frames(loopback, cpu, 64, 1500);
        send_numbered(queue, frames);
        run_dry(loopback);
    }
    overwrite_freed_memory(cpu, 64 * 1536);
    EXPECT_EQ(receive_all(loopback, cpu), numbered_run(0, sent_frames, 1500));
    run_dry(loopback);
    EXPECT_EQ(queue.counters().sent, sent_frames);
}

/// What malloc has given out, in MiB: what is free there may stay mapped, with what lay in it. 0 with a sanitizer,
/// which has a malloc of its own.
std::size_t allocated_mib()
{
    const struct mallinfo2 heap = mallinfo2();
    return (heap.uordblks + heap.hblkhd) >> 20;
}

TEST(Outliving, MemoryIsFreedWhenItsFramesHaveComeBack)
{
    constexpr std::uint32_t large = 2 << 20;
    device cpu = device::open("cpu");
    sending_port port;
    log_lines log;
    std::optional<buf_arr> frames(std::in_place, port.get(), cpu, buf_arr_options{.count = 64, .buffer_bytes = large});
    eth_txq queue(port.get(), cpu, {.entries = 64});
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_buf_get(frames->handle(), 7), 60, 0),
              WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(queue.handle());
    weftio_dev_eth_txq_push(queue.handle());
    port.run_dry();
    const std::size_t before = allocated_mib();
    frames.reset();
    EXPECT_GE(allocated_mib() + 64, before) << "it was freed under the driver";
    EXPECT_EQ(port.take().size(), 1u);
    port.run_dry();
    buf_arr(port.get(), cpu, {.count = 1, .buffer_bytes = 64}); // whatever is given back looks for more
    EXPECT_TRUE(before == 0 || allocated_mib() + 100 < before) << allocated_mib() << " of " << before;
}

TEST(Outliving, RepliesFromReceiveSlotsArriveIntactWhenTheirQueueHasGone)
{
    device cpu = device::open("cpu");
    sending_port port;
    log_lines log;
    eth_txq queue(port.get(), cpu, {.entries = 64});
    {
        eth_rxq slots(port.get(), cpu, {.packets = 64});
        flow everything(port.get(), flow_match{}, flow_action::to(slots));
        ASSERT_TRUE(port.arrive(numbered(3, 200)));
        port.run_dry();
        std::uint32_t count = 0, first = 0;
        weftio_dev_eth_rxq_receive_thread(slots.handle(), 1, 0, &count, &first);
        ASSERT_EQ(count, 1u);
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_eth_rxq_buf(slots.handle(), first),
                                                         200, 0),
                  WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
        port.run_dry();
    }
    overwrite_freed_memory(cpu, std::size_t{64} * 2240);
    EXPECT_EQ(port.take(), std::vector<bytes>{numbered(3, 200)});
    EXPECT_EQ(log.lines.size(), 1u);
}

/// Frames of every way to be sent: from where they lie, inside the entry, and copied for their checksum.
std::vector<bytes> send_all_kinds(port& port, const device& device)
{
    const bytes datagram = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 400)));
    buf_arr copied(port, device, {.count = 1, .buffer_bytes = 1024});
    std::memcpy(copied.cpu_address(0), datagram.data(), datagram.size());
    numbered_buffers lying(port, device, 64, 1500);
    eth_txq queue(port, device, {.entries = 64});
    raw_queue raw(queue);
    std::vector<bytes> sent;
    for (std::uint32_t number = 0; number < sent_frames; ++number) {
        const weftio_dev_buf buf = weftio_dev_buf_get(copied.handle(), 0), plain = lying[number];
        const auto address = [](const weftio_dev_buf& of) { return reinterpret_cast<std::uint64_t>(of.address); };
        if (number % 3 == 0)
            raw.append(
                send_entry({ethernet_segments(), {pointer(1500, weftio_swap32(plain.lkey_be), address(plain))}}));
        else if (number % 3 == 1)
            raw.append(send_entry({ethernet_segments(), inline_data(numbered(number, 90))}));
        else
            raw.append(send_entry(
                {ethernet_segments({}, WEFTIO_ETH_L3_CHECKSUM | WEFTIO_ETH_L4_CHECKSUM),
                 {pointer(static_cast<std::uint32_t>(datagram.size()), weftio_swap32(buf.lkey_be), address(buf))}}));
        sent.push_back(number % 3 == 0 ? numbered(number, 1500) : number % 3 == 1 ? numbered(number, 90) : datagram);
    }
    raw.push();
    run_dry(port);
    EXPECT_EQ(queue.counters().enqueued, sent_frames);
    return sent;
}

TEST(Outliving, FramesOfAnApplicationsPortAreIntactAndCanBeFreedAfterOurPortHasClosed)
{
    device cpu = device::open("cpu");
    applications_port application;
    const unsigned pools_before = pools();
    std::vector<bytes> sent;
    log_lines log;
    {
        port port = application.open();
        sent = send_all_kinds(port, cpu);
    }
    overwrite_freed_memory(cpu, 64 * 1536);
    std::vector<rte_mbuf*> mbufs = application.take_mbufs();
    ASSERT_EQ(mbufs.size(), sent.size());
    for (std::size_t at = 0; at < sent.size(); ++at)
        EXPECT_EQ(contents(*mbufs[at]), sent[at]) << at;
    rte_pktmbuf_free_bulk(mbufs.data(), static_cast<unsigned>(mbufs.size()));
    const std::string said = fmt::format("{}", fmt::join(log.lines, "\n"));
    EXPECT_THAT(said, HasSubstr("22 of its sent frames"));
    EXPECT_THAT(said, HasSubstr("10 mbufs of pool"));
    port::open("null", {.mode = engine_mode::inline_worker});
    EXPECT_EQ(pools(), pools_before) << "what has come back is freed";
}

} // namespace
} // namespace weftio::test
