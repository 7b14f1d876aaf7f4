// Frames that an IP host drops, and what a queue pair makes of others.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "net/byte_order.hpp"
#include "net/checksum.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t ip = 14, ttl_of_ipv4 = ip + 8, ttl_of_ipv6 = ip + 7;

/// Two ends, and the frame of a WRITE of 8 bytes from the first to the second.
class RdmaFrames : public testing::TestWithParam<bool> {
 protected:
    void SetUp() override
    {
        ends.ipv6 = GetParam();
        ends.connect();
        ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
        ends.queue(0).push();
        ends.at(0).turn();
        frame = ends.ports.take(1).at(0);
    }
    void TearDown() override
    {
        expect_conserved(ends.unit(1));
        ends.queue(0).nic().stop_sending();
    }
    std::size_t udp() const { return ip + (ends.ipv6 ? 40 : 20); }
    /// Has the second end receive the frame. @return requests that its queue pair has executed since
    std::uint64_t executed_of(const std::vector<std::uint8_t>& one)
    {
        const std::uint64_t before = ends.queue(1).nic().counters().executed;
        ends.ports.send_to(1, one);
        ends.run();
        return ends.queue(1).nic().counters().executed - before;
    }
    /// Another frame in its place: so many bytes from its BTH on, with lengths, checksum and ICRC of its own.
    void remake(std::uint8_t opcode, std::size_t transport_bytes)
    {
        frame.resize(udp() + 8 + transport_bytes);
        const auto length = static_cast<std::uint16_t>(8 + transport_bytes);
        net::store_be(&frame[udp() + 4], length);
        if (ends.ipv6)
            net::store_be(&frame[ip + 4], length);
        else
            net::store_be(&frame[ip + 2], static_cast<std::uint16_t>(20 + length));
        net::fill_checksums(frame, true, false);
        frame[udp() + 8] = opcode;
        net::store_icrc(&frame[frame.size() - 4], net::icrc_of(std::span(frame).subspan(ip, frame.size() - ip - 4)));
    }
    /// Sends the frame to the second end. @return the syndrome of its answer; 0: none
    unsigned syndrome_of_answer()
    {
        ends.ports.send_to(1, frame);
        for (unsigned turn = 0; turn < 4; ++turn)
            ends.at(1).turn();
        const std::vector<std::vector<std::uint8_t>> answers = ends.ports.take(0);
        net::roce_packet packet;
        if (answers.size() != 1 || net::parse_roce(answers[0], packet) != net::roce_refusal::none)
            return 0;
        return packet.headers.syndrome;
    }
    /// What is reported to the host of the second end.
    std::string reported() { return ends.queue(1).reported().text; }

    /// The frame with its UDP checksum, which RoCE senders leave 0.
    std::vector<std::uint8_t> with_udp_checksum() const
    {
        std::vector<std::uint8_t> summed = frame;
        net::fill_checksums(summed, false, true);
        return summed;
    }

    two_ends ends{false};
    std::vector<std::uint8_t> frame;
};

} // namespace

TEST_P(RdmaFrames, WithAWrongIpv4ChecksumAreDroppedAndCounted)
{
    if (ends.ipv6)
        return; // its header has no checksum
    std::vector<std::uint8_t> damaged = frame;
    damaged[ip + 10] ^= 1; // the ICRC does not cover it
    EXPECT_EQ(executed_of(damaged), 0u);
    EXPECT_EQ(ends.unit(1).arrivals().wrong_ip_checksum.value(), 1u);
    EXPECT_EQ(executed_of(frame), 1u);
}

TEST_P(RdmaFrames, WithAWrongUdpChecksumAreDroppedAndCounted)
{
    std::vector<std::uint8_t> damaged = with_udp_checksum();
    ASSERT_TRUE(damaged[udp() + 6] != 0 || damaged[udp() + 7] != 0);
    damaged[udp() + 7] ^= 1;
    if (damaged[udp() + 6] == 0 && damaged[udp() + 7] == 0)
        damaged[udp() + 7] = 2;
    EXPECT_EQ(executed_of(damaged), 0u);
    EXPECT_EQ(ends.unit(1).arrivals().wrong_udp_checksum.value(), 1u);
}

TEST_P(RdmaFrames, WithTheRightUdpChecksumAreExecuted)
{
    EXPECT_EQ(executed_of(with_udp_checksum()), 1u);
}

TEST_P(RdmaFrames, ForAnotherHostOfTheLinkAreDroppedAndCounted)
{
    std::vector<std::uint8_t> other = frame;
    other[5] ^= 1;
    EXPECT_EQ(executed_of(other), 0u);
    EXPECT_EQ(ends.unit(1).arrivals().other_mac.value(), 1u);
    EXPECT_EQ(executed_of(frame), 1u);
}

TEST_P(RdmaFrames, ToAGroupOfHostsAreExecuted)
{
    std::fill_n(frame.begin(), 6, std::uint8_t{0xff});
    EXPECT_EQ(executed_of(frame), 1u);
}

/// RFC 1122, 3.2.1.7: a host must not discard a datagram for it. RFC 8200, section 3, says the same of IPv6.
TEST_P(RdmaFrames, ThatHaveNoTimeToLiveLeftAreExecuted)
{
    frame[ends.ipv6 ? ttl_of_ipv6 : ttl_of_ipv4] = 0; // the ICRC does not cover it
    net::fill_checksums(frame, true, false);
    EXPECT_EQ(executed_of(frame), 1u);
}

constexpr unsigned nak_invalid_request = 0x61;
constexpr std::size_t bth_and_icrc = 12 + 4, reth = 16;

TEST_P(RdmaFrames, OfAReservedOpcodeAreAnsweredAsInvalid)
{
    for (const int opcode : {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}) {
        remake(static_cast<std::uint8_t>(opcode), bth_and_icrc + reth);
        EXPECT_EQ(syndrome_of_answer(), nak_invalid_request) << opcode;
        EXPECT_THAT(reported(), testing::HasSubstr("the peer's request was refused: unknown opcode"));
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
        ends.connect();
    }
}

TEST_P(RdmaFrames, ThatAreCutWithinTheirHeadersAreAnsweredAsInvalid)
{
    remake(frame[udp() + 8], bth_and_icrc + reth - 4);
    EXPECT_EQ(syndrome_of_answer(), nak_invalid_request);
    EXPECT_THAT(reported(), testing::HasSubstr("the peer's WRITE was refused: the packet is too short for its"));
}

TEST_P(RdmaFrames, OfAReadWithAPayloadAreAnsweredAsInvalid)
{
    remake(0x0c, bth_and_icrc + reth + 8);
    EXPECT_EQ(syndrome_of_answer(), nak_invalid_request);
    EXPECT_THAT(reported(), testing::HasSubstr("the peer's READ was refused: the packet has a payload"));
}

/// Nobody has asked for it: it may be of any age.
TEST_P(RdmaFrames, OfACutAnswerEndNothing)
{
    remake(0x11, bth_and_icrc);
    EXPECT_EQ(syndrome_of_answer(), 0u);
    EXPECT_EQ(ends.queue(1).nic().counters().wrong_answers, 1u);
    EXPECT_FALSE(ends.queue(1).nic().failed());
}

TEST_P(RdmaFrames, OfACongestionNotificationThatIsCutAreMalformed)
{
    remake(0x81, bth_and_icrc);
    EXPECT_EQ(syndrome_of_answer(), 0u);
    EXPECT_EQ(ends.unit(1).arrivals().malformed.value(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Over, RdmaFrames, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ipv6" : "Ipv4"; });

} // namespace weftio::test
