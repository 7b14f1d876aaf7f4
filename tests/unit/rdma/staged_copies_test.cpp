// Copies to and from memory that the CPU cannot access serve many packets, and nothing is seen or told too early.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "staged_ends.hpp"

namespace weftio::test {

namespace {

class RdmaStagedCopies : public testing::TestWithParam<bool>, protected staged_ends {
 protected:
    RdmaStagedCopies() : staged_ends(GetParam()) {}
};

/// Over two ports, so that the first one can send a part of a message, for which it asks for no ACK.
class RdmaCollected : public testing::Test, protected staged_ends {
 protected:
    static constexpr std::size_t part_bytes = 10 * 1024;

    RdmaCollected() : staged_ends(false)
    {
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 50000), host.local(0, 1000)}); // finds the memory
        ends.run();
        theirs.copies().begun = 0;
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), host.local(0, 40000)});
        ends.unit(0).turn({.entries = part_bytes / 1024});
        turns_of_the_peer(3);
    }
    void turns_of_the_peer(unsigned count)
    {
        for (unsigned each = 0; each < count; ++each)
            ends.at(1).turn();
    }
    bool has_part() { return equal(theirs.data(), host.data(), part_bytes); }
};

} // namespace

/// Queue pairs that share an engine send a packet each in a turn, but a copy has the bytes of many.
TEST_P(RdmaStagedCopies, MakesFewCopiesOfLongMessagesOfManyQueuePairs)
{
    constexpr std::size_t pairs = 32, each_bytes = std::size_t{1} << 18;
    constexpr unsigned most_copies = pairs * each_bytes / 1024 / 8; // of a packet each it would be 8 times as many
    crowd many(ends, pairs);
    hidden_memory from(ends.at(0), pairs * each_bytes, all_rights), to(ends.at(1), pairs * each_bytes, all_rights);
    const auto at_each = [&](const hidden_memory& memory, std::size_t each, std::size_t at) {
        return memory.data() + each * each_bytes + at;
    };
    for (const std::uint32_t opcode : {WEFTIO_OPCODE_RDMA_WRITE, WEFTIO_OPCODE_RDMA_READ, WEFTIO_OPCODE_SEND}) {
        SCOPED_TRACE(opcode);
        const bool reads = opcode == WEFTIO_OPCODE_RDMA_READ;
        const hidden_memory &source = reads ? to : from, &target = reads ? from : to;
        for (std::size_t at = 0; at != pairs * each_bytes; ++at)
            source.data()[at] = static_cast<std::uint8_t>(at * 13 + at / 509 + opcode);
        from.copies().begun = to.copies().begun = 0;
        for (std::size_t each = 0; each != pairs; ++each) {
            const segment local = pointer(each_bytes, from.lkey(), from.address(each * each_bytes));
            many.of(1, each).post_receive({pointer(each_bytes, to.lkey(), to.address(each * each_bytes))});
            many.of(0, each).post(opcode, opcode == WEFTIO_OPCODE_SEND
                                              ? std::vector{local}
                                              : std::vector{remote(to.address(each * each_bytes), to.lkey()), local});
            many.of(0, each).push();
        }
        ends.run();
        EXPECT_LE(from.copies().begun, most_copies);
        EXPECT_LE(to.copies().begun, most_copies);
        for (std::size_t each = 0; each != pairs; ++each)
            EXPECT_TRUE(equal(at_each(target, each, 0), at_each(source, each, 0), each_bytes)) << each;
    }
    many.expect_conserved_at_all();
}

/// What short messages bring is collected until the last one asks for an ACK.
TEST_P(RdmaStagedCopies, MakesFewCopiesOfWhatShortMessagesOfManyQueuePairsBring)
{
    constexpr std::size_t pairs = 32, messages = 32, bytes = 128;
    crowd many(ends, pairs);
    for (std::size_t message = 0; message != messages; ++message)
        for (std::size_t each = 0; each != pairs; ++each) {
            const std::size_t at = (each * messages + message) * bytes;
            many.of(0, each).post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, at), local(0, at, bytes)});
        }
    for (std::size_t each = 0; each != pairs; ++each)
        many.of(0, each).push();
    ends.run();
    EXPECT_LE(theirs.copies().begun, pairs * messages / 4);
    EXPECT_TRUE(equal(theirs.data(), ours.data(), pairs * messages * bytes));
    many.expect_conserved_at_all();
}

/// What is fetched ahead serves one message.
TEST_P(RdmaStagedCopies, TakesTheBytesOfEachMessageAnew)
{
    constexpr std::size_t count = 5000;
    for (unsigned each = 0; each < 4; ++each) {
        SCOPED_TRACE(each);
        std::memset(ours.data(), static_cast<int>(each + 1), count);
        std::memset(theirs.data() + 100000, static_cast<int>(each + 101), count);
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), local(0, 0, count)});
        post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, 100000), local(0, 200000, count)});
        ends.run();
        EXPECT_TRUE(equal(theirs.data(), ours.data(), count));
        EXPECT_TRUE(equal(ours.data() + 200000, theirs.data() + 100000, count));
    }
    EXPECT_EQ(done(), 8u);
}

/// A message of pieces, whose memory does not continue.
TEST_P(RdmaStagedCopies, FetchesAheadWithinAPieceOnly)
{
    post(WEFTIO_OPCODE_RDMA_WRITE,
         {remote_at(1, 0), local(0, 0, 3000), local(0, room - 2500, 2500), host.local(0, 2000), local(0, 9000, 4096)});
    ends.run();
    ASSERT_EQ(done(), 1u);
    EXPECT_TRUE(equal(theirs.data(), ours.data(), 3000));
    EXPECT_TRUE(equal(theirs.data() + 3000, ours.data() + room - 2500, 2500));
    EXPECT_TRUE(equal(theirs.data() + 5500, host.data(), 2000));
    EXPECT_TRUE(equal(theirs.data() + 7500, ours.data() + 9000, 4096));
    post(WEFTIO_OPCODE_RDMA_WRITE, // the second piece ends where the memory ends
         {remote_at(1, 20000), local(0, 0, 1000), local(0, room - 24, 24), local(0, 5000, 2000)});
    ends.run();
    ASSERT_EQ(done(), 2u);
    EXPECT_TRUE(equal(theirs.data() + 21000, ours.data() + room - 24, 24));
    EXPECT_TRUE(equal(theirs.data() + 21024, ours.data() + 5000, 2000));
}

/// The first copy is refused while the second begins; the entry has the reason, and is not flushed.
TEST_P(RdmaStagedCopies, TellsWhyAReadInTwoPiecesHasFailed)
{
    ours.copies().refuses = true;
    post(WEFTIO_OPCODE_RDMA_READ, {peer_host.remote_at(0), local(0, 0, 4000), local(0, 20000, 5000)});
    ends.run();
    EXPECT_EQ(a.sent().syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_TRUE(a.nic().failed());
    expect_conserved_at_both();
}

/// The memory of a READ, too, may end with it.
TEST_P(RdmaStagedCopies, ReadsToTheEndOfTheMemory)
{
    post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, room - 100000), local(0, 0, 100000)});
    ends.run();
    EXPECT_EQ(done(), 1u);
    EXPECT_TRUE(equal(ours.data(), theirs.data() + room - 100000, 100000));
}

/// The flag is postponed until the bytes in front of it are there; the WRITE behind it is executed with it.
TEST_P(RdmaStagedCopies, AcknowledgesNoPostponedWriteBeforeItsBytesAreThere)
{
    theirs.copies().holds = true;
    post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 0), host.local(1000, 3000)});
    post(WEFTIO_OPCODE_RDMA_WRITE, {peer_host.remote_at(0), host.local(8, 8)});
    post(WEFTIO_OPCODE_RDMA_WRITE, {remote_at(1, 5000), host.local(2000, 3000)});
    turns();
    EXPECT_EQ(done(), 0u);
    theirs.copies().complete_all();
    turns();
    EXPECT_TRUE(equal(peer_host.data(), host.data() + 8, 8));
    EXPECT_EQ(done(), 0u) << "one ACK for all, and the copy of the third is under way";
    theirs.copies().let_go();
    ends.run();
    EXPECT_EQ(done(), 3u);
    EXPECT_TRUE(equal(theirs.data() + 5000, host.data() + 2000, 3000));
}

TEST_F(RdmaCollected, BytesThatNothingWaitsForAreCopiedSoon)
{
    EXPECT_EQ(theirs.copies().begun, 0u);
    turns_of_the_peer(nic::soft::staged_copies::most_turns_collected + 2);
    EXPECT_EQ(theirs.copies().begun, 1u);
    EXPECT_TRUE(has_part());
    ends.run();
    EXPECT_EQ(done(), 2u);
    EXPECT_TRUE(equal(theirs.data(), host.data(), 40000));
}

TEST_F(RdmaCollected, BytesAreCopiedBeforeTheirMemoryEnds)
{
    EXPECT_EQ(theirs.copies().begun, 0u);
    theirs.end();
    EXPECT_EQ(theirs.copies().begun, 1u);
    EXPECT_TRUE(has_part());
    turns_of_the_peer(nic::soft::staged_copies::most_turns_collected + 2);
    EXPECT_EQ(theirs.copies().begun, 1u);
}

/// It is the only one of its engine.
TEST_F(RdmaCollected, BytesAreCopiedWhenTheQueuePairEnds)
{
    b.close();
    EXPECT_EQ(theirs.copies().begun, 1u);
    EXPECT_TRUE(has_part());
}

TEST_F(RdmaCollected, AFlushOfAnotherQueuePairWaitsForThem)
{
    crowd others(ends, 1);
    fake_pair& other = others.of(1, 0);
    theirs.copies().holds = true;
    other.post(WEFTIO_OPCODE_DUMP, {local(1, 0, 1)});
    other.push();
    turns_of_the_peer(20);
    EXPECT_EQ(theirs.copies().begun, 1u);
    EXPECT_EQ(other.nic().counters().done, 0u);
    theirs.copies().let_go();
    turns_of_the_peer(20);
    EXPECT_EQ(other.nic().counters().done, 1u);
    EXPECT_TRUE(has_part());
}

/// Both ends of a queue pair wait: its own completion says that the peer has executed something after those bytes.
TEST_F(RdmaCollected, TheNextCompletionOfTheQueuePairWaitsForThem)
{
    theirs.copies().holds = true;
    b.post(WEFTIO_OPCODE_RDMA_WRITE, {host.remote_at(60000), peer_host.local(0, 8)});
    b.push();
    for (unsigned each = 0; each < 20; ++each) {
        turns_of_the_peer(1);
        ends.unit(0).turn({.entries = 0});
    }
    EXPECT_EQ(b.nic().counters().done, 0u);
    theirs.copies().let_go();
    ends.run();
    EXPECT_EQ(b.nic().counters().done, 1u);
    EXPECT_TRUE(equal(theirs.data(), host.data(), 40000));
}

/// A kernel that sees the value reads the bytes in front of it, so they are not of one copy.
TEST_F(RdmaCollected, AValueBehindThemIsACopyOfItsOwn)
{
    hidden_memory memory(ends.at(1), 65536, all_rights);
    const auto write = [&](std::size_t at, std::size_t count) {
        post(WEFTIO_OPCODE_RDMA_WRITE, {remote(memory.address(at), memory.lkey()), host.local(at, count)});
    };
    ends.run();
    write(0, 2000);
    write(2000, 8);
    for (unsigned each = 0; each < 3; ++each) { // a packet each
        ends.unit(0).turn({.entries = 1});
        turns_of_the_peer(1);
    }
    ends.run();
    EXPECT_EQ(memory.copies().begun, 2u);
    EXPECT_TRUE(equal(memory.data(), host.data(), 2008));
}

/// WRITEs that overlap, of the host's memory and of the device's, and a READ behind them, while copies end at any time.
TEST_P(RdmaStagedCopies, KeepsTheOrderOfOverlappingRequestsWhenCopiesEndAtAnyTime)
{
    constexpr std::size_t pairs = 5, area = 100000, most = 9000;
    constexpr unsigned rounds = 12, writes = 8;
    crowd many(ends, pairs);
    std::mt19937 random(11);
    std::vector<std::uint8_t> expected(theirs.data(), theirs.data() + pairs * area);
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t each = 0; each != pairs; ++each) {
            fake_pair& pair = many.of(0, each);
            for (unsigned count = 0; count < writes; ++count) {
                const std::size_t bytes = 1 + random() % (count % 2 == 0 ? most : 16u),
                                  from = random() % (65536 - most);
                const std::size_t to = each * area + random() % (area - bytes);
                const bool staged = random() % 2 == 0;
                pair.post(WEFTIO_OPCODE_RDMA_WRITE,
                          {remote_at(1, to), staged ? local(0, from, bytes) : host.local(from, bytes)});
                std::memcpy(&expected[to], (staged ? ours.data() : host.data()) + from, bytes);
            }
            pair.post(WEFTIO_OPCODE_RDMA_READ, {remote_at(1, each * area), local(0, (1 + each) * area, area)});
            pair.push();
        }
        const auto all_done = [&] {
            for (std::size_t each = 0; each != pairs; ++each)
                if (many.of(0, each).nic().counters().done != (round + 1) * (writes + 1))
                    return false;
            return true;
        };
        for (unsigned turn = 0; turn < 100000 && !all_done(); ++turn) {
            for (hidden_memory* const memory : {&ours, &theirs}) {
                memory->copies().holds = random() % 4 != 0;
                if (random() % 4 == 0)
                    memory->copies().complete_all();
            }
            turns(1);
        }
        ASSERT_TRUE(all_done()) << round;
        ASSERT_TRUE(equal(theirs.data(), expected.data(), expected.size())) << round;
        ASSERT_TRUE(equal(ours.data() + area, expected.data(), expected.size())) << round;
    }
    many.expect_conserved_at_all();
}

INSTANTIATE_TEST_SUITE_P(Ends, RdmaStagedCopies, testing::Bool(),
                         [](const auto& info) { return info.param ? "OnePort" : "TwoPorts"; });

} // namespace weftio::test
