// Every packet that Linux sent in the captures of tests/captures/roce: read, its ICRC computed, and built again.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fuzz/guarded.hpp"
#include "net/roce_headers.hpp"
#include "reading.hpp"

namespace {

using namespace weftio::net;
using roce_reading::bytes;

/// Frames that a relay made invalid on purpose, counted from 1; their ICRC is right.
const std::map<std::pair<std::string, std::size_t>, roce_refusal> invalid{
    {{"rxe-altered", 17}, roce_refusal::unknown_version},
    {{"rxe-altered", 22}, roce_refusal::unknown_opcode},
    {{"rxe-altered", 80}, roce_refusal::wrong_pad},
    {{"rxe-altered", 126}, roce_refusal::no_extended_headers},
};

class RoceCaptures : public testing::TestWithParam<std::filesystem::path> {
 protected:
    const std::vector<bytes> frames = roce_reading::frames_of(GetParam());

    roce_refusal expected(std::size_t number) const
    {
        const auto found = invalid.find({GetParam().stem().string(), number});
        return found == invalid.end() ? roce_refusal::none : found->second;
    }
};

/// The IP packet without its ICRC, found without the parser.
std::span<const std::uint8_t> covered_by_hand(const bytes& frame)
{
    return std::span(frame).subspan(14, static_cast<std::size_t>(frame[16] << 8 | frame[17]) - icrc_bytes);
}

TEST_P(RoceCaptures, AreRead)
{
    ASSERT_FALSE(frames.empty());
    for (std::size_t at = 0; at < frames.size(); ++at) {
        roce_packet packet;
        EXPECT_EQ(parse_roce(frames[at], packet), expected(at + 1)) << "frame " << at + 1;
    }
}

TEST_P(RoceCaptures, HaveTheirIcrc)
{
    for (std::size_t at = 0; at < frames.size(); ++at) {
        const auto covered = covered_by_hand(frames[at]);
        EXPECT_EQ(icrc_of(covered), load_icrc(covered.data() + covered.size())) << "frame " << at + 1;
        roce_packet packet;
        if (parse_roce(frames[at], packet) == roce_refusal::none) {
            EXPECT_TRUE(packet.icrc_good()) << "frame " << at + 1;
        }
    }
}

/// Takes out what is not written by build_roce(): reserved bits, the checksum of UDP, bytes behind the ICRC.
bytes as_built(bytes frame)
{
    frame.resize(14 + static_cast<std::size_t>(frame[16] << 8 | frame[17]));
    frame[40] = frame[41] = 0;
    frame[46] &= 0xc0;
    frame[50] &= 0x80;
    const auto covered = covered_by_hand(frame);
    store_icrc(&frame[frame.size() - icrc_bytes], roce_reading::icrc_by_zlib(covered));
    return frame;
}

TEST_P(RoceCaptures, AreBuiltAgainByteForByte)
{
    std::size_t different = 0;
    for (std::size_t at = 0; at < frames.size(); ++at) {
        roce_packet packet;
        if (parse_roce(frames[at], packet) != roce_refusal::none)
            continue;
        bytes frame(frames[at].size());
        frame.resize(build_whole_roce(frame, packet.path, packet.headers, packet.payload));
        EXPECT_EQ(frame, as_built(frames[at])) << "frame " << at + 1;
        different += frame != frames[at];
    }
    EXPECT_EQ(different,
              GetParam().stem() == "rxe-altered" ? 4u : 0u); // reserved bits twice, UDP checksum, trailing bytes
}

TEST_P(RoceCaptures, AreRefusedWhenTruncated)
{
    using weftio::fuzz::guarded;
    guarded memory(2 * guarded::page);
    std::byte* const end = memory.kernel() + memory.bytes();
    for (std::size_t at = 0; at < frames.size(); ++at) {
        const bytes frame = as_built(frames[at]);
        for (std::size_t count = 0; count < frame.size(); ++count) {
            std::memcpy(end - count, frame.data(), count);
            roce_packet packet;
            ASSERT_NE(parse_roce({reinterpret_cast<const std::uint8_t*>(end - count), count}, packet),
                      roce_refusal::none)
                << "frame " << at + 1 << ", " << count << " bytes";
        }
    }
}

std::string name_of(const testing::TestParamInfo<std::filesystem::path>& tested)
{
    std::string name = tested.param.stem().string() + "_" + std::to_string(tested.index);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Linux, RoceCaptures, testing::ValuesIn(roce_reading::captures()), name_of);

} // namespace
