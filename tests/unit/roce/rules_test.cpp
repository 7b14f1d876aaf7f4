// Sequence numbers, syndromes, timers and segmentation.
#include <gtest/gtest.h>

#include "net/roce_rules.hpp"

namespace {

using namespace weftio::net;
using enum roce_position;

constexpr std::uint32_t psns[] = {0, 1, 2, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xfffffe, 0xffffff};
constexpr std::int32_t steps[] = {0, 1, -1, 2, 65, -65, 0x7fffff, -0x7fffff, -0x800000};

TEST(Psn, IsAsFarAwayAsItWasMoved)
{
    for (std::uint32_t psn : psns) {
        for (std::int32_t step : steps) {
            const std::uint32_t moved = psn_add(psn, step);
            EXPECT_LE(moved, psn_mask);
            EXPECT_EQ(psn_distance(psn, moved), step) << psn;
            EXPECT_EQ(psn_add(moved, -std::int64_t{step}), psn);
        }
    }
}

TEST(Psn, IsAheadOfWhatIsBehindIt)
{
    for (std::uint32_t from : psns) {
        for (std::uint32_t to : psns) {
            const std::int32_t there = psn_distance(from, to), back = psn_distance(to, from);
            EXPECT_TRUE(there == -back || (there == back && there == -0x800000)) << from << ", " << to;
            EXPECT_EQ(there == 0, from == to);
        }
    }
}

TEST(Psn, Wraps)
{
    EXPECT_EQ(psn_add(0xffffff, 1), 0u);
    EXPECT_EQ(psn_add(0, -1), 0xffffffu);
    EXPECT_EQ(psn_add(0xfffffe, 100'000), 99'998u);
    EXPECT_EQ(psn_distance(0xffffff, 0), 1);
    EXPECT_EQ(psn_distance(0, 0xffffff), -1);
    EXPECT_EQ(psn_distance(0, 0x7fffff), 0x7fffff);
    EXPECT_EQ(psn_distance(0, 0x800000), -0x800000);
}

TEST(Syndrome, IsWhatLinuxSends)
{
    EXPECT_EQ(ack_syndrome(), 0x1f);
    EXPECT_EQ(rnr_syndrome(18), 0x32);
    EXPECT_EQ(nak_syndrome(roce_nak::sequence_error), 0x60);
    EXPECT_EQ(nak_syndrome(roce_nak::invalid_request), 0x61);
    EXPECT_EQ(nak_syndrome(roce_nak::remote_access), 0x62);
    EXPECT_EQ(nak_syndrome(roce_nak::remote_operational), 0x63);
}

TEST(Syndrome, IsReadAsItWasWritten)
{
    for (unsigned value = 0; value < 32; ++value) {
        const auto code = static_cast<std::uint8_t>(value);
        EXPECT_EQ(kind_of(ack_syndrome(code)), aeth_kind::acknowledge);
        EXPECT_EQ(kind_of(rnr_syndrome(code)), aeth_kind::rnr_nak);
        EXPECT_EQ(kind_of(static_cast<std::uint8_t>(0x40 | code)), aeth_kind::reserved);
        EXPECT_EQ(kind_of(nak_syndrome(static_cast<roce_nak>(code))), aeth_kind::nak);
        EXPECT_EQ(kind_of(static_cast<std::uint8_t>(0x80 | code)), aeth_kind::reserved);
        EXPECT_EQ(value_of(rnr_syndrome(code)), code);
        EXPECT_EQ(value_of(nak_syndrome(static_cast<roce_nak>(code))), code);
    }
}

TEST(Timers, AreThoseOfTheirCodes)
{
    EXPECT_EQ(rnr_wait_ns(0), 655'360'000u);
    EXPECT_EQ(rnr_wait_ns(1), 10'000u);
    EXPECT_EQ(rnr_wait_ns(12), 640'000u);
    EXPECT_EQ(rnr_wait_ns(18), 5'120'000u);
    EXPECT_EQ(rnr_wait_ns(31), 491'520'000u);
    EXPECT_EQ(rnr_wait_ns(32 + 18), 5'120'000u);
    EXPECT_EQ(ack_timeout_ns(0), 0u);
    EXPECT_EQ(ack_timeout_ns(1), 8'192u);
    EXPECT_EQ(ack_timeout_ns(14), 67'108'864u);
    EXPECT_EQ(ack_timeout_ns(31), 4096ull << 31);
    EXPECT_EQ(ack_timeout_ns(32), 0u);
}

TEST(Timers, OfReceiversDoubleWithEverySecondCode)
{
    for (std::uint8_t code = 2; code < 32; ++code) {
        EXPECT_GT(rnr_wait_ns(code), rnr_wait_ns(static_cast<std::uint8_t>(code - 1))) << int{code};
        if (code >= 4) {
            EXPECT_EQ(rnr_wait_ns(code), 2 * rnr_wait_ns(static_cast<std::uint8_t>(code - 2))) << int{code};
        }
    }
    EXPECT_EQ(rnr_wait_ns(0), 2 * rnr_wait_ns(30));
}

TEST(PathMtu, IsTheLargestThatThePortCarries)
{
    EXPECT_EQ(path_mtu_of(1500), 1024u);
    EXPECT_EQ(path_mtu_of(4200), 4096u);
    EXPECT_EQ(path_mtu_of(9000), 4096u);
    EXPECT_EQ(path_mtu_of(4180), 4096u);
    EXPECT_EQ(path_mtu_of(4179), 2048u);
    EXPECT_EQ(path_mtu_of(340), 256u);
    EXPECT_EQ(path_mtu_of(339), 0u);
    EXPECT_EQ(path_mtu_of(0), 0u);
}

TEST(PathMtu, IsOneOfFive)
{
    unsigned count = 0;
    for (std::uint32_t bytes = 0; bytes <= 9000; ++bytes)
        count += is_path_mtu(bytes);
    EXPECT_EQ(count, 5u);
    EXPECT_TRUE(is_path_mtu(256) && is_path_mtu(4096));
}

TEST(Segments, CoverAMessageInOrder)
{
    for (std::uint32_t mtu : {256u, 1024u, 4096u}) {
        for (std::uint32_t bytes : {0u, 1u, 255u, 256u, 257u, 1024u, 3001u, 4096u, 4097u, 100'000u}) {
            const std::uint32_t count = packets_of(bytes, mtu);
            std::uint32_t offset = 0;
            for (std::uint32_t index = 0; index < count; ++index) {
                const roce_segment segment = segment_of(bytes, mtu, index);
                EXPECT_EQ(segment.offset, offset);
                EXPECT_EQ(segment.position, count == 1           ? only
                                            : index == 0         ? first
                                            : index + 1 == count ? last
                                                                 : middle);
                const auto opcode = opcode_of(roce_service::rc, roce_operation::write, segment.position);
                EXPECT_TRUE(opcode && payload_fits(shape_of(*opcode), segment.bytes, mtu)) << bytes << " by " << mtu;
                offset += segment.bytes;
            }
            EXPECT_EQ(offset, bytes);
        }
    }
}

TEST(Segments, OfTheLongestMessageDoNotOverflow)
{
    EXPECT_EQ(packets_of(largest_message_bytes, 256), 1u << 23);
    const roce_segment end = segment_of(largest_message_bytes, 256, (1u << 23) - 1);
    EXPECT_EQ(end.position, last);
    EXPECT_EQ(end.offset, largest_message_bytes - 256);
    EXPECT_EQ(end.bytes, 256u);
}

TEST(Pad, FillsFourBytes)
{
    for (std::uint32_t bytes = 0; bytes < 20; ++bytes) {
        EXPECT_LT(pad_of(bytes), 4u);
        EXPECT_EQ((bytes + pad_of(bytes)) % 4, 0u);
    }
}

} // namespace
