// Any frames as what a network sends to the kernel of weftio-packets, from Ethernet to HTTP.
//
// The input is a row of steps: a frame of any bytes, a TCP segment whose numbers are right but for what the input says,
// time that passes, frames that the NIC has sent. Received frames lie against a guard page. Every frame that is sent
// has lengths that agree. In the end the peers are silent and time passes, until no connection is left and every buffer
// is free.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "frame_memory.hpp"
#include "kernel/serve.kernel.h"
#include "raw_entry.hpp"
#include "site.hpp"

namespace weftio::fuzz {

namespace {

using bytes = std::span<const std::uint8_t>;

constexpr std::uint8_t own_mac[] = {2, 0, 0, 0, 0, 1}, peer_mac[] = {2, 0, 0, 0, 0, 2};
constexpr std::uint8_t own_v4[] = {10, 9, 0, 1}, peer_v4[] = {10, 9, 0, 2};
constexpr std::uint8_t own_v6[] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                       peer_v6[] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
constexpr std::uint32_t mtu = 300, buffer_bytes = mtu + 22,
                        good_checksums = WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD | WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD;
constexpr std::uint64_t second_ns = 1'000'000'000;

/// A send queue of frames of `buffer_bytes`, and the NIC behind it.
class nic {
 public:
    static constexpr std::uint32_t depth = 16;

    nic() : frames_(std::size_t{depth} * buffer_bytes)
    {
        txq.queue.abi = WEFTIO_DEV_ABI_ETH_TXQ;
        txq.queue.ring.segments = segments_.data();
        txq.queue.ring.mask = depth - 1;
        txq.queue.ring.dbrec = &record_;
        txq.queue.ring.doorbell = &doorbell_;
        txq.queue.ring.completion = &completion_;
        txq.queue.control = &control_;
        completion_.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        array.abi = WEFTIO_DEV_ABI_BUF_ARR;
        array.base = frames_.data();
        array.stride_bytes = array.buffer_bytes = buffer_bytes;
        array.count = depth;
    }
    nic(const nic&) = delete;
    nic& operator=(const nic&) = delete;

    /// Sends the oldest frame that was committed, if there is one. It is valid until the server goes on.
    std::optional<bytes> send(std::uint64_t now_ns)
    {
        if (sent_ == txq.queue.ring.ready)
            return {};
        const std::uint32_t* const entry = &segments_[(sent_ & (depth - 1)) * std::size_t{16}];
        expect((weftio_swap32(entry[0]) >> 8 & 0xffff) == (sent_ & 0xffff), "an entry lies at its position");
        const std::uint32_t count = weftio_swap32(entry[8]);
        const auto address = std::uint64_t{weftio_swap32(entry[10])} << 32 | weftio_swap32(entry[11]);
        const std::uint8_t* const frame = &frames_[std::size_t{sent_ & (depth - 1)} * buffer_bytes];
        expect(address == reinterpret_cast<std::uint64_t>(frame) && count <= buffer_bytes,
               "a frame lies in its buffer");
        completion_.timestamp_be = weftio_swap64(weftio_real_time_from_ns(now_ns));
        completion_.publication = weftio_cqe_publication(sent_++, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        return bytes(frame, count);
    }

    weftio_dev_eth_txq txq{};
    weftio_dev_buf_arr array{};

 private:
    std::array<std::uint32_t, depth * 16> segments_{};
    std::vector<std::uint8_t> frames_;
    std::uint32_t record_ = 0, sent_ = 0;
    std::uint64_t doorbell_ = 0;
    weftio_cqe completion_{};
    weftio_dev_control control_{};
};

const std::vector<std::byte>& image()
{
    static const std::vector<std::byte> made = [] {
        const packets::site pages({.root = {}, .counters = {{"a"}, {"b.c", HTTP_LARGEST}}, .facts = {}});
        std::vector<std::byte> written(pages.bytes());
        pages.write(written);
        return written;
    }();
    return made;
}

/// What a kernel works with. Little of everything, so that it runs out.
class memory {
 public:
    static constexpr std::uint32_t records = 4, buffers = 2, head_bytes = 200, snapshots = 2;

    explicit memory(nic& behind)
    {
        settings_.address_count = 2;
        std::ranges::copy(own_v4, settings_.addresses[0].bytes);
        settings_.addresses[0].version = 4;
        settings_.addresses[0].prefix = 24;
        std::ranges::copy(own_v6, settings_.addresses[1].bytes);
        settings_.addresses[1].version = 6;
        std::ranges::copy(own_mac, settings_.mac);
        settings_.echo_port = 7;
        settings_.http_port = 80;
        tcp_default_settings(&tcp_);
        tcp_.key[0] = 1;
        tcp_.key[1] = 2;
        tcp_.mtu = mtu;
        tcp_.receive_window = head_bytes;
        tcp_.half_open_limit = 2;
        tcp_.keep_alive = 20 * TCP_SECOND;
        pool_.limit = records;
        make_http();
        worker.tcp.records = reinterpret_cast<std::uint8_t*>(records_.data());
        worker.tcp.pool = &pool_;
        worker.tcp.settings = &tcp_;
        worker.tcp.buckets = buckets_.data();
        worker.tcp.lists = lists_.data();
        worker.tcp.record_bytes = sizeof(connection);
        worker.tcp.bucket_mask = static_cast<std::uint32_t>(buckets_.size()) - 1;
        server.settings = &settings_;
        server.worker = &worker;
        server.sender = start_sending(&behind.txq, &behind.array, &worker.counters);
    }
    memory(const memory&) = delete;
    memory& operator=(const memory&) = delete;

    void expect_at_rest() const
    {
        expect(worker.tcp.connections == 0 && pool_.in_use == 0 && worker.tcp.half_open == 0,
               "every connection ends when its peer is silent");
        expect(worker.http.free_count == worker.http.buffer_count, "every buffer comes back");
        for (std::uint32_t each = 0; each < snapshots; ++each)
            expect(http_snapshot_at(&worker.http.snapshots, each)->users == 0, "every snapshot comes back");
    }

    packets_worker worker{};
    struct server server {};

 private:
    void make_http()
    {
        worker.http.site = reinterpret_cast<const http_site*>(image().data());
        worker.http.limits = {10 * second_ns, head_bytes, head_bytes / 2, 40, 0};
        worker.http.values = {values_, 2, 2};
        const std::uint32_t stride = http_snapshot_bytes(worker.http.site);
        snapshots_.resize(std::size_t{snapshots} * stride);
        worker.http.snapshots = {snapshots_.data(), stride, snapshots, 0, 0};
        worker.http.path = path_.data();
        worker.http.buffers = buffers_.data();
        std::iota(free_.begin(), free_.end(), 0u);
        worker.http.free_buffers = free_.data();
        worker.http.buffer_count = worker.http.free_count = buffers;
    }

    static constexpr weftio_u64 values_[4] = {1, ~0ull, 22, 333};

    packets_settings settings_{};
    tcp_settings tcp_{};
    tcp_pool pool_{};
    std::array<connection, records> records_{};
    std::array<weftio_u32, 4> buckets_{};
    std::array<weftio_u32, TCP_LISTS> lists_{};
    std::array<std::uint8_t, head_bytes / 2> path_{};
    std::array<std::uint8_t, std::size_t{head_bytes} * buffers> buffers_{};
    std::array<weftio_u32, buffers> free_{};
    std::vector<std::uint8_t> snapshots_;
};

/// A port of the peer: what the server has sent to it last.
struct peer_port {
    std::uint32_t expected = 1000; ///< by the server
    std::uint32_t received = 0;    ///< next byte of the server
    std::uint32_t timestamp = 0;
};

class network {
 public:
    void frame(bytes raw, std::uint32_t flags)
    {
        static frame_memory behind;
        const bytes at = behind.against_the_end(raw);
        const weftio_dev_packet packet = {
            const_cast<std::uint8_t*>(at.data()), static_cast<std::uint32_t>(at.size()), flags, now_ns_, 0, 0x2005};
        expect(take_packet(&memory_.server, &packet, now_ns_) < VERDICTS, "each frame has a verdict");
        flush_frames(&memory_.server.sender);
        measure_answer(&memory_.server.sender);
    }
    /// In more than a second a NIC sends everything, and the kernel has many turns.
    void pass(std::uint64_t ns)
    {
        if (ns > second_ns)
            send(nic::depth);
        now_ns_ += ns;
        const std::uint32_t most =
            ns > second_ns ? TCP_WHEEL_SLOTS / 64 + 4 : 1; // turns that a round of the wheel takes
        for (std::uint32_t each = 0; each < most; ++each)
            let_time_pass(&memory_.server.sender, &memory_.worker, now_ns_);
        flush_frames(&memory_.server.sender);
    }
    void send(std::uint32_t most)
    {
        for (; most-- != 0;) {
            const std::optional<bytes> frame = nic_.send(now_ns_);
            if (!frame)
                return;
            look_at(*frame);
        }
    }
    void end()
    {
        for (int each = 0; each < 4000 && (memory_.worker.tcp.connections != 0 || each == 0); ++each) {
            send(nic::depth);
            pass(second_ns);
        }
        send(nic::depth);
        memory_.expect_at_rest();
    }
    peer_port& port(bool v6, std::uint32_t number) { return ports_[v6][number % ports_[v6].size()]; }
    static constexpr std::uint16_t first_port = 1000;

 private:
    /// What is sent agrees with itself.
    void look_at(bytes frame)
    {
        expect(frame.size() >= 14 && std::memcmp(frame.data() + 6, own_mac, 6) == 0, "a frame comes from our MAC");
        std::size_t at = 12;
        while (be16_get(&frame[at]) == 0x8100 || be16_get(&frame[at]) == 0x88a8) {
            at += 4;
            expect(frame.size() >= at + 2, "a frame has a type");
        }
        const std::uint32_t type = be16_get(&frame[at]);
        const bytes packet = frame.subspan(at + 2);
        if (type == ETHERTYPE_IPV4) {
            expect(packet.size() >= 20 && packet[0] == 0x45 && be16_get(&packet[2]) == packet.size(),
                   "IPv4 lengths agree");
            look_at_transport(packet[9], packet.subspan(20), false);
        } else if (type == ETHERTYPE_IPV6) {
            expect(packet.size() >= 40 && be16_get(&packet[4]) == packet.size() - 40, "IPv6 lengths agree");
            look_at_transport(packet[6], packet.subspan(40), true);
        } else {
            expect(type == ETHERTYPE_ARP && packet.size() == 28, "what else is sent is an ARP reply");
        }
    }
    void look_at_transport(std::uint32_t protocol, bytes message, bool v6)
    {
        if (protocol == PROTOCOL_UDP)
            expect(message.size() >= 8 && be16_get(&message[4]) == message.size(), "UDP lengths agree");
        if (protocol != PROTOCOL_TCP)
            return;
        tcp_segment segment;
        expect(tcp_parse(message.data(), static_cast<std::uint32_t>(message.size()), &segment) == TCP_PARSED,
               "a segment that is sent can be read");
        peer_port& to = port(v6, segment.destination_port - first_port);
        to.received = segment.sequence + segment.payload_bytes + ((segment.flags & (TCP_SYN | TCP_FIN)) != 0);
        if (segment.flags & TCP_ACK)
            to.expected = segment.acknowledgment;
        to.timestamp = segment.ts_value;
    }

    nic nic_;
    memory memory_{nic_};
    std::uint64_t now_ns_ = 1'000 * second_ns;
    std::array<std::array<peer_port, 4>, 2> ports_{};
};

void append(std::vector<std::uint8_t>& to, bytes more)
{
    to.insert(to.end(), more.begin(), more.end());
}

void append_ip(std::vector<std::uint8_t>& to, bool v6, std::size_t payload)
{
    append(to, own_mac);
    append(to, peer_mac);
    const auto count = static_cast<std::uint16_t>(v6 ? payload : payload + 20);
    const std::uint8_t high = static_cast<std::uint8_t>(count >> 8), low = static_cast<std::uint8_t>(count);
    if (v6) {
        append(to, std::array<std::uint8_t, 10>{0x86, 0xdd, 0x60, 0, 0, 0, high, low, PROTOCOL_TCP, 64});
        append(to, peer_v6);
        append(to, own_v6);
        return;
    }
    append(to, std::array<std::uint8_t, 14>{8, 0, 0x45, 0, high, low, 0, 0, 0x40, 0, 64, PROTOCOL_TCP, 0, 0});
    append(to, peer_v4);
    append(to, own_v4);
}

std::uint32_t moved(std::uint32_t number, numbers& in)
{
    const std::uint8_t by = in.byte();
    return by < 192 ? number : number + static_cast<std::uint32_t>(static_cast<std::int16_t>(in.half()));
}

std::vector<std::uint8_t> taken(numbers& in, std::size_t count)
{
    std::vector<std::uint8_t> made(count);
    std::ranges::generate(made, [&] { return in.byte(); });
    return made;
}

std::vector<std::uint8_t> options(numbers& in, const peer_port& from)
{
    const std::uint8_t kind = in.byte();
    if (kind < 96)
        return {};
    if (kind < 128)
        return {2, 4, 0, in.byte(), 1, 3, 3, in.byte()};
    std::vector<std::uint8_t> made;
    if (kind < 192) {
        made = {1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0};
        be32_put(&made[4], moved(5000, in));
        be32_put(&made[8], from.timestamp);
    } else {
        made = taken(in, 4 * (kind & 7u));
    }
    return made;
}

std::vector<std::uint8_t> payload(numbers& in)
{
    static constexpr std::string_view requests[] = {
        "",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /stats HTTP/1.1\r\nHost: a\r\n\r\nGET /contact HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "HEAD /none HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123",
        "GET / HTTP/1.1\r\nHo"};
    const std::uint8_t kind = in.byte();
    if (kind >= 128)
        return taken(in, kind & 63);
    const std::string_view chosen = requests[kind % std::size(requests)];
    return {chosen.begin(), chosen.end()};
}

/// A segment of one of the peer's ports to the server.
void send_segment(network& to, numbers& in)
{
    const std::uint8_t where = in.byte(), flags = in.byte();
    const bool v6 = where & 1;
    const peer_port& from = to.port(v6, where >> 1);
    const std::vector<std::uint8_t> extra = options(in, from), data = payload(in);
    std::vector<std::uint8_t> frame;
    append_ip(frame, v6, TCP_HEADER_BYTES + extra.size() + data.size());
    const std::size_t at = frame.size();
    frame.resize(at + TCP_HEADER_BYTES);
    be16_put(&frame[at], network::first_port + (where >> 1) % 4);
    be16_put(&frame[at + 2], where & 128 ? 81 : 80);
    be32_put(&frame[at + 4], moved(from.expected, in));
    be32_put(&frame[at + 8], moved(from.received, in));
    frame[at + 12] = static_cast<std::uint8_t>((TCP_HEADER_BYTES + extra.size()) / 4 << 4);
    // Mostly what peers send: SYN, ACK, FIN and ACK, RST.
    static constexpr std::uint8_t usual[] = {TCP_SYN, TCP_ACK, TCP_ACK, TCP_ACK, TCP_FIN | TCP_ACK, TCP_RST};
    frame[at + 13] = flags < 192 ? usual[flags % std::size(usual)] : flags & 63;
    be16_put(&frame[at + 14], where & 64 ? in.byte() : 20'000u);
    append(frame, extra);
    append(frame, data);
    to.frame(frame, good_checksums);
}

void step(network& to, numbers& in)
{
    const std::uint8_t what = in.byte();
    switch (what & 7) {
        case 0: {
            const std::vector<std::uint8_t> raw = taken(in, in.byte());
            to.frame(raw, what >> 3 & 7);
            break;
        }
        case 1: to.pass(std::uint64_t{1} << (16 + (what >> 3))); break; // 65 us to 39 hours
        case 2: to.send(what >> 3); break;
        default:
            send_segment(to, in);
            if (what & 128)
                to.send(nic::depth);
    }
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::network network;
    weftio::fuzz::numbers in(data, bytes);
    while (!in.empty())
        weftio::fuzz::step(network, in);
    network.end();
    return 0;
}
