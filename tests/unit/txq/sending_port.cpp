#include "sending_port.hpp"
#include "software_nic.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "dpdk/environment.hpp"
#include "unit/nic/as_a_driver.hpp"

namespace weftio::test {

namespace {

constexpr unsigned pool_mbufs = 4095;

std::string fresh_name()
{
    static std::atomic<unsigned> made{0};
    return fmt::format("txq{}", made.fetch_add(1));
}

} // namespace

sending_port::sending_port(port_options options) : name_(fresh_name())
{
    dpdk::start_environment(false, {});
    pool_ = rte_pktmbuf_pool_create(name_.c_str(), pool_mbufs, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    out_ = rte_ring_create((name_ + "o").c_str(), wire_frames + 1, SOCKET_ID_ANY, 0);
    in_ = rte_ring_create((name_ + "i").c_str(), wire_frames + 1, SOCKET_ID_ANY, 0);
    if (!pool_ || !out_ || !in_ || rte_eth_from_rings(name_.c_str(), &in_, 1, &out_, 1, 0) < 0)
        throw std::runtime_error("no DPDK port on rings");
    port_ = port::open("net_ring_" + name_, std::move(options));
}

sending_port::~sending_port()
{
    take();
    port_.reset();
    void* left = nullptr;
    while (rte_ring_dequeue(in_, &left) == 0)
        rte_pktmbuf_free(static_cast<rte_mbuf*>(left));
    EXPECT_EQ(rte_mempool_avail_count(pool_), pool_mbufs)
        << "mbufs have leaked, or queues and flows outlive the port's owner";
    rte_eal_hotplug_remove("vdev", ("net_ring_" + name_).c_str());
    rte_ring_free(in_);
    rte_ring_free(out_);
    rte_mempool_free(pool_);
}

void sending_port::run_dry()
{
    while (port_->turn() != 0) {
    }
}

std::uint32_t sending_port::on_the_wire() const
{
    return rte_ring_count(out_);
}

rte_mbuf* sending_port::take_mbuf() const
{
    void* frame = nullptr;
    return rte_ring_dequeue(out_, &frame) == 0 ? static_cast<rte_mbuf*>(frame) : nullptr;
}

std::vector<bytes> sending_port::take() const
{
    as_a_driver unseen;
    std::vector<bytes> taken;
    while (rte_mbuf* mbuf = take_mbuf()) {
        EXPECT_EQ(mbuf->nb_segs, 1);
        auto* data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
        taken.emplace_back(data, data + mbuf->data_len);
        rte_pktmbuf_free(mbuf);
    }
    return taken;
}

std::vector<bytes> sending_port::send_all()
{
    std::vector<bytes> all;
    for (bool moved = true; moved;) {
        moved = port_->turn() != 0;
        std::vector<bytes> some = take();
        moved = moved || !some.empty();
        all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return all;
}

bool sending_port::arrive(const bytes& frame) const
{
    as_a_driver unseen;
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    if (!mbuf)
        return false;
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size())), frame.data(), frame.size());
    if (rte_ring_enqueue(in_, mbuf) == 0)
        return true;
    rte_pktmbuf_free(mbuf);
    return false;
}

segment control(std::uint32_t opcode, std::uint32_t segments, std::uint8_t completion)
{
    return {weftio_swap32((opcode & 0xff00u) << 16 | (opcode & 0xffu)), weftio_swap32(segments),
            std::uint32_t{completion} << 24, 0};
}

entry_words ethernet_segments(const bytes& header, std::uint8_t cs_flags)
{
    const std::size_t more = header.size() > 2 ? header.size() - 2 : 0;
    entry_words segments(1 + (more + 15) / 16, segment{});
    segments[0][1] = cs_flags;
    auto* raw = reinterpret_cast<std::uint8_t*>(segments.data());
    raw[12] = static_cast<std::uint8_t>(header.size() >> 8);
    raw[13] = static_cast<std::uint8_t>(header.size());
    std::copy(header.begin(), header.end(), raw + 14);
    return segments;
}

segment pointer(std::uint32_t byte_count, std::uint32_t key, std::uint64_t address)
{
    return {weftio_swap32(byte_count), weftio_swap32(key), weftio_swap32(static_cast<std::uint32_t>(address >> 32)),
            weftio_swap32(static_cast<std::uint32_t>(address))};
}

entry_words inline_data(const bytes& data)
{
    entry_words segments((4 + data.size() + 15) / 16, segment{});
    segments[0][0] = weftio_swap32(WEFTIO_INLINE_SEGMENT | static_cast<std::uint32_t>(data.size()));
    std::copy(data.begin(), data.end(), reinterpret_cast<std::uint8_t*>(segments.data()) + 4);
    return segments;
}

entry_words wait_segments(std::uint64_t value, std::uint32_t condition)
{
    return {{weftio_swap32(condition), 0, 0, 0},
            {weftio_swap32(static_cast<std::uint32_t>(value >> 32)), weftio_swap32(static_cast<std::uint32_t>(value)),
             0, 0xffffffffu}};
}

entry_words send_entry(std::initializer_list<entry_words> parts, std::uint8_t completion)
{
    entry_words entry(1);
    for (const entry_words& part : parts)
        entry.insert(entry.end(), part.begin(), part.end());
    entry[0] = control(WEFTIO_OPCODE_SEND, static_cast<std::uint32_t>(entry.size()), completion);
    return entry;
}

entry_words wait_entry(std::uint64_t value, std::uint32_t condition)
{
    entry_words entry = wait_segments(value, condition);
    entry.insert(entry.begin(), control(WEFTIO_OPCODE_WAIT | WEFTIO_WAIT_ON_TIME << 8, 3));
    return entry;
}

std::uint32_t raw_queue::append(entry_words entry, std::optional<std::uint32_t> index)
{
    const weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq_->queue.ring);
    std::uint32_t position = next_;
    entry[0][0] |= weftio_swap32((index.value_or(position) & 0xffff) << 8);
    entry[0][1] |= weftio_swap32(ring.queue << 8);
    for (std::uint32_t at = 0; at < entry.size(); ++at)
        weftio_dev_send_segment(ring, position, at, entry[at][0], entry[at][1], entry[at][2], entry[at][3]);
    next_ += static_cast<std::uint32_t>(entry.size() + 3) / 4;
    return position;
}

void raw_queue::push()
{
    claim(next_);
}

void raw_queue::claim(std::uint32_t ready)
{
    txq_->queue.ring.reserved = txq_->queue.ring.asked = ready;
    weftio_dev_send_publish(&txq_->queue.ring, ready);
    weftio_dev_eth_txq_push(txq_);
}

testing::AssertionResult conserves(const eth_txq_counters& counters)
{
    if (counters.enqueued == counters.sent + counters.waited + counters.failed + counters.flushed)
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << fmt::format("enqueued {}, sent {}, waited {}, failed {}, flushed {}",
                                                      counters.enqueued, counters.sent, counters.waited,
                                                      counters.failed, counters.flushed);
}

void start_at(const port& port, const eth_txq& queue, std::uint32_t index)
{
    weftio_dev_send_ring& ring = queue.handle()->queue.ring;
    software_nic(port).engine().between_turns([&] {
        nic::soft::tx_queue& nic_side = software_nic(port).sender().queue(queue.number());
        nic_side.stop();
        EXPECT_TRUE(nic_side.all_returned());
        nic_side.restart(nic_side.ring(), index);
        auto* completion = const_cast<weftio_cqe*>(ring.completion);
        weftio_store_release_sys_u32(&completion->publication,
                                     weftio_cqe_publication(index - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0));
        ring.reserved = ring.asked = ring.ready = ring.completed = index;
        weftio_store_release_sys_u32(ring.dbrec, weftio_swap32(index & 0xffffu));
    });
}

bytes numbered(std::uint32_t number, std::size_t size)
{
    bytes frame = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}; // an ether type for experiments
    for (unsigned shift = 0; shift < 32; shift += 8)
        frame.push_back(static_cast<std::uint8_t>(number >> shift));
    for (std::size_t at = frame.size(); at < size; ++at)
        frame.push_back(static_cast<std::uint8_t>((number * 2654435761u >> at % 24) + at));
    frame.resize(size);
    return frame;
}

std::uint32_t number_in(const bytes& frame)
{
    std::uint32_t number = 0;
    if (frame.size() >= 18)
        std::memcpy(&number, &frame[14], sizeof number);
    return number;
}

std::vector<bytes> numbered_run(std::uint32_t first, std::uint32_t count, std::size_t size)
{
    std::vector<bytes> frames;
    for (std::uint32_t number = first; number != first + count; ++number)
        frames.push_back(numbered(number, size));
    return frames;
}

numbered_buffers::numbered_buffers(const port& port, const device& device, std::uint32_t count, std::uint32_t size)
    : size_(size), frames_(port, device, {.count = count, .buffer_bytes = size})
{
    for (std::uint32_t number = 0; number < count; ++number) {
        bytes frame = numbered(number, size);
        std::memcpy(frames_.cpu_address(number), frame.data(), frame.size());
    }
}

} // namespace weftio::test
