// Classic pcap files.
#include <gtest/gtest.h>

#include <algorithm>

#include "capture_bytes.hpp"

namespace weftio::replay::test {
namespace {

class Pcap : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BothByteOrders, Pcap, testing::Bool());

TEST_P(Pcap, WithMicrosecondsIsRead)
{
    read_capture all =
        read_all(pcap_header(GetParam()) + pcap_record(GetParam(), 1'700'000'000, 999'999, frame_of(60, 'a')) +
                 pcap_record(GetParam(), 4'294'967'295, 1, frame_of(61, 'b'), 1500));
    ASSERT_EQ(all.frames.size(), 2u);
    EXPECT_FALSE(all.damaged);
    EXPECT_EQ(all.frames[0].time_ns, 1'700'000'000'999'999'000);
    EXPECT_EQ(all.frames[0].bytes, frame_of(60, 'a'));
    EXPECT_EQ(all.frames[1].time_ns, 4'294'967'295'000'001'000);
    EXPECT_EQ(all.frames[1].original_bytes, 1500u);
}

TEST_P(Pcap, WithNanosecondsKeepsEveryDigit)
{
    read_capture all =
        read_all(pcap_header(GetParam(), nanoseconds) + pcap_record(GetParam(), 5, 123'456'789, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].time_ns, 5'123'456'789);
    EXPECT_EQ(all.format, "pcap, nanoseconds");
}

TEST_P(Pcap, WithLongerRecordHeadersIsRead)
{
    std::string record =
        bytes{GetParam()}.u32(1).u32(2).u32(60).u32(60).u32(7).u16(0).put(std::uint8_t{0}).put(std::uint8_t{0}).text;
    read_capture all = read_all(pcap_header(GetParam(), 0xa1b2cd34) + record + frame_of(60));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].bytes, frame_of(60));
    EXPECT_FALSE(all.damaged);
}

TEST_P(Pcap, OfVersion2Point2HasItsLengthsTheOtherWayRound)
{
    std::string record = bytes{GetParam()}.u32(1).u32(2).u32(1500).u32(60).raw(frame_of(60)).text;
    read_capture all = read_all(pcap_header(GetParam(), microseconds, 1, 2) + record);
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].bytes.size(), 60u);
    EXPECT_EQ(all.frames[0].original_bytes, 1500u);
}

/// A frame of `data` bytes x, and as much of an FCS of 4 bytes f as a record of `captured` bytes holds.
std::string with_fcs(std::size_t data, std::size_t captured)
{
    return (frame_of(data) + frame_of(4, 'f')).substr(0, captured);
}

TEST_P(Pcap, WithFrameCheckSequencesIsReadWithoutThem)
{
    constexpr std::uint32_t two_words = 0x24000001;
    read_capture all =
        read_all(pcap_header(GetParam(), microseconds, two_words) +
                 pcap_record(GetParam(), 1, 0, with_fcs(1514, 1518)) + pcap_record(GetParam(), 2, 0, with_fcs(60, 64)));
    ASSERT_EQ(all.frames.size(), 2u);
    EXPECT_EQ(all.frames[0].bytes, frame_of(1514));
    EXPECT_EQ(all.frames[0].original_bytes, 1514u);
    EXPECT_EQ(all.frames[0].fcs_bytes, 4u);
    EXPECT_EQ(all.frames[1].bytes, frame_of(60));
}

TEST_P(Pcap, OfATruncatedFrameHasAPartOfTheFcsOrNone)
{
    constexpr std::uint32_t on_wire = 104; // 100 of data
    for (std::uint32_t captured : {103u, 101u, 100u, 99u, 1u}) {
        read_capture all = read_all(pcap_header(GetParam(), microseconds, 0x24000001) +
                                    pcap_record(GetParam(), 1, 0, with_fcs(100, captured), on_wire));
        ASSERT_EQ(all.frames.size(), 1u);
        EXPECT_EQ(all.frames[0].bytes, frame_of(std::min(captured, 100u))) << captured;
        EXPECT_EQ(all.frames[0].original_bytes, 100u);
        EXPECT_EQ(all.frames[0].fcs_captured, captured > 100 ? captured - 100 : 0) << captured;
    }
}

TEST(PcapLinkType, CountsTheFcsInWordsOf16Bits)
{
    for (std::uint32_t words : {0u, 1u, 2u, 15u}) {
        std::string file = pcap_header(false, microseconds, words << 28 | 0x04000001) +
                           pcap_record(false, 1, 0, frame_of(60)) + pcap_record(false, 1, 0, frame_of(1));
        read_capture all = read_all(file);
        ASSERT_EQ(all.frames.size(), 2u);
        EXPECT_EQ(all.frames[0].bytes.size(), 60 - 2 * words);
        EXPECT_EQ(all.frames[1].bytes.size(), words == 0 ? 1u : 0u); // shorter than its FCS
    }
}

TEST(PcapLinkType, WithoutTheBitThatTheFcsHasALengthHasNone)
{
    read_capture all = read_all(pcap_header(false, microseconds, 0x20000001) + pcap_record(false, 1, 0, frame_of(64)));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].bytes.size(), 64u);
    EXPECT_EQ(all.frames[0].fcs_bytes, 0u);
}

TEST(PcapLinkType, LosesTheBitsThatTellOfTheFcs)
{
    read_capture all = read_all(pcap_header(false, microseconds, 0x24000001) + pcap_record(false, 1, 0, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].link_type, link_type_ethernet);
}

TEST(PcapRecord, OfUsbMayBeLongAndIsPassedOver)
{
    std::string file = pcap_header(false, microseconds, 249) + pcap_record(false, 1, 0, frame_of(longest_frame + 1)) +
                       pcap_record(false, 2, 0, frame_of(64));
    read_capture all = read_all(file);
    ASSERT_EQ(all.frames.size(), 2u);
    EXPECT_TRUE(all.frames[0].bytes.empty());
    EXPECT_EQ(all.frames[1].bytes.size(), 64u);
}

TEST(PcapReader, StartsOverAfterDamage)
{
    std::string file = pcap_header() + pcap_record(false, 1, 0, frame_of(60)) + "torn";
    auto reader = make_reader(input(make_memory_source(file.data(), file.size())));
    EXPECT_EQ(read_all(*reader).frames.size(), 1u);
    EXPECT_TRUE(reader->damaged());
    ASSERT_TRUE(reader->rewind());
    EXPECT_FALSE(reader->damaged());
    EXPECT_EQ(read_all(*reader).frames.size(), 1u);
}

} // namespace
} // namespace weftio::replay::test
