// The last packets of a port's queue pairs, as a capture file.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "nic/soft/rdma/rdma_unit.hpp"
#include "public_pair.hpp"
#include "two_ends.hpp"
#include "unit/nic/capture_files.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

using bytes = std::vector<std::uint8_t>;

struct traced_packet {
    std::uint64_t time_ns = 0;
    std::uint32_t kept = 0, whole = 0, flags = 0;
    bytes start{};
};

std::uint32_t word_at(const bytes& file, std::size_t at)
{
    std::uint32_t word = 0;
    std::memcpy(&word, file.data() + at, sizeof word);
    return word;
}

/// The packets of a file whose blocks are whole; any other has none.
std::vector<traced_packet> packets_of(const bytes& file)
{
    constexpr std::uint32_t enhanced_packet = 6;
    std::vector<traced_packet> all;
    for (std::size_t at = 0; at < file.size();) {
        const std::uint32_t length = word_at(file, at + 4);
        if (length < 12 || length % 4 != 0 || length > file.size() - at || word_at(file, at + length - 4) != length)
            return {};
        if (word_at(file, at) == enhanced_packet) {
            traced_packet packet{.time_ns = std::uint64_t{word_at(file, at + 12)} << 32 | word_at(file, at + 16),
                                 .kept = word_at(file, at + 20),
                                 .whole = word_at(file, at + 24)};
            const auto start = file.begin() + static_cast<std::ptrdiff_t>(at + 28);
            packet.start.assign(start, start + packet.kept);
            packet.flags = word_at(file, at + 28 + (packet.kept + 3) / 4 * 4 + 4);
            all.push_back(std::move(packet));
        }
        at += length;
    }
    return all;
}

bytes content_of(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What a program prints.
std::string printed_by(const std::string& command)
{
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string text;
    std::array<char, 4096> part;
    while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe.get()))
        text.append(part.data(), count);
    return text;
}

/// Two queue pairs on two ports, whose first port keeps packets.
class RdmaTrace : public testing::Test {
 protected:
    void SetUp() override
    {
        for (unsigned end = 0; end < 2; ++end)
            ends.unit(end).trace_packets();
        ends.connect();
    }
    void write(std::uint32_t bytes, std::uint32_t key_change = 0)
    {
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote(ends.memory(1).address(), ends.memory(1).region.lkey() ^ key_change),
                                          ends.memory(0).local(0, bytes)});
        a.push();
        ends.run();
    }

    two_ends ends{false};
    fake_pair& a = ends.queue(0);
};

} // namespace

TEST_F(RdmaTrace, KeepsWhatWasSentAndReceivedWithTimeAndDirection)
{
    const std::uint64_t before = utc_now_ns();
    write(8);
    const std::vector<traced_packet> all = packets_of(a.nic().trace(""));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].flags, 2u) << "sent";
    EXPECT_EQ(all[1].flags, 1u) << "received";
    EXPECT_EQ(all[0].whole, 82u);
    EXPECT_EQ(all[0].kept, 82u);
    EXPECT_EQ(all[1].whole, 62u);
    EXPECT_GE(all[0].time_ns + 1'000'000'000, before);
    EXPECT_LE(all[0].time_ns, all[1].time_ns);
    EXPECT_EQ(all[0].start.at(14 + 20 + 8), static_cast<std::uint8_t>(net::roce_opcode::rc_write_only));
    const std::vector<traced_packet> peer = packets_of(ends.queue(1).nic().trace(""));
    ASSERT_EQ(peer.size(), 2u);
    EXPECT_EQ(peer[0].flags, 1u);
    EXPECT_EQ(peer[0].start, all[0].start);
}

TEST_F(RdmaTrace, KeepsTheLastPacketsAndTheirFirstBytes)
{
    constexpr std::uint32_t most = nic::soft::packet_trace::most_packets;
    for (unsigned sent = 0; sent < most; ++sent)
        write(8);
    write(500);
    const std::vector<traced_packet> all = packets_of(a.nic().trace("of these"));
    ASSERT_EQ(all.size(), most);
    const traced_packet& last = all[most - 2]; // its ACK came behind it
    EXPECT_EQ(last.whole, 574u);
    EXPECT_EQ(last.kept, nic::soft::packet_trace::most_bytes);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                               [](const auto& one, const auto& other) { return one.time_ns < other.time_ns; }));
}

TEST_F(RdmaTrace, IsReadByTsharkWhichNamesTheNak)
{
    if (std::system("tshark --version > /dev/null 2>&1") != 0)
        GTEST_SKIP() << "tshark is missing (apt-get install tshark)";
    write(8);
    write(8, 1);
    const scratch_folder folder;
    const std::string path = folder / "trace.pcapng";
    const bytes file = a.nic().trace("why\nit failed");
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
    const std::string shown = printed_by(fmt::format("tshark -r {} -V 2>&1", path));
    EXPECT_THAT(shown, HasSubstr("Remote Access Error")) << shown;
    EXPECT_THAT(shown, HasSubstr("Direction: Inbound"));
    EXPECT_THAT(shown, HasSubstr("Opcode: Reliable Connection (RC) - RDMA WRITE Only (10)"));
    const std::string lines = printed_by(fmt::format("tshark -r {} 2>/dev/null", path));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
}

/// They exchange packets as soon as these are kept, also when they are connected already.
TEST(RdmaTraceOfOnePort, ShowsWhatItsQueuePairsAskEachOther)
{
    two_ends ends(true);
    ends.connect();
    fake_pair& a = ends.queue(0);
    for (const bool kept : {false, true}) {
        if (kept)
            ends.unit(0).trace_packets();
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
        a.push();
        ends.run();
        EXPECT_EQ(packets_of(a.nic().trace("")).size(), kept ? 4u : 0u) << "a request and its ACK, sent and received";
    }
    EXPECT_EQ(a.nic().counters().done, 2u);
    EXPECT_EQ(ends.memory(1).copy()[7], ends.memory(0).copy()[7]);
}

TEST(RdmaTraceFile, IsWrittenWhenItIsAskedForAndHasTheDump)
{
    for (const bool of_one_device : {false, true}) {
        wired_ports ports(engine_mode::thread);
        const rdma_device at(ports.get(0), {.address = "10.0.0.1", .trace = of_one_device});
        rdma_queue queue(at, device::open("cpu"));
        const scratch_folder folder;
        const std::string path = folder / "trace.pcapng";
        if (!of_one_device) {
            const weftio::error thrown = error_of([&] { queue.write_trace(path); });
            EXPECT_EQ(thrown.code(), errc::not_supported);
            EXPECT_THAT(thrown.what(), HasSubstr("its port records no packets; set rdma_device_options::trace"));
            EXPECT_FALSE(std::filesystem::exists(path));
            continue;
        }
        queue.write_trace(path);
        const bytes file = content_of(path);
        EXPECT_THAT(std::string(file.begin(), file.end()), HasSubstr(to_string(queue.dump()).substr(0, 20)));
        EXPECT_TRUE(packets_of(file).empty()) << "it has not sent any";
        const weftio::error thrown = error_of([&] { queue.write_trace(folder / "no/such"); });
        EXPECT_EQ(thrown.code(), errc::not_found);
        EXPECT_THAT(thrown.what(), HasSubstr("cannot write"));
    }
}

TEST(RdmaTraceFile, IsWrittenWhenAQueuePairFails)
{
    const scratch_folder folder;
    setenv("WEFTIO_RDMA_TRACE", (folder / "").c_str(), 1);
    two_ends ends(false);
    unsetenv("WEFTIO_RDMA_TRACE");
    ends.connect();
    fake_pair& a = ends.queue(0);
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote(ends.memory(1).address(), 7), ends.memory(0).local(0, 8)});
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return a.nic().failed() && ends.queue(1).nic().failed(); }));
    ends.run();
    std::vector<bytes> files;
    for (const auto& each : std::filesystem::directory_iterator(folder / ""))
        files.push_back(content_of(each.path()));
    ASSERT_EQ(files.size(), 2u) << "one of each end";
    for (const bytes& file : files) {
        const std::vector<traced_packet> all = packets_of(file);
        ASSERT_EQ(all.size(), 2u);
        constexpr std::size_t syndrome = 14 + 20 + 8 + 12;
        EXPECT_EQ(all[1].start.at(syndrome), 0x62) << "the NAK is there at both ends";
        EXPECT_THAT(std::string(file.begin(), file.end()), HasSubstr(" failed: "));
    }
}

/// Its program has stopped it.
TEST(RdmaTraceFile, IsNotWrittenForAQueuePairThatIsStopped)
{
    const scratch_folder folder;
    setenv("WEFTIO_RDMA_TRACE", (folder / "").c_str(), 1);
    two_ends ends(false);
    unsetenv("WEFTIO_RDMA_TRACE");
    ends.connect();
    ends.queue(0).nic().stop_sending();
    ends.queue(1).restart();
    ends.run();
    EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

} // namespace weftio::test
