// Capture files as ports.
#include "capture_files.hpp"
#include "injected_port.hpp"

namespace weftio::test {
namespace {

std::vector<timed_frame> numbered_records(std::uint32_t count)
{
    std::vector<timed_frame> records;
    for (std::uint32_t number = 0; number < count; ++number)
        records.push_back({1'700'000'000 + number, 123'456 + number, numbered_frame(number, 60 + number % 1400)});
    return records;
}

/// A capture read to its end by a kernel that takes everything and checks that they are numbered_records().
struct replay {
    explicit replay(const std::string& file, std::uint32_t queue_packets = 1024)
        : from(port::open("pcap:" + file, {.mode = engine_mode::inline_worker})),
          queue(from, device::open("cpu"), {.packets = queue_packets}), everything(from, {}, flow_action::to(queue))
    {
        fake_kernel kernel(queue);
        for (bool last = false; !last;) {
            last = from.exhausted();
            for (const weftio_dev_packet& packet : kernel.receive()) {
                EXPECT_EQ(packet.timestamp_ns,
                          (1'700'000'000u + received) * 1'000'000'000 + (123'456 + received) * 1000);
                EXPECT_EQ(number_of(packet), received);
                EXPECT_TRUE(is_intact(packet));
                ++received;
            }
            kernel.release(kernel.held());
        }
        EXPECT_TRUE(conserves(from.counters()));
        EXPECT_EQ(from.counters().delivered, received);
    }

    port from;
    eth_rxq queue;
    flow everything;
    std::uint64_t received = 0;
};

class Capture : public testing::Test {
 protected:
    scratch_folder folder;
};

TEST_F(Capture, IsDeliveredToTheLastPacketAlsoThroughASmallQueue)
{
    std::string file = folder.write("a.pcap", pcap_file(numbered_records(1000)));
    replay through(file, 64);
    EXPECT_EQ(through.received, 1000u);
    EXPECT_EQ(through.from.counters().dropped_total(), 0u);
    EXPECT_EQ(through.from.counters().capture_damaged, 0u);
}

TEST_F(Capture, OfTheOtherByteOrderIsRead)
{
    EXPECT_EQ(replay(folder.write("a.pcap", pcap_file(numbered_records(10), {.swapped = true}))).received, 10u);
}

TEST_F(Capture, InThePcapngFormatIsRead)
{
    replay through(folder.write("a.pcapng", pcapng_file(numbered_records(10))));
    EXPECT_EQ(through.received, 10u);
    EXPECT_EQ(through.from.counters().capture_damaged, 0u);
}

TEST_F(Capture, WithoutPacketsIsExhaustedAtOnce)
{
    for (const std::string& file : {folder.write("a.pcap", pcap_file({})), folder.write("a.pcapng", pcapng_file({}))}) {
        replay through(file);
        EXPECT_EQ(through.received, 0u);
        EXPECT_EQ(through.from.counters().capture_damaged, 0u);
    }
}

TEST_F(Capture, IsNotExhaustedWhileNobodyWantsItOrTheQueueIsFull)
{
    std::string file = folder.write("a.pcap", pcap_file(numbered_records(100)));
    port from = port::open("pcap:" + file, {.mode = engine_mode::inline_worker});
    eth_rxq queue(from, device::open("cpu"), {.packets = 64});
    EXPECT_EQ(from.turn(), 0u);
    EXPECT_FALSE(from.exhausted());
    flow everything(from, {}, flow_action::to(queue));
    for (int turn = 0; turn < 10; ++turn)
        from.turn();
    EXPECT_EQ(from.counters().received, 64u);
    EXPECT_FALSE(from.exhausted());
    fake_kernel kernel(queue);
    EXPECT_EQ(kernel.receive().size(), 64u);
    kernel.release(64);
    for (int turn = 0; turn < 10; ++turn)
        from.turn();
    EXPECT_TRUE(from.exhausted());
}

TEST_F(Capture, HasFramesLongerThanAnMbuf)
{
    std::string file = folder.write("a.pcap", pcap_file({{1'700'000'000, 123'456, numbered_frame(0, 9000)}}));
    port from = port::open("pcap:" + file, {.mode = engine_mode::inline_worker});
    eth_rxq queue(from, device::open("cpu"), {.packets = 64, .max_packet_bytes = 9216});
    flow everything(from, {}, flow_action::to(queue));
    weftio_dev_packet packet = fake_kernel(queue).receive_one();
    EXPECT_EQ(packet.bytes, 9000u);
    EXPECT_TRUE(is_intact(packet));
}

/// Warnings about an FCS while a port is opened.
std::vector<std::string> fcs_warnings(const std::string& file)
{
    std::vector<std::string> lines;
    set_log_sink([&](log_level level, std::string_view line) {
        if (level == log_level::warning && line.find("frame check sequence") != std::string::npos)
            lines.emplace_back(line);
    });
    port::open("pcap:" + file, {.mode = engine_mode::inline_worker});
    set_log_sink({});
    return lines;
}

TEST_F(Capture, WithFrameCheckSequencesIsToldOfInTheLog)
{
    const auto records = numbered_records(1);
    for (const std::string& file :
         {folder.write("a.pcap", pcap_file(records, {.link_type = 0x24000001})),
          folder.write("b.pcap", pcap_file(records, {.swapped = true, .link_type = 0x24000001})),
          folder.write("c.pcapng", pcapng_file(records, 1, 4))}) {
        const std::vector<std::string> lines = fcs_warnings(file);
        ASSERT_EQ(lines.size(), 1u) << file;
        EXPECT_NE(lines[0].find("of 4 bytes"), std::string::npos) << lines[0];
        EXPECT_NE(lines[0].find("pcap:tx=NEW.pcap"), std::string::npos) << lines[0];
    }
    for (const std::string& file : {folder.write("d.pcap", pcap_file(records)),
                                    folder.write("e.pcap", pcap_file(records, {.link_type = 0x20000001})),
                                    folder.write("f.pcapng", pcapng_file(records))})
        EXPECT_TRUE(fcs_warnings(file).empty()) << file; // a length without bit 26 says nothing
}

/// Where a file is cut: bytes taken away from its end.
class CutCapture : public testing::TestWithParam<std::size_t> {
 protected:
    scratch_folder folder;
};

TEST_P(CutCapture, IsDeliveredUpToTheCutAndCountedAsDamaged)
{
    frames::bytes content = pcap_file(numbered_records(100));
    content.resize(content.size() - GetParam());
    replay through(folder.write("cut.pcap", content));
    EXPECT_EQ(through.received, 99u);
    EXPECT_EQ(through.from.counters().capture_damaged, 1u);
}

TEST_P(CutCapture, InThePcapngFormatIsCountedAsDamagedToo)
{
    frames::bytes content = pcapng_file(numbered_records(100));
    content.resize(content.size() - GetParam());
    replay through(folder.write("cut.pcapng", content));
    EXPECT_EQ(through.received, 99u);
    EXPECT_EQ(through.from.counters().capture_damaged, 1u);
}

INSTANTIATE_TEST_SUITE_P(Before, CutCapture,
                         testing::Values(1u, 60u, 158u, 160u, 174u)); // the last record is 16 + 159 bytes

TEST_F(Capture, WhoseLastRecordIsMissingAsAWholeIsNotDamaged)
{
    frames::bytes content = pcap_file(numbered_records(100));
    content.resize(content.size() - 16 - 159);
    replay through(folder.write("short.pcap", content));
    EXPECT_EQ(through.received, 99u);
    EXPECT_EQ(through.from.counters().capture_damaged, 0u);
}

TEST_F(Capture, WithARecordThatCannotBeOneIsDamaged)
{
    frames::bytes content = pcap_file(numbered_records(3));
    put_word(content, 1);
    put_word(content, 2);
    put_word(content, 0xfffffff0u);
    put_word(content, 0xfffffff0u);
    content.resize(content.size() + 5000);
    replay through(folder.write("odd.pcap", content));
    EXPECT_EQ(through.received, 3u);
    EXPECT_EQ(through.from.counters().capture_damaged, 1u);
}

TEST(BuiltinCapture, IsReadAsOftenAsItIsOpened)
{
    for (int time = 0; time < 2; ++time) {
        port from = port::open("pcap:builtin", {.mode = engine_mode::inline_worker});
        eth_rxq queue(from, device::open("cpu"));
        flow everything(from, {}, flow_action::to(queue));
        for (int turn = 0; !from.exhausted() && turn < 100; ++turn)
            from.turn();
        EXPECT_TRUE(from.exhausted());
        EXPECT_EQ(queue.counters().delivered, 50u);
    }
}

TEST(SampleCapture, HasTwoHundredAndThirtySixPackets)
{
    const std::string file = "/usr/share/sip-tester/g711a.pcap";
    if (!std::filesystem::exists(file))
        GTEST_SKIP() << "missed: a capture that another program made; install sip-tester";
    port from = port::open("pcap:" + file, {.mode = engine_mode::inline_worker});
    eth_rxq queue(from, device::open("cpu"));
    flow everything(from, {}, flow_action::to(queue));
    for (int turn = 0; !from.exhausted() && turn < 100; ++turn)
        from.turn();
    EXPECT_EQ(queue.counters().delivered, 236u);
}

TEST_F(Capture, IsWrittenAndReadByOnePort)
{
    std::string in = folder.write("in.pcap", pcap_file(numbered_records(5))), out = folder / "out.pcap";
    {
        port both = port::open("pcap:rx=" + in + ",tx=" + out, {.mode = engine_mode::inline_worker});
        eth_rxq queue(both, device::open("cpu"));
        flow everything(both, {}, flow_action::to(queue));
        EXPECT_EQ(fake_kernel(queue).receive().size(), 5u);
    }
    EXPECT_TRUE(std::filesystem::exists(out));
}

} // namespace
} // namespace weftio::test
