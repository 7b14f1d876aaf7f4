// Captures that are wrong on purpose: each ends in damage at a known place, and libpcap counts the same frames.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cstdio>

#include "capture_bytes.hpp"

namespace weftio::replay::test {
namespace {

struct sample {
    const char* name;
    std::string file;
    std::size_t frames;
    std::optional<std::uint64_t> damaged_at;
    bool libpcap_agrees = true; ///< it cannot read files of several link types, snap lengths or byte orders
};

const std::string good_pcap = pcap_header() + pcap_record(false, 1, 0, frame_of(60));          // 100 bytes
const std::string good_ng = section() + interface_block() + packet(false, 0, 1, frame_of(60)); // 28 + 20 + 92 bytes

std::string with_length(std::uint32_t captured)
{
    return good_pcap + bytes{}.u32(2).u32(0).u32(captured).u32(captured).text + frame_of(100);
}

std::vector<sample> pcap_samples()
{
    return {
        {"truncated_file_header", pcap_header().substr(0, 23), 0, 0},
        {"header_only", pcap_header(), 0, {}},
        {"truncated_record_header", good_pcap + std::string(15, '\0'), 1, 100},
        {"truncated_body", good_pcap + pcap_record(false, 2, 0, frame_of(60)).substr(0, 75), 1, 100},
        {"body_missing", good_pcap + pcap_record(false, 2, 0, frame_of(60)).substr(0, 16), 1, 100},
        {"length_0x7fffffff", with_length(0x7fffffff), 1, 100},
        {"length_262145_whole", good_pcap + pcap_record(false, 2, 0, frame_of(262145)), 1, 100},
        {"length_0xffffffff", with_length(0xffffffff), 1, 100},
        {"length_262145", with_length(262145), 1, 100},
        {"length_0", good_pcap + pcap_record(false, 2, 0, "") + pcap_record(false, 3, 0, frame_of(60)), 3, {}},
        {"empty", "", 0, 0},
        {"two_bytes", "ab", 0, 0},
        {"unknown_magic", std::string(4096, '\x5a'), 0, 0},
        {"version_3", pcap_header(false, microseconds, 1, 4).replace(4, 2, "\x03", 2), 0, 4},
        {"out_of_order", good_pcap + pcap_record(false, 0, 5, frame_of(60)), 2, {}},
        {"equal_times", good_pcap + pcap_record(false, 1, 0, frame_of(60)), 2, {}},
        {"a_year_apart", good_pcap + pcap_record(false, 31'557'600, 0, frame_of(60)), 2, {}},
        {"two_million_microseconds", good_pcap + pcap_record(false, 1, 2'000'000, frame_of(60)), 2, {}},
        {"longest_frame", good_pcap + pcap_record(false, 2, 0, frame_of(262144)), 2, {}},
        {"runts", good_pcap + pcap_record(false, 2, 0, frame_of(1)) + pcap_record(false, 3, 0, frame_of(13)), 3, {}}};
}

std::vector<sample> pcapng_samples()
{
    std::string next = packet(false, 0, 2, frame_of(60));
    std::string overrun = bytes{}.u16(9).u16(200).u32(0).text;
    return {
        {"ng_section_only", section(), 0, {}, false},
        {"ng_truncated_section", section().substr(0, 20), 0, 0},
        {"ng_bad_magic", block(false, 0x0a0d0d0a, frame_of(16)), 0, 8},
        {"ng_version_2", section(false, ~0ull, 2), 0, 12},
        {"ng_section_length_0", section(false, 0) + interface_block() + next, 1, {}},
        {"ng_section_length_huge", section(false, 1ull << 62) + interface_block() + next, 1, {}},
        {"ng_packet_before_section", packet(false, 0, 1, frame_of(60)), 0, 0},
        {"ng_packet_before_interface", section() + next, 0, 36},
        {"ng_truncated_block_header", good_ng + next.substr(0, 7), 1, 140},
        {"ng_truncated_block", good_ng + next.substr(0, 91), 1, 140},
        {"ng_length_not_of_4", good_ng + block(false, 6, frame_of(80), 91), 1, 144},
        {"ng_length_0", good_ng + bytes{}.u32(6).u32(0).raw(next).text, 1, 144},
        {"ng_length_8", good_ng + bytes{}.u32(7).u32(8).raw(next).text, 1, 144},
        {"ng_length_0x7ffffffc", good_ng + bytes{}.u32(6).u32(0x7ffffffc).raw(next).text, 1, 144},
        {"ng_length_of_unknown_block_too_long", good_ng + bytes{}.u32(0x0bad).u32(4000).raw(next).text, 1, 140},
        {"ng_trailer_differs", good_ng + block(false, 6, frame_of(80, '\0'), 92, 96), 1, 228},
        {"ng_trailer_of_unknown_block_differs", good_ng + block(false, 0x0bad, frame_of(80), 92, 96) + next, 1, 228},
        {"ng_interface_out_of_range", good_ng + packet(false, 1, 2, frame_of(60)), 1, 148},
        {"ng_interface_0xffffffff", good_ng + packet(false, ~0u, 2, frame_of(60)), 1, 148},
        {"ng_captured_more_than_block", good_ng + packet(false, 0, 2, frame_of(60), 64), 1, 140},
        {"ng_captured_0xfffffffe", good_ng + packet(false, 0, 2, frame_of(60), 0xfffffffe), 1, 140},
        {"ng_frame_of_262145", good_ng + packet(false, 0, 2, frame_of(262145)), 1, 140},
        {"ng_option_overrun", section() + interface_block(false, overrun) + next, 0, 44},
        {"ng_tsresol_of_2_bytes", section() + interface_block(false, option(false, 9, "ab")) + next, 0, 44},
        {"ng_tsoffset_of_4_bytes", section() + interface_block(false, option(false, 14, "abcd")) + next, 0, 44},
        {"ng_link_types_differ",
         good_ng + interface_block(false, {}, 113) + packet(false, 1, 2, frame_of(60)) + next,
         3,
         {},
         false},
        {"ng_simple_before_interface", section() + simple_packet(false, frame_of(60), 60), 0, 28},
        {"ng_simple_too_long", section() + interface_block() + simple_packet(false, frame_of(60), 64), 0, 48},
        {"ng_zeros_behind", good_ng + std::string(64, '\0'), 1, 144},
        {"ng_tsresol_10_to_127", section() + interface_block(false, tsresol(false, 127)) + next, 1, {}, false},
        {"ng_tsresol_2_to_127", section() + interface_block(false, tsresol(false, 0xff)) + next, 1, {}, false},
        {"ng_tsoffset_least",
         section() + interface_block(false, tsoffset(false, std::int64_t{1} << 63)) + next,
         1,
         {}}};
}

class Hostile : public testing::TestWithParam<sample> {};
auto name_of = [](const testing::TestParamInfo<sample>& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Pcap, Hostile, testing::ValuesIn(pcap_samples()), name_of);
INSTANTIATE_TEST_SUITE_P(Pcapng, Hostile, testing::ValuesIn(pcapng_samples()), name_of);

TEST_P(Hostile, CaptureEndsWhereItShould)
{
    read_capture all = read_all(GetParam().file);
    EXPECT_EQ(all.frames.size(), GetParam().frames);
    ASSERT_EQ(all.damaged.has_value(), GetParam().damaged_at.has_value()) << (all.damaged ? all.damaged->reason : "");
    if (all.damaged) {
        EXPECT_EQ(all.damaged->offset, *GetParam().damaged_at) << all.damaged->reason;
        EXPECT_FALSE(all.damaged->reason.empty());
    }
}

/// Frames that libpcap reads, and whether it ends well.
std::pair<std::size_t, bool> by_libpcap(std::string file)
{
    char why[PCAP_ERRBUF_SIZE];
    file.push_back('\0'); // fmemopen wants at least one byte
    std::FILE* stream = fmemopen(file.data(), std::max<std::size_t>(file.size() - 1, 1), "rb");
    if (file.size() == 1)
        std::fgetc(stream);
    pcap_t* capture = pcap_fopen_offline(stream, why);
    if (!capture) {
        std::fclose(stream);
        return {0, false};
    }
    pcap_pkthdr* header;
    const u_char* data;
    std::size_t frames = 0;
    int result;
    while ((result = pcap_next_ex(capture, &header, &data)) == 1)
        ++frames;
    pcap_close(capture);
    return {frames, result == PCAP_ERROR_BREAK};
}

TEST_P(Hostile, CaptureIsJudgedAsByLibpcap)
{
    if (!GetParam().libpcap_agrees)
        return;
    auto [frames, good] = by_libpcap(GetParam().file);
    EXPECT_EQ(frames, GetParam().frames);
    EXPECT_EQ(good, !GetParam().damaged_at.has_value());
}

TEST(HostileReader, KeepsSayingNoAfterDamage)
{
    std::string file = good_pcap + "torn";
    auto reader = make_reader(input(make_memory_source(file.data(), file.size())));
    frame next;
    EXPECT_TRUE(reader->next(next));
    for (int i = 0; i < 3; ++i)
        EXPECT_FALSE(reader->next(next));
}

} // namespace
} // namespace weftio::replay::test
