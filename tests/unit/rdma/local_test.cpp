// Two queue pairs of one port: what succeeds is a copy, all else is packets, and a message may go on either way.
#include <cstring>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "nic/soft/rdma/rdma_unit.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t half = two_ends::memory_bytes / 2;

class RdmaLocal : public testing::TestWithParam<rdma_service> {
 protected:
    void SetUp() override
    {
        for (unsigned end = 0; end < 2; ++end) {
            nic::rdma_connection to = ends.connection(end);
            to.timeout = 0; // what is lost stays lost
            to.min_rnr_timer = 1;
            ends.queue(end).connect(to);
        }
    }
    void TearDown() override
    {
        for (unsigned end = 0; end < 2; ++end)
            expect_conserved(ends.queue(end).nic().counters());
        expect_conserved(ends.unit(0));
    }
    std::uint32_t post(std::uint32_t opcode, std::vector<segment> body, std::uint32_t immediate = 0)
    {
        const std::uint32_t position = a.post(opcode, body, immediate);
        a.push();
        return position;
    }
    void receive(std::uint32_t bytes) { b.post_receive({theirs.local(half, bytes)}); }
    void expect_done(std::uint32_t position)
    {
        EXPECT_TRUE(ends.run_until([&] { return a.sent().position == (position & 0xffff); }));
        EXPECT_EQ(a.sent().syndrome, 0);
    }
    static bool reliable() { return GetParam() == rdma_service::reliable; }
    std::uint64_t packets() { return ends.unit(0).arrivals().claimed.value(); }
    std::uint64_t copies() { return ends.unit(0).sent().copied.value(); }

    two_ends ends{ends_at(true), GetParam()};
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    end_memory &ours = ends.memory(0), &theirs = ends.memory(1);
};

} // namespace

TEST_P(RdmaLocal, CopiesWhatSucceedsAndAnswersItInTheSameTurn)
{
    receive(half);
    receive(half);
    receive(half);
    post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 3), ours.local(100, 5000)});
    post(WEFTIO_OPCODE_SEND, {ours.local(0, 8)});
    post(WEFTIO_OPCODE_SEND_IMMEDIATE, {ours.local(0, half)}, 7);
    std::uint32_t last = post(WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE, {theirs.remote_at(0), ours.local(0, 64)}, 8);
    if (reliable()) {
        post(WEFTIO_OPCODE_RDMA_READ, {theirs.remote_at(100), ours.local(half, 3000)});
        last = post(WEFTIO_OPCODE_FETCH_ADD, {theirs.remote_at(8), atomic(5), ours.local(half, 8)});
    }
    ends.at(0).turn();
    EXPECT_EQ(a.sent().position, last);
    EXPECT_EQ(packets(), 0u);
    EXPECT_EQ(copies(), reliable() ? 7u : 5u) << "a SEND of 32 packets is two";
    for (unsigned count = 0; count < 3; ++count)
        ASSERT_TRUE(b.received()) << count;
    EXPECT_EQ(b.nic().counters().executed, a.nic().counters().packets);
    EXPECT_EQ(std::memcmp(theirs.data() + half, ours.data(), half), 0);
}

/// The SEND and what is sent behind it in that turn are packets. The last of them asks for no ACK: entries follow it.
TEST_P(RdmaLocal, CopiesAgainAfterARequestThatNeededPackets)
{
    post(WEFTIO_OPCODE_SEND, {ours.local(0, 8)});
    for (unsigned message = 0; message < 50; ++message)
        post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 4000)});
    const std::uint32_t last = post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 8)});
    ends.at(0).turn();
    EXPECT_EQ(copies(), 0u);
    receive(8);
    expect_done(last);
    EXPECT_TRUE(b.received());
    EXPECT_LE(packets(), 64u + 8u) << "a turn and its answers";
    EXPECT_GE(copies(), 30u);
    EXPECT_EQ(a.nic().counters().repeated, 0u);
}

TEST_P(RdmaLocal, RepeatsWithoutPacketsWhatWasNotReady)
{
    if (!reliable())
        GTEST_SKIP() << "UC repeats nothing";
    const std::uint32_t last = post(WEFTIO_OPCODE_SEND, {ours.local(0, 8)});
    EXPECT_TRUE(ends.run_until([&] { return a.nic().counters().rnr_naks >= 20; }));
    EXPECT_EQ(packets(), 2u) << "the first one and its NAK";
    EXPECT_EQ(b.nic().counters().not_ready, a.nic().counters().rnr_naks);
    EXPECT_EQ(a.nic().counters().repeated + 1, a.nic().counters().packets);
    receive(8);
    expect_done(last);
    EXPECT_EQ(packets(), 2u);
}

TEST_P(RdmaLocal, GoesOnByPacketInAMessageWhoseKeyIsRevoked)
{
    constexpr unsigned long_ones = 4;
    std::optional<end_memory> fleeting;
    fleeting.emplace(ends.at(1), ends.cpu, two_ends::memory_bytes, region_options{.rights = all_rights});
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {fleeting->remote_at(0), ours.local(0, 5000)});
    for (unsigned each = 0; each < long_ones; ++each)
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {fleeting->remote_at(0), ours.local(0, two_ends::memory_bytes)});
    a.push();
    ends.at(0).turn();
    EXPECT_EQ(a.sent().position, 0u) << "the second message has begun";
    EXPECT_GE(copies(), 2u);
    EXPECT_EQ(packets(), 0u);
    fleeting.reset();
    EXPECT_TRUE(ends.run_until([&] { return a.nic().failed() || a.sent().position == long_ones; }));
    EXPECT_EQ(a.nic().failed(), reliable()) << "UC loses the rest";
    EXPECT_EQ(b.nic().counters().refused, reliable() ? 1u : long_ones);
}

TEST_P(RdmaLocal, MovesNoByteOfALongMessageThatIsRefused)
{
    const std::vector<std::uint8_t> kept = theirs.copy(), kept_here = ours.copy();
    const bool reads = reliable();
    post(reads ? WEFTIO_OPCODE_RDMA_READ : WEFTIO_OPCODE_RDMA_WRITE,
         {theirs.remote_at(half + 1), reads ? ours.local(0, half) : ours.local(half, half)});
    EXPECT_TRUE(ends.run_until([&] { return b.nic().counters().refused != 0; }));
    ends.run();
    EXPECT_EQ(theirs.copy(), kept);
    EXPECT_EQ(ours.copy(), kept_here);
}

TEST_P(RdmaLocal, StoresEightBytesOfTwoPiecesAtOnce)
{
    expect_done(post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(64), ours.local(0, 3), ours.local(100, 5)}));
    EXPECT_NE(packets(), 0u) << "a packet joins them";
    EXPECT_EQ(std::memcmp(theirs.data() + 64, ours.data(), 3), 0);
    EXPECT_EQ(std::memcmp(theirs.data() + 67, ours.data() + 100, 5), 0);
}

/// Ends that do not agree are no partners: as packets, their requests are refused or ignored.
TEST_P(RdmaLocal, CopiesNothingBetweenEndsThatDoNotAgree)
{
    for (unsigned end = 0; end < 2; ++end) {
        ends.queue(end).restart();
        nic::rdma_connection to = ends.connection(end);
        to.partition_key = static_cast<std::uint16_t>(0x8001 + end);
        ends.queue(end).connect(to);
    }
    const std::vector<std::uint8_t> kept = theirs.copy();
    post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 8)});
    for (unsigned turn = 0; turn < 10; ++turn)
        ends.at(0).turn();
    EXPECT_EQ(theirs.copy(), kept);
    EXPECT_EQ(b.nic().counters().ignored, 1u);
    EXPECT_EQ(copies(), 0u);
    a.nic().stop_sending();
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaLocal, testing::Values(rdma_service::reliable, rdma_service::unreliable),
                         [](const auto& service) { return service.param == rdma_service::reliable ? "Rc" : "Uc"; });

} // namespace weftio::test
