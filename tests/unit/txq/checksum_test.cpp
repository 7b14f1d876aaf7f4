// Checksums that an entry asks for: right by our own sums, and right for tshark.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <fmt/format.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

using frames::ethernet;

constexpr std::uint32_t both = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM;

/// Frames whose checksums are right.
std::vector<bytes> good_frames()
{
    using namespace frames;
    return {udp4(),
            tcp4(),
            udp6(),
            ethernet({}, 0x86dd, ipv6({.protocol = 6}, tcp(1, 2, 2, 12))),
            ethernet({{0x8100, 0x2005}}, 0x0800, ipv4({.protocol = 6, .option_bytes = 12}, tcp(1, 2, 2, 20))),
            ethernet({{0x8100, 5}}, 0x86dd, ipv6({}, udp(3, 4, 100))),
            ethernet({{0x88a8, 7}, {0x8100, 8}}, 0x0800, ipv4({}, udp(9, 10, 1))),
            ethernet({{0x88a8, 7}, {0x8100, 8}}, 0x86dd, ipv6({.protocol = 6}, tcp(1, 2))),
            ethernet({{0x9100, 7}, {0x9100, 8}}, 0x0800, ipv4({}, udp(11, 12, 2))),
            ethernet({}, 0x0800, ipv4({}, udp(1, 2, 1472))),
            ethernet({}, 0x0800, ipv4({}, udp(1, 2, 1471))),
            ethernet({}, 0x0800, ipv4({}, udp(1, 2, 0))),
            ethernet({}, 0x86dd, ipv6({.extensions = {hop_by_hop(), destination_options(3)}}, udp(7, 8)))};
}

std::size_t l3_at(const bytes& frame)
{
    std::size_t at = 12;
    while ((frame[at] == 0x81 && frame[at + 1] == 0) || frame[at] == 0x88 || frame[at] == 0x91)
        at += 4;
    return at + 2;
}

/// The same frame with nonsense where its checksums belong; which of them are asked for is left to the caller.
bytes spoiled(bytes frame, bool l3, bool l4)
{
    const std::size_t ip = l3_at(frame);
    const bool four = frame[ip] >> 4 == 4;
    std::size_t l4_at = ip + (four ? (frame[ip] & 15u) * 4u : 40u);
    std::uint8_t protocol = four ? frame[ip + 9] : frame[ip + 6];
    while (protocol == 0 || protocol == 60) {
        protocol = frame[l4_at];
        l4_at += (frame[l4_at + 1] + 1u) * 8u;
    }
    if (l3 && four)
        frames::set(frame, ip + 10, 0xdead);
    if (l4)
        frames::set(frame, l4_at + (protocol == 17 ? 6 : 16), 0xbeef);
    return frame;
}

bytes padded(bytes frame)
{
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    return frame;
}

/// Puts frames into buffers and sends them.
class frame_sender {
 public:
    frame_sender(const port& port, const device& device, std::uint32_t buffer_bytes = 2048)
        : queue(port, device, {.entries = 64}), buffers(port, device, {.count = 64, .buffer_bytes = buffer_bytes})
    {}
    void send(const bytes& frame, std::uint32_t flags)
    {
        std::memcpy(buffers.cpu_address(next_), frame.data(), frame.size());
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_buf_get(buffers.handle(), next_),
                                                         static_cast<std::uint32_t>(frame.size()), flags),
                  WEFTIO_DEV_OK);
        next_ = (next_ + 1) % 64;
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
    }

    eth_txq queue;
    buf_arr buffers;

 private:
    std::uint32_t next_ = 0;
};

class SendChecksums : public testing::Test {
 protected:
    device cpu = device::open("cpu");
    sending_port port;
    frame_sender sender{port.get(), cpu};
};

TEST_F(SendChecksums, AreComputedWhereTheyAreAskedFor)
{
    for (const bytes& frame : good_frames())
        for (bool l3 : {false, true})
            for (bool l4 : {false, true}) {
                sender.send(spoiled(frame, l3, l4),
                            (l3 ? WEFTIO_DEV_SEND_L3_CHECKSUM : 0) | (l4 ? WEFTIO_DEV_SEND_L4_CHECKSUM : 0));
                ASSERT_EQ(port.send_all(), std::vector<bytes>{padded(frame)}) << l3 << l4;
            }
}

TEST_F(SendChecksums, LeaveTheKernelsBufferAlone)
{
    bytes spoiled_frame = spoiled(frames::udp4(), true, true);
    sender.send(spoiled_frame, both);
    port.send_all();
    auto* buffer = static_cast<std::uint8_t*>(sender.buffers.cpu_address(0));
    EXPECT_EQ(bytes(buffer, buffer + spoiled_frame.size()), spoiled_frame);
    EXPECT_EQ(sender.queue.counters().copied_bytes, spoiled_frame.size());
}

TEST_F(SendChecksums, LeaveAloneWhatHasNone)
{
    using namespace frames;
    for (const bytes& frame : {numbered(1, 200), bytes(14, 0x11), bytes(5, 0x22),
                               ethernet({}, 0x86dd, ipv6({.extensions = {routing(1)}}, udp(1, 2))),
                               ethernet({}, 0x0800, ipv4({.fragment = 0x2000}, udp(1, 2)))}) {
        sender.send(frame, WEFTIO_DEV_SEND_L4_CHECKSUM);
        ASSERT_EQ(port.send_all(), std::vector<bytes>{padded(frame)});
    }
    bytes torn = udp4(); // an IPv4 header that promises more than there is
    torn[14] = 0x4f;
    torn.resize(34);
    sender.send(torn, both);
    EXPECT_EQ(port.send_all(), std::vector<bytes>{padded(torn)});
}

TEST_F(SendChecksums, WriteFfffForAUdpSumOfZero)
{
    // The payload is chosen so that the sum comes out as 0.
    bytes frame = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 2)));
    std::size_t udp = 14 + 20;
    auto sum_now = static_cast<std::uint16_t>(frame[udp + 6] << 8 | frame[udp + 7]);
    std::uint32_t payload = static_cast<std::uint32_t>(frame[udp + 8] << 8 | frame[udp + 9]) + sum_now;
    frames::set(frame, udp + 8, static_cast<std::uint16_t>((payload & 0xffff) + (payload >> 16)));
    frames::set(frame, udp + 6, 0);
    sender.send(frame, WEFTIO_DEV_SEND_L4_CHECKSUM);
    frames::set(frame, udp + 6, 0xffff);
    EXPECT_EQ(port.send_all(), std::vector<bytes>{padded(frame)});
}

/// Output of a shell command, and whether it ran.
std::optional<std::string> output_of(const std::string& command)
{
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    char line[4096];
    while (pipe && std::fgets(line, sizeof line, pipe))
        output += line;
    return pipe && pclose(pipe) == 0 ? std::optional(output) : std::nullopt;
}

/// A frame with checksums is copied: its mbuf must hold the longest frame, which needs all of its 16 bits.
TEST(SendChecksumsInACapture, AreThoseOfTheLongestFrame)
{
    constexpr std::uint16_t most_mtu = 65'513;
    const bytes frame =
        ethernet({{0x88a8, 7}, {0x8100, 8}}, 0x0800, frames::ipv4({}, frames::udp(9, 10, most_mtu - 20 - 8)));
    ASSERT_EQ(frame.size(), 65'535u);
    const auto file = std::filesystem::temp_directory_path() / fmt::format("weftio-longest-{}.pcap", getpid());
    {
        device cpu = device::open("cpu");
        port capture = port::open("pcap:tx=" + file.string(), {.mode = engine_mode::inline_worker, .mtu = most_mtu});
        EXPECT_EQ(capture.mtu(), most_mtu);
        frame_sender sender(capture, cpu, 65'536);
        for (int copy = 0; copy < 300; ++copy) // more than there are mbufs
            sender.send(spoiled(frame, true, true), both);
        EXPECT_EQ(sender.queue.counters().sent, 300u);
    }
    EXPECT_EQ(std::filesystem::file_size(file), 24 + 300 * (16 + frame.size()));
    std::ifstream written(file, std::ios::binary);
    bytes first(frame.size());
    written.seekg(24 + 16).read(reinterpret_cast<char*>(first.data()), static_cast<std::streamsize>(first.size()));
    EXPECT_EQ(first, frame);
    std::filesystem::remove(file);
}

TEST(SendChecksumsInACapture, AreGoodForTshark)
{
    if (!output_of("tshark --version 2>/dev/null"))
        GTEST_SKIP() << "missed: tshark's opinion of checksums; install tshark";
    std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("weftio-checksums-{}.pcap", getpid())).string();
    {
        device cpu = device::open("cpu");
        port capture = port::open("pcap:tx=" + file, {.mode = engine_mode::inline_worker});
        frame_sender sender(capture, cpu);
        for (const bytes& frame : good_frames())
            sender.send(spoiled(frame, true, true), both);
        EXPECT_EQ(sender.queue.counters().sent, good_frames().size());
    }
    std::string command = "tshark -r " + file +
                          " -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -o tcp.check_checksum:TRUE -T fields "
                          "-e ip.checksum.status -e udp.checksum.status -e tcp.checksum.status 2>/dev/null";
    std::string opinion = output_of(command).value_or("");
    // 1: good. A frame has an IPv4 sum or none, and a UDP or a TCP sum.
    std::string expected;
    for (const bytes& frame : good_frames()) {
        const std::size_t ip = l3_at(frame);
        const bool four = frame[ip] >> 4 == 4;
        const bool tcp = (four ? frame[ip + 9] : frame[ip + 6]) == 6;
        expected += fmt::format("{}\t{}\t{}\n", four ? "1" : "", tcp ? "" : "1", tcp ? "1" : "");
    }
    EXPECT_EQ(opinion, expected);
    std::filesystem::remove(file);
}

} // namespace
} // namespace weftio::test
