#include "program_port.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "log.hpp"
#include "object.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"

namespace weftio::doca {
namespace {

constexpr unsigned ring_entries = 2048, burst = 32, program_threads = 8;
constexpr std::uint32_t slots = 1024, slot_bytes = 2048;
/// Programs parse TCP options beyond the end of a packet until they find a zero.
constexpr std::uint32_t zeroed_bytes = 640;

std::mutex ports_mutex;
std::map<std::uint16_t, program_port*>& ports()
{
    static auto* all = new std::map<std::uint16_t, program_port*>;
    return *all;
}

/// "(0-7)@(0,1)": threads that may run on every core that the process may use.
std::string threads_for_programs()
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::string cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed))
            cores += fmt::format("{}{}", cores.empty() ? "" : ",", core);
    return fmt::format("(0-{})@({})", program_threads - 1, cores);
}

rte_ring* make_ring(const char* direction, unsigned number)
{
    static std::atomic<unsigned> made{0};
    const auto name = fmt::format("doca_{}{}_{}", direction, number, made++);
    rte_ring* ring = rte_ring_create(name.c_str(), ring_entries, SOCKET_ID_ANY, RING_F_SC_DEQ);
    if (!ring)
        throw error(errc::out_of_memory, "weftio: no memory for a ring of a DPDK port");
    return ring;
}

std::uint32_t checksums_of(const rte_mbuf& mbuf)
{
    const std::uint64_t flags = mbuf.ol_flags;
    const std::uint64_t l4 = flags & RTE_MBUF_F_TX_L4_MASK;
    return (flags & RTE_MBUF_F_TX_IP_CKSUM ? WEFTIO_DEV_SEND_L3_CHECKSUM : 0) |
           (l4 == RTE_MBUF_F_TX_UDP_CKSUM || l4 == RTE_MBUF_F_TX_TCP_CKSUM ? WEFTIO_DEV_SEND_L4_CHECKSUM : 0);
}

} // namespace

void start_eal(bool without_pci)
{
    note_use();
    // The port that starts EAL closes at once, and its number is free again.
    if (without_pci && rte_lcore_count() <= 1)
        port::open("null", {.mode = engine_mode::inline_worker, .eal_arguments = {"--lcores", threads_for_programs()}});
}

program_port::program_port()
{
    for (unsigned queue = 0; queue < most_queues; ++queue) {
        receive_rings_.push_back(make_ring("rx", queue));
        send_rings_.push_back(make_ring("tx", queue));
    }
    receivers_.resize(most_queues);
    open();
}

void program_port::open()
{
    std::lock_guard lock(mutex_);
    if (is_open_)
        return;
    static std::atomic<unsigned> made{0};
    const int id = rte_eth_from_rings(fmt::format("doca{}", made++).c_str(), receive_rings_.data(), most_queues,
                                      send_rings_.data(), most_queues, 0);
    if (id < 0)
        throw error(errc::out_of_memory, "weftio: no DPDK port could be made for the program");
    id_ = static_cast<std::uint16_t>(id);
    is_open_ = true;
    std::lock_guard ports_lock(ports_mutex);
    ports()[id_] = this;
}

void program_port::close() noexcept
{
    stop();
    std::lock_guard lock(mutex_);
    is_open_ = is_probed = false;
    for (auto& one : receivers_)
        one.pool = nullptr;
    std::lock_guard ports_lock(ports_mutex);
    if (auto found = ports().find(id_); found != ports().end() && found->second == this)
        ports().erase(found);
}

program_port::~program_port()
{
    const bool was_open = is_open_;
    close();
    if (was_open) {
        rte_eth_dev_stop(id_);
        rte_eth_dev_close(id_);
    }
    for (auto* rings : {&receive_rings_, &send_rings_})
        for (rte_ring* ring : *rings) {
            for (void* mbuf = nullptr; rte_ring_dequeue(ring, &mbuf) == 0;)
                rte_pktmbuf_free(static_cast<rte_mbuf*>(mbuf));
            rte_ring_free(ring);
        }
}

program_port* program_port::find(std::uint16_t id)
{
    std::lock_guard lock(ports_mutex);
    auto found = ports().find(id);
    return found == ports().end() ? nullptr : found->second;
}

void program_port::set_pool(std::uint16_t queue, rte_mempool* pool)
{
    std::lock_guard lock(mutex_);
    if (queue < most_queues)
        receivers_[queue].pool = pool;
}

void program_port::start()
{
    std::lock_guard lock(mutex_);
    if (thread_.joinable())
        return;
    const auto cpu = device::open("cpu");
    for (auto& one : receivers_)
        if (one.pool)
            one.queue.emplace(
                *port_, cpu,
                eth_rxq_options{.packets = slots, .max_packet_bytes = slot_bytes, .verify_checksums = false});
    sender_.emplace(*port_, cpu, eth_txq_options{.entries = slots});
    frames_.emplace(*port_, cpu, buf_arr_options{.count = slots, .buffer_bytes = slot_bytes});
    next_frame_ = 0;
    stops_ = false;
    thread_ = std::thread(&program_port::run, this);
    pthread_setname_np(thread_.native_handle(), "weftio-doca");
}

void program_port::stop() noexcept
{
    std::lock_guard lock(mutex_);
    if (!thread_.joinable())
        return;
    stops_ = true;
    thread_.join();
    for (auto& one : receivers_)
        one.queue.reset();
    sender_.reset();
    frames_.reset();
}

const eth_rxq* program_port::queue(std::uint16_t number)
{
    std::lock_guard lock(mutex_);
    return number < most_queues && receivers_[number].queue ? &*receivers_[number].queue : nullptr;
}

bool program_port::has_queue(std::uint16_t number)
{
    std::lock_guard lock(mutex_);
    return number < most_queues && receivers_[number].pool;
}

void program_port::run()
{
    for (weftio_u32 attempt = 0; !stops_; ++attempt) {
        unsigned carried = 0;
        for (std::uint16_t number = 0; number < most_queues; ++number) {
            if (receivers_[number].queue)
                carried += receive(number);
            carried += send(number);
        }
        if (carried) {
            attempt = 0;
            weftio_dev_eth_txq_commit_strong(sender_->handle());
            weftio_dev_eth_txq_push(sender_->handle());
        }
        weftio_relax(attempt);
    }
}

unsigned program_port::receive(std::uint16_t number)
{
    auto* queue = receivers_[number].queue->handle();
    weftio_u32 count = 0, first = 0;
    weftio_dev_eth_rxq_receive_thread(queue, burst, 1, &count, &first);
    for (weftio_u32 packet = 0; packet < count; ++packet)
        deliver(number, first + packet);
    weftio_dev_eth_rxq_release(queue, first, count);
    return count;
}

/// Copies a packet into an mbuf of the program's; a packet for which there is none, or no room, is lost.
void program_port::deliver(std::uint16_t number, std::uint32_t index)
{
    weftio_dev_packet packet{};
    rte_mbuf* mbuf = rte_pktmbuf_alloc(receivers_[number].pool);
    if (!mbuf)
        return;
    weftio_dev_eth_rxq_packet(receivers_[number].queue->handle(), index, &packet);
    char* bytes = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(packet.bytes));
    if (!bytes) {
        rte_pktmbuf_free(mbuf);
        return;
    }
    std::memcpy(bytes, packet.address, packet.bytes);
    std::memset(bytes + packet.bytes, 0, std::min<std::size_t>(rte_pktmbuf_tailroom(mbuf), zeroed_bytes));
    mbuf->port = id();
    if (rte_ring_enqueue(receive_rings_[number], mbuf) != 0)
        rte_pktmbuf_free(mbuf);
}

unsigned program_port::send(std::uint16_t number)
{
    void* mbufs[burst];
    const unsigned count = rte_ring_dequeue_burst(send_rings_[number], mbufs, burst, nullptr);
    for (unsigned mbuf = 0; mbuf < count; ++mbuf) {
        enqueue(mbufs[mbuf]);
        rte_pktmbuf_free(static_cast<rte_mbuf*>(mbufs[mbuf]));
    }
    return count;
}

/// Copies a frame into the next buffer, once the entry before the last round is done. Returns whether it will be sent.
bool program_port::enqueue(void* mbuf)
{
    const auto& frame = *static_cast<rte_mbuf*>(mbuf);
    auto* queue = sender_->handle();
    if (frame.pkt_len > slot_bytes || frame.pkt_len == 0)
        return false;
    if (weftio_dev_eth_txq_wait_room(queue, 1, 1'000'000'000) != WEFTIO_DEV_OK)
        return false;
    auto* buffer = static_cast<std::uint8_t*>(frames_->cpu_address(next_frame_ % slots));
    const void* bytes = rte_pktmbuf_read(&frame, 0, frame.pkt_len, buffer);
    if (bytes != buffer)
        std::memcpy(buffer, bytes, frame.pkt_len);
    const bool is_sent =
        weftio_dev_eth_txq_send_enqueue_strong(queue, weftio_dev_buf_get(frames_->handle(), next_frame_), frame.pkt_len,
                                               checksums_of(frame)) == WEFTIO_DEV_OK;
    next_frame_ += is_sent;
    return is_sent;
}

} // namespace weftio::doca
