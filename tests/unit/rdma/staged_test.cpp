// Queue pairs whose payload lies in memory that the CPU cannot access: a copy engine stages it, in order, and what
// depends on a copy waits for it.
#include <cstring>

#include <gmock/gmock.h>

#include "staged_ends.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

class RdmaStaged : public testing::TestWithParam<bool>, protected staged_ends {
 protected:
    RdmaStaged() : staged_ends(GetParam()) {}
};

} // namespace

TEST_P(RdmaStaged, MovesBytesInEveryDirection)
{
    for (const std::size_t count : {std::size_t{4}, std::size_t{8}, std::size_t{1000}, std::size_t{50001}}) {
        SCOPED_TRACE(count);
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 77), local(0, 5, count)});
        ends.run();
        EXPECT_TRUE(equal(theirs.data() + 77, ours.data() + 5, count)) << "WRITE";
        post(WEFTIO_OPCODE_RDMA_WRITE, {peer_host.remote_at(3), local(0, 9, count)});
        ends.run();
        EXPECT_TRUE(equal(peer_host.data() + 3, ours.data() + 9, count)) << "WRITE to the host";
        post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, 100000), local(0, 200000, count)});
        ends.run();
        EXPECT_TRUE(equal(ours.data() + 200000, theirs.data() + 100000, count)) << "READ";
        post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, 300000), host.local(11, count)});
        ends.run();
        EXPECT_TRUE(equal(host.data() + 11, theirs.data() + 300000, count)) << "READ to the host";
        b.post_receive({local(1, 400000, count / 2), peer_host.local(13, count - count / 2)});
        post(WEFTIO_OPCODE_SEND, {host.local(1, count / 3), local(0, 500000, count - count / 3)});
        ends.run();
        ASSERT_TRUE(b.received());
        std::vector<std::uint8_t> sent(host.data() + 1, host.data() + 1 + count / 3);
        sent.insert(sent.end(), ours.data() + 500000, ours.data() + 500000 + count - count / 3);
        EXPECT_TRUE(equal(theirs.data() + 400000, sent.data(), count / 2)) << "SEND, mixed";
        EXPECT_TRUE(equal(peer_host.data() + 13, sent.data() + count / 2, count - count / 2)) << "SEND, mixed";
    }
    EXPECT_EQ(a.sent().syndrome, 0u);
    expect_conserved_at_both();
}

TEST_P(RdmaStaged, SendsNoPacketBeforeItsBytesAreThere)
{
    ours.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_WRITE, {peer_host.remote_at(0), local(0, 0, 5000)});
    turns();
    EXPECT_EQ(b.nic().counters().requests, 0u);
    ours.copies().let_go();
    ends.run();
    EXPECT_TRUE(equal(peer_host.data(), ours.data(), 5000));
    EXPECT_EQ(done(), 1u);
}

TEST_P(RdmaStaged, AcknowledgesAndCompletesNothingBeforeItsBytesAreThere)
{
    theirs.copies().holds = true;
    b.post_receive({local(1, 0, 5000)});
    post(WEFTIO_OPCODE_SEND, {host.local(0, 5000)});
    turns();
    EXPECT_EQ(b.nic().counters().executed, 5u);
    EXPECT_EQ(done(), 0u) << "an ACK has come";
    EXPECT_FALSE(b.received());
    theirs.copies().let_go();
    ends.run();
    EXPECT_TRUE(b.received());
    EXPECT_EQ(done(), 1u);
    EXPECT_TRUE(equal(theirs.data(), host.data(), 5000));
    expect_conserved_at_both();
}

TEST_P(RdmaStaged, CompletesAReadWithItsBytes)
{
    ours.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_READ, {peer_host.remote_at(0), local(0, 0, 5000)});
    turns();
    EXPECT_EQ(a.nic().counters().answers, 5u);
    EXPECT_EQ(done(), 0u);
    EXPECT_EQ(a.sent().position, 0xffffu);
    ours.copies().let_go();
    ends.run();
    EXPECT_EQ(done(), 1u);
    EXPECT_TRUE(equal(ours.data(), peer_host.data(), 5000));
}

/// A flag in the host's memory, by a WRITE and by an atomic.
TEST_P(RdmaStaged, ShowsNoFlagBeforeTheBytesInFrontOfIt)
{
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, peer_host.data() + 64, sizeof before);
    const std::vector<std::uint8_t> old(peer_host.data(), peer_host.data() + 8);
    theirs.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), host.local(1000, 3000)});
    post(WEFTIO_OPCODE_RDMA_WRITE, {peer_host.remote_at(0), host.local(8, 8)});
    post(WEFTIO_OPCODE_FETCH_ADD, {peer_host.remote_at(64), atomic(1), host.local(16, 8)});
    turns();
    std::memcpy(&after, peer_host.data() + 64, sizeof after);
    EXPECT_TRUE(equal(peer_host.data(), old.data(), 8));
    EXPECT_EQ(after, before);
    theirs.copies().let_go();
    ends.run();
    std::memcpy(&after, peer_host.data() + 64, sizeof after);
    EXPECT_TRUE(equal(theirs.data(), host.data() + 1000, 3000));
    EXPECT_TRUE(equal(peer_host.data(), host.data() + 8, 8));
    EXPECT_EQ(after, before + 1);
    EXPECT_EQ(done(), 3u);
    expect_conserved_at_both();
}

/// A flush of one queue pair also waits for copies of others at the same engine, and makes none.
TEST_P(RdmaStaged, EndsAFlushBehindTheCopiesUnderWay)
{
    crowd others(ends, 1);
    fake_pair& other = others.of(1, 0);
    const auto flush = [&](const segment& piece) {
        other.post(WEFTIO_OPCODE_DUMP, {piece});
        other.push();
        turns();
        return other.nic().counters().done;
    };
    EXPECT_EQ(flush(local(1, 0, 1)), 1u) << "nothing is under way";
    theirs.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), host.local(0, 5000)});
    turns();
    EXPECT_EQ(flush(peer_host.local(0, 1)), 2u) << "of memory of the host";
    const unsigned begun = theirs.copies().begun;
    EXPECT_EQ(flush(local(1, 9000, room - 9000)), 2u);
    EXPECT_EQ(theirs.copies().begun, begun);
    theirs.copies().let_go();
    ends.run();
    EXPECT_EQ(other.nic().counters().done, 3u);
    EXPECT_TRUE(equal(theirs.data(), host.data(), 5000));
    other.post(WEFTIO_OPCODE_DUMP, {local(1, room, 1)});
    other.push();
    ends.run();
    EXPECT_EQ(other.sent().syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(other.nic().counters().done_bytes, 0u);
    expect_conserved(other.nic().counters());
}

TEST_P(RdmaStaged, MakesOneCopyOfManyMessages)
{
    for (std::size_t each = 0; each < 16; ++each)
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, each * 500), local(0, each * 500, 500)});
    a.push();
    ends.run();
    EXPECT_EQ(done(), 16u);
    EXPECT_TRUE(equal(theirs.data(), ours.data(), 8000));
    EXPECT_LE(ours.copies().begun, 2u);
    EXPECT_LE(theirs.copies().begun, 2u);
    EXPECT_EQ(ours.copies().marked, ours.copies().begun);
}

/// Longer than the memory through which copies go.
TEST_P(RdmaStaged, MovesMoreThanIsStagedAtOnce)
{
    constexpr std::size_t count = 6 << 20;
    for (unsigned each = 0; each < 2; ++each)
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, each * count), local(0, each * count, count)});
    post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, 2 * count), local(0, 2 * count, room - 2 * count)});
    for (unsigned round = 0; round < 20000 && done() != 3; ++round) {
        ours.copies().holds = theirs.copies().holds = round % 50 != 0;
        if (round % 50 == 0) {
            ours.copies().complete_all();
            theirs.copies().complete_all();
        }
        turns(1);
    }
    EXPECT_EQ(done(), 3u);
    EXPECT_TRUE(equal(theirs.data(), ours.data(), room));
    expect_conserved_at_both();
}

TEST_P(RdmaStaged, RefusesAtomicsOnWordsThere)
{
    post(WEFTIO_OPCODE_FETCH_ADD, {peer_host.remote_at(0), atomic(1), local(0, 8, 8)});
    ends.run();
    EXPECT_EQ(done(), 1u) << "the result may go there";
    post(WEFTIO_OPCODE_FETCH_ADD, {remote_at(1, 8), atomic(1), host.local(0, 8)});
    ends.run();
    EXPECT_EQ(a.sent().syndrome, WEFTIO_SYNDROME_REMOTE_ACCESS);
    EXPECT_THAT(b.reported().text, HasSubstr("the word of the atomic lies in memory that the CPU cannot access"));
    expect_conserved_at_both();
}

struct refused_copy {
    const char* name;
    std::uint32_t opcode;
    bool at_us;
};

/// The driver refuses a copy, as of memory that was freed.
TEST_P(RdmaStaged, FailsTheQueuePairWhoseCopyIsRefused)
{
    const refused_copy cases[] = {{"source of a WRITE", WEFTIO_OPCODE_RDMA_WRITE, true},
                                  {"target of a WRITE", WEFTIO_OPCODE_RDMA_WRITE, false},
                                  {"target of a READ", WEFTIO_OPCODE_RDMA_READ, true},
                                  {"source of a READ", WEFTIO_OPCODE_RDMA_READ, false}};
    for (const refused_copy& each : cases) {
        SCOPED_TRACE(each.name);
        a.restart();
        b.restart();
        ends.connect();
        post(each.opcode, {peer_host.remote_at(0), host.local(0, 3000)}); // a good one goes first
        ends.run();
        EXPECT_EQ(a.sent().syndrome, 0u);
        there(each.at_us ? 0 : 1).copies().refuses = true;
        const std::vector<std::uint8_t> before(theirs.data(), theirs.data() + 9000);
        if (each.at_us)
            post(each.opcode, {peer_host.remote_at(4000), local(0, 0, 9000)});
        else
            post(each.opcode, {remote_at(1, 0), host.local(0, 9000)});
        ends.run();
        EXPECT_EQ(a.sent().syndrome, each.at_us ? WEFTIO_SYNDROME_LOCAL_PROTECTION : WEFTIO_SYNDROME_REMOTE_ACCESS);
        EXPECT_TRUE(a.nic().failed());
        if (!each.at_us) {
            EXPECT_THAT(b.reported().text, HasSubstr("cannot be accessed any more"));
        }
        EXPECT_TRUE(equal(theirs.data(), before.data(), before.size()));
        there(each.at_us ? 0 : 1).copies().refuses = false;
    }
    a.restart();
    b.restart();
    ends.connect();
    post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), local(0, 0, 9000)});
    ends.run();
    EXPECT_EQ(a.sent().syndrome, 0u) << "later copies go on";
    EXPECT_TRUE(equal(theirs.data(), ours.data(), 9000));
}

TEST_P(RdmaStaged, FailsWhenTheDeviceFails)
{
    ours.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_READ, {peer_host.remote_at(0), local(0, 0, 5000)});
    turns();
    ours.copies().broken = true;
    ends.run();
    EXPECT_TRUE(a.nic().failed());
    EXPECT_THAT(a.reported().text, HasSubstr("a copy to or from the device's memory failed"));
    expect_conserved(a.nic().counters());
}

TEST_P(RdmaStaged, StartsAgainWithoutWhatWaited)
{
    theirs.copies().holds = true;
    for (unsigned each = 0; each < 4; ++each) {
        b.post_receive({local(1, each * 1000, 1000)});
        post(WEFTIO_OPCODE_SEND, {local(0, each * 1000, 1000)});
    }
    post(WEFTIO_OPCODE_RDMA_READ, {peer_host.remote_at(0), local(0, 50000, 500)});
    turns();
    a.restart();
    b.restart();
    expect_conserved_at_both();
    theirs.copies().let_go();
    ends.connect();
    b.post_receive({local(1, 8000, 1000)});
    post(WEFTIO_OPCODE_SEND, {local(0, 8000, 1000)});
    ends.run();
    EXPECT_TRUE(b.received());
    EXPECT_FALSE(b.received());
    EXPECT_TRUE(equal(theirs.data() + 8000, ours.data() + 8000, 1000));
}

INSTANTIATE_TEST_SUITE_P(Ends, RdmaStaged, testing::Bool(),
                         [](const auto& info) { return info.param ? "OnePort" : "TwoPorts"; });

} // namespace weftio::test
