// pcapng files.
#include <gtest/gtest.h>

#include <limits>

#include "capture_bytes.hpp"
#include "reader/ticks.hpp"

namespace weftio::replay::test {
namespace {

class Pcapng : public testing::TestWithParam<bool> {
 protected:
    bool big = GetParam();
};
INSTANTIATE_TEST_SUITE_P(BothByteOrders, Pcapng, testing::Bool());

TEST_P(Pcapng, PacketsOfAllThreeKindsAreRead)
{
    read_capture all =
        read_all(section(big) + interface_block(big, {}, 1, 64) + packet(big, 0, 1'000'001, frame_of(60, 'e')) +
                 simple_packet(big, frame_of(64, 's'), 100) + obsolete_packet(big, 0, 2'000'002, frame_of(61, 'o')));
    ASSERT_EQ(all.frames.size(), 3u);
    EXPECT_FALSE(all.damaged);
    EXPECT_EQ(all.frames[0].time_ns, 1'000'001'000);
    EXPECT_EQ(all.frames[0].bytes, frame_of(60, 'e'));
    EXPECT_EQ(all.frames[1].bytes, frame_of(64, 's')); // cut to the interface's snap length
    EXPECT_EQ(all.frames[1].original_bytes, 100u);
    EXPECT_FALSE(all.frames[1].has_time);
    EXPECT_EQ(all.frames[2].time_ns, 2'000'002'000);
    EXPECT_EQ(all.frames[2].bytes, frame_of(61, 'o'));
}

TEST_P(Pcapng, EveryInterfaceHasItsOwnClockAndLinkType)
{
    std::string nanosecond = interface_block(big, tsresol(big, 9) + tsoffset(big, -10)),
                binary = interface_block(big, tsresol(big, 0x8a), 113);
    read_capture all = read_all(section(big) + nanosecond + binary + packet(big, 1, 1536, frame_of(60)) +
                                packet(big, 0, 12'345'678'901, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 2u);
    EXPECT_EQ(all.frames[0].time_ns, 1'500'000'000);
    EXPECT_EQ(all.frames[0].link_type, 113u);
    EXPECT_EQ(all.frames[1].time_ns, 2'345'678'901);
    EXPECT_EQ(all.frames[1].link_type, 1u);
}

TEST_P(Pcapng, SectionsOfBothByteOrdersFollowEachOther)
{
    read_capture all =
        read_all(section(big) + interface_block(big) + packet(big, 0, 1, frame_of(60)) + section(!big, 28) +
                 interface_block(!big, tsresol(!big, 9)) + packet(!big, 0, 2, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 2u);
    EXPECT_FALSE(all.damaged);
    EXPECT_EQ(all.frames[1].time_ns, 2); // the second section's interface, not the first's
}

TEST_P(Pcapng, BlocksThatAreNotKnownAreSkipped)
{
    std::string unknown = block(big, 0x80000bad, frame_of(300'000)), statistics = block(big, 5, frame_of(8)),
                names = block(big, 4, frame_of(4));
    read_capture all = read_all(section(big) + unknown + interface_block(big) + statistics + names +
                                packet(big, 0, 1, frame_of(60)) + unknown);
    EXPECT_EQ(all.frames.size(), 1u);
    EXPECT_FALSE(all.damaged);
}

TEST_P(Pcapng, OptionsBehindTheEndOfOptionsAreNotRead)
{
    read_capture all = read_all(section(big) + interface_block(big, option(big, 0, "") + tsresol(big, 9)) +
                                packet(big, 0, 7, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].time_ns, 7000);
}

TEST_P(Pcapng, AnInterfaceSaysHowLongTheFcsIs)
{
    std::string whole = frame_of(60) + frame_of(4, 'f');
    read_capture all =
        read_all(section(big) + interface_block(big, tsresol(big, 9) + fcslen(big, 4)) + interface_block(big) +
                 packet(big, 0, 1, whole) + packet(big, 1, 2, whole) + simple_packet(big, whole, 64) +
                 obsolete_packet(big, 0, 3, whole) + packet(big, 0, 4, whole.substr(0, 62), 62, 64));
    ASSERT_EQ(all.frames.size(), 5u);
    for (std::size_t at : {0u, 2u, 3u, 4u}) {
        EXPECT_EQ(all.frames[at].bytes, frame_of(60)) << at;
        EXPECT_EQ(all.frames[at].original_bytes, 60u) << at;
        EXPECT_EQ(all.frames[at].fcs_bytes, 4u) << at;
    }
    EXPECT_EQ(all.frames[1].bytes, whole);
    EXPECT_EQ(all.frames[4].fcs_captured, 2u);
    EXPECT_EQ(all.frames[0].time_ns, 1);
}

TEST_P(Pcapng, APacketSaysItForItself)
{
    std::string whole = frame_of(61) + "f", two = frame_of(60) + "ff", comment = option(big, 1, "five5");
    read_capture all = read_all(section(big) + interface_block(big, fcslen(big, 4)) + interface_block(big) +
                                packet(big, 0, 1, two, ~0u, 0, comment + fcs_flags(big, 2)) +
                                packet(big, 1, 1, whole, ~0u, 0, fcs_flags(big, 1)) +
                                packet(big, 0, 1, frame_of(64), ~0u, 0, fcs_flags(big, 0)) +
                                obsolete_packet(big, 1, 1, frame_of(64), fcs_flags(big, 4)));
    ASSERT_EQ(all.frames.size(), 4u);
    EXPECT_EQ(all.frames[0].bytes, frame_of(60));
    EXPECT_EQ(all.frames[1].bytes, frame_of(61));
    EXPECT_EQ(all.frames[2].bytes, frame_of(60)); // 0: unknown, so the interface's counts
    EXPECT_EQ(all.frames[3].bytes, frame_of(60));
}

TEST_P(Pcapng, OptionsOfAPacketThatRunOverItsEndAreIgnored)
{
    std::string overrun = bytes{big}.u16(2).u16(400).text;
    read_capture all = read_all(section(big) + interface_block(big) + packet(big, 0, 1, frame_of(60), ~0u, 0, overrun));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_FALSE(all.damaged);
    EXPECT_EQ(all.frames[0].bytes, frame_of(60));
}

TEST(PcapngInterfaces, MayBeMany)
{
    std::string file = section();
    for (int i = 0; i < 5000; ++i)
        file += interface_block(false, tsresol(false, i == 4999 ? 9 : 6));
    read_capture all = read_all(file + packet(false, 4999, 42, frame_of(60)));
    ASSERT_EQ(all.frames.size(), 1u);
    EXPECT_EQ(all.frames[0].time_ns, 42);
    EXPECT_EQ(all.frames[0].interface, 4999u);
}

TEST(Ticks, OfEveryPowerOfTenAreNanoseconds)
{
    EXPECT_EQ(ticks(0, 0).to_ns(3), 3'000'000'000);
    EXPECT_EQ(ticks(9, 0).to_ns(3), 3);
    EXPECT_EQ(ticks(12, 0).to_ns(3'999), 3);
    EXPECT_EQ(ticks(28, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), 1);
    EXPECT_EQ(ticks(29, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), 0);
    EXPECT_EQ(ticks(127, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), 0);
}

TEST(Ticks, OfEveryPowerOfTwoAreNanoseconds)
{
    EXPECT_EQ(ticks(0x80, 0).to_ns(3), 3'000'000'000);
    EXPECT_EQ(ticks(0x81, 0).to_ns(3), 1'500'000'000);
    EXPECT_EQ(ticks(0xa0, 0).to_ns(1ull << 31), 500'000'000);
    EXPECT_EQ(ticks(0xc0, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), 999'999'999);
    EXPECT_EQ(ticks(0xff, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), 0);
}

TEST(Ticks, ThatDoNotFitAreClamped)
{
    constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(ticks(0, 0).to_ns(std::numeric_limits<std::uint64_t>::max()), most);
    EXPECT_EQ(ticks(6, most).to_ns(1), most);
    EXPECT_EQ(ticks(6, least).to_ns(1), least);
    EXPECT_EQ(ticks(6, -5).to_ns(1'000'000), -4'000'000'000);
}

} // namespace
} // namespace weftio::replay::test
