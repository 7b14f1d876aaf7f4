// Every operation between two queue pairs, of two ports and of one.
#include <chrono>

#include <gmock/gmock.h>

#include "two_ends.hpp"

namespace weftio::test {

namespace {

class RdmaEnds : public testing::TestWithParam<ends_at> {
 protected:
    void TearDown() override
    {
        for (unsigned end = 0; end < 2; ++end) {
            expect_conserved(ends.queue(end).nic().counters());
            expect_conserved(ends.unit(end));
        }
    }
    void expect_done(unsigned end, std::uint32_t position)
    {
        EXPECT_EQ(ends.queue(end).sent().position, position & 0xffff);
        EXPECT_EQ(ends.queue(end).sent().syndrome, 0);
    }

    explicit RdmaEnds(rdma_service service = rdma_service::reliable) : ends(GetParam(), service) {}

    two_ends ends;
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    end_memory &own_memory = ends.memory(0), &peer_memory = ends.memory(1);
};

class UnreliableRdmaEnds : public RdmaEnds {
 protected:
    UnreliableRdmaEnds() : RdmaEnds(rdma_service::unreliable) {}
};

constexpr std::uint32_t whole = two_ends::memory_bytes;

} // namespace

TEST_P(RdmaEnds, WritesEveryByteOfAMessageOfManyPackets)
{
    ends.connect();
    std::vector<std::uint8_t> expected = own_memory.copy();
    const std::uint32_t position =
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
    std::memset(peer_memory.data(), 0, whole);
    a.push();
    ends.run();
    EXPECT_EQ(peer_memory.copy(), expected);
    expect_done(0, position);
    EXPECT_EQ(a.nic().counters().done_bytes, whole);
    EXPECT_EQ(b.nic().counters().executed, whole / 1024);
}

TEST_P(RdmaEnds, GathersPiecesAndInlineBytes)
{
    ends.connect();
    std::vector<segment> body{peer_memory.remote_at(100), own_memory.local(0, 700), own_memory.local(5000, 1500)};
    const std::vector<segment> more = inlined({1, 2, 3, 4, 5});
    body.insert(body.end(), more.begin(), more.end());
    std::vector<std::uint8_t> expected = peer_memory.copy();
    std::copy_n(own_memory.data(), 700, expected.begin() + 100);
    std::copy_n(own_memory.data() + 5000, 1500, expected.begin() + 800);
    for (std::uint8_t each = 1; each <= 5; ++each)
        expected[2299u + each] = each;
    const std::uint32_t position = a.post(WEFTIO_OPCODE_RDMA_WRITE, body);
    a.push();
    ends.run();
    EXPECT_EQ(peer_memory.copy(), expected);
    expect_done(0, position);
}

TEST_P(RdmaEnds, ReadsIntoSeveralPieces)
{
    ends.connect();
    std::vector<std::uint8_t> expected = own_memory.copy();
    std::memset(peer_memory.data() + 7, 0xa5, 4000);
    std::fill_n(expected.begin() + 10, 3, 0xa5);
    std::fill_n(expected.begin() + 2000, 3997, 0xa5);
    const std::uint32_t position = a.post(
        WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(7), own_memory.local(10, 3), own_memory.local(2000, 3997)});
    a.push();
    ends.run();
    EXPECT_EQ(own_memory.copy(), expected);
    expect_done(0, position);
}

TEST_P(RdmaEnds, ChangesWordsInOneStep)
{
    ends.connect();
    const auto word = [](const end_memory& memory, std::size_t at) {
        std::uint64_t value = 0;
        std::memcpy(&value, memory.data() + at, sizeof value);
        return value;
    };
    const std::uint64_t begin = 0x1122334455667788;
    std::memcpy(peer_memory.data() + 64, &begin, sizeof begin);
    a.post(WEFTIO_OPCODE_FETCH_ADD, {peer_memory.remote_at(64), atomic(0x1111), own_memory.local(0, 8)});
    a.post(WEFTIO_OPCODE_COMPARE_SWAP, {peer_memory.remote_at(64), atomic(5, begin), own_memory.local(8, 8)});
    const std::uint32_t last = a.post(WEFTIO_OPCODE_COMPARE_SWAP,
                                      {peer_memory.remote_at(64), atomic(6, begin + 0x1111), own_memory.local(16, 8)});
    a.push();
    ends.run();
    EXPECT_EQ(word(own_memory, 0), begin);
    EXPECT_EQ(word(own_memory, 8), begin + 0x1111) << "another word was compared: not swapped";
    EXPECT_EQ(word(own_memory, 16), begin + 0x1111);
    EXPECT_EQ(word(peer_memory, 64), 6u);
    expect_done(0, last);
}

TEST_P(RdmaEnds, NameMemoryByAnyAddress)
{
    ends.connect();
    constexpr std::uint64_t size = 4096;
    std::uint32_t position = 0;
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0x1234567890}, 0 - size}) {
        const end_memory ours(ends.at(0), ends.cpu, size, {.rights = all_rights, .iova = first});
        const end_memory theirs(ends.at(1), ends.cpu, size, {.rights = all_rights, .iova = first});
        EXPECT_EQ(remote_region::of(theirs.region, 8).address, first + 8);
        std::vector<std::uint8_t> expected = theirs.copy();
        std::copy_n(ours.data(), 100, expected.begin());
        std::copy_n(ours.data() + size - 100, 100, expected.end() - 100);
        std::copy_n(ours.data() + 200, 50, expected.begin() + 300);
        b.post_receive({theirs.local(300, 50)});
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 100)});
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(size - 100), ours.local(size - 100, 100)});
        a.post(WEFTIO_OPCODE_SEND, {ours.local(200, 50)});
        a.post(WEFTIO_OPCODE_RDMA_READ, {theirs.remote_at(300), ours.local(1000, 50)});
        position = a.post(WEFTIO_OPCODE_FETCH_ADD, {theirs.remote_at(512), atomic(3), ours.local(2000, 8)});
        std::uint64_t word = 0, old = 0;
        std::memcpy(&word, &expected[512], sizeof word);
        a.push();
        ends.run();
        std::memcpy(&old, ours.data() + 2000, sizeof old);
        EXPECT_EQ(old, word);
        word += 3;
        std::memcpy(&expected[512], &word, sizeof word);
        EXPECT_EQ(theirs.copy(), expected) << first;
        EXPECT_TRUE(std::equal(ours.data() + 1000, ours.data() + 1050, ours.data() + 200));
    }
    expect_done(0, position);
}

TEST_P(RdmaEnds, RefuseTheKeyThatARegionHadBefore)
{
    for (const bool remote_end : {true, false}) {
        ends.connect();
        end_memory ours(ends.at(0), ends.cpu, 4096, {.rights = all_rights});
        end_memory theirs(ends.at(1), ends.cpu, 4096, {.rights = all_rights});
        const segment before = remote_end ? theirs.remote_at(1024) : ours.local(1024, 8);
        end_memory& changes = remote_end ? theirs : ours;
        changes.region.rereg({.rights = all_rights}, 1024, 512);
        EXPECT_EQ(changes.region.bytes(), 512u);
        const std::vector<std::uint8_t> kept = theirs.copy();
        std::vector<std::uint8_t> expected = kept;
        std::copy_n(ours.data() + (remote_end ? 0 : 1024), 8, expected.begin() + (remote_end ? 1024 : 0));
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), ours.local(0, 8)});
        a.push();
        ends.run();
        EXPECT_EQ(theirs.copy(), expected) << "the range begins at its first byte";
        a.post(WEFTIO_OPCODE_RDMA_WRITE, remote_end ? std::vector<segment>{before, ours.local(0, 8)}
                                                    : std::vector<segment>{theirs.remote_at(0), before});
        a.push();
        ASSERT_TRUE(ends.run_until([&] { return a.nic().failed(); }));
        EXPECT_EQ(theirs.copy(), expected);
        EXPECT_EQ(a.reported().syndrome, remote_end ? WEFTIO_SYNDROME_REMOTE_ACCESS : WEFTIO_SYNDROME_LOCAL_PROTECTION);
        ends.run();
        for (unsigned end = 0; end < 2; ++end) {
            while (ends.queue(end).reported().syndrome != 0) {
            }
            ends.queue(end).restart();
        }
    }
}

TEST_P(RdmaEnds, CompletesReceivesInOrderAndSaysByWhat)
{
    ends.connect();
    for (unsigned at = 0; at < 3; ++at)
        b.post_receive({peer_memory.local(at * 4096, 1000), peer_memory.local(at * 4096 + 2000, 2096)});
    std::vector<std::uint8_t> expected = peer_memory.copy();
    std::copy_n(own_memory.data(), 1000, expected.begin());
    std::copy_n(own_memory.data() + 1000, 1500, expected.begin() + 2000);
    std::copy_n(own_memory.data(), 7, expected.begin() + 60000);
    a.post(WEFTIO_OPCODE_SEND, {own_memory.local(0, 2500)}, 0, WEFTIO_SOLICITED);
    a.post(WEFTIO_OPCODE_SEND_IMMEDIATE, {}, 0xcafe0001);
    const std::uint32_t last =
        a.post(WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE, {peer_memory.remote_at(60000), own_memory.local(0, 7)}, 0xcafe0002);
    a.push();
    ends.run();
    EXPECT_EQ(peer_memory.copy(), expected);
    expect_done(0, last);
    const std::array<std::uint32_t, 3> opcodes{2, 3, 1}, bytes{2500, 0, 7}, immediates{0, 0xcafe0001, 0xcafe0002};
    for (unsigned at = 0; at < 3; ++at) {
        const std::optional<weftio_cqe> cqe = b.received();
        ASSERT_TRUE(cqe) << at;
        EXPECT_EQ(weftio_cqe_opcode(cqe->publication), opcodes[at]);
        EXPECT_EQ(weftio_cqe_wqe_counter(cqe->publication), at);
        EXPECT_EQ((cqe->publication >> 24 & WEFTIO_CQE_SOLICITED) != 0, at == 0);
        EXPECT_EQ(weftio_swap32(cqe->byte_count_be), bytes[at]);
        EXPECT_EQ(weftio_swap32(cqe->immediate_be), immediates[at]);
        EXPECT_EQ(weftio_swap32(cqe->sop_drop_qpn_be), b.number());
    }
    EXPECT_FALSE(b.received());
}

TEST_P(RdmaEnds, SkipsNopsAndTellsOfEntriesThatAskForIt)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_NOP, {});
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 1)}, 0, WEFTIO_CE_ALWAYS_AND_EVENT);
    const std::uint32_t last = a.post(WEFTIO_OPCODE_NOP, {});
    a.push();
    ends.run();
    expect_done(0, last);
    const nic::rdma_counters count = a.nic().counters();
    EXPECT_EQ(count.skipped, 2u);
    EXPECT_EQ(count.done, 1u);
    nic::send_outcome outcome;
    ASSERT_TRUE(a.nic().next(outcome));
    EXPECT_EQ(outcome.position, 1u);
    EXPECT_EQ(outcome.syndrome, 0);
}

TEST_P(RdmaEnds, FlushesWithoutAPacketAndHasTheEntryInFrontAcknowledged)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 1)});
    const std::uint32_t last = a.post(WEFTIO_OPCODE_DUMP, {own_memory.local(0, 100)});
    a.push();
    ends.run();
    expect_done(0, last);
    const nic::rdma_counters count = a.nic().counters();
    EXPECT_EQ(count.done, 2u);
    EXPECT_EQ(count.done_bytes, 1u);
    EXPECT_EQ(count.packets, b.nic().counters().requests);
    EXPECT_EQ(count.local_ack_timeout_err, 0u);
}

TEST_P(RdmaEnds, WaitsForAReceiveEntry)
{
    ends.connect();
    const std::uint32_t position = a.post(WEFTIO_OPCODE_SEND, {own_memory.local(0, 100)});
    a.push();
    ends.run();
    EXPECT_EQ(a.sent().position, 0xffffu);
    b.post_receive({peer_memory.local(0, 100)});
    ASSERT_TRUE(ends.run_until([&] { return a.sent().position == position; }));
    EXPECT_TRUE(b.received());
    EXPECT_GE(a.nic().counters().rnr_naks, 1u);
}

TEST_P(RdmaEnds, WakesAPeerThatHasLongSlept)
{
    ends.connect();
    for (unsigned turn = 0; turn < 2000; ++turn)
        ends.run();
    const std::uint32_t position =
        a.post(WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), own_memory.local(0, 100)});
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return a.sent().position == position; }));
    expect_done(0, position);
    EXPECT_EQ(std::memcmp(own_memory.data(), peer_memory.data(), 100), 0);
}

TEST_P(RdmaEnds, SharesATurnWithItsNeighbors)
{
    ends.connect();
    fake_pair other(ends.at(0)), there(ends.at(1));
    nic::rdma_connection to = ends.connection(0), back = ends.connection(1);
    to.peer_queue = there.number();
    back.peer_queue = other.number();
    other.connect(to);
    there.connect(back);
    for (fake_pair* each : {&a, &other}) {
        each->post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
        each->post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
        each->push();
    }
    ends.at(0).turn();
    EXPECT_EQ(a.nic().counters().packets, other.nic().counters().packets);
    EXPECT_GT(a.nic().counters().packets, 48u);
    EXPECT_LE(a.nic().counters().packets, 64u);
    a.nic().stop_sending();
}

TEST_P(RdmaEnds, SendsAPacketATurnWhileANeighborIsInAHurry)
{
    ends.connect();
    fake_pair here(ends.at(0)), there(ends.at(1));
    nic::rdma_connection to = ends.connection(0), back = ends.connection(1);
    back.peer_queue = here.number();
    to.peer_queue = there.number();
    here.connect(to);
    there.connect(back);
    for (unsigned message = 0; message < 16; ++message)
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
    a.push();
    unsigned turns = 0;
    std::uint64_t before = 0;
    for (unsigned trip = 0; trip < 8; ++trip) {
        const std::uint32_t position =
            here.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 8)});
        here.push();
        const unsigned begun = turns;
        for (; here.sent().position != (position & 0xffff); ++turns) {
            ASSERT_LT(turns - begun, 4u);
            ends.at(0).turn();
            ends.at(1).turn();
        }
        if (trip == 0) // which finds nobody in a hurry
            before = a.nic().counters().packets, turns = 0;
    }
    const unsigned of_the_port = turns * (GetParam().one_port ? 2 : 1);
    if (GetParam().engines == 1) { // else the neighbor is at another engine
        EXPECT_LE(a.nic().counters().packets - before, of_the_port + nic::soft::turn_shares::turns_to_a_deferred);
    }
    ends.run();
    EXPECT_EQ(peer_memory.copy(), own_memory.copy());
}

TEST_P(RdmaEnds, CopiesWithoutPacketsFromMemoryToMemoryOfOnePort)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
    a.push();
    ends.run();
    const std::uint64_t requests = ends.unit(0).arrivals().claimed.value(), packets = a.nic().counters().packets;
    EXPECT_EQ(packets, whole / 1024);
    const bool copies = GetParam().one_port && !GetParam().packets;
    if (copies) {
        EXPECT_LT(requests, packets / 4);
    }
    if (GetParam().packets) {
        EXPECT_GE(requests, packets);
    }
}

TEST_P(RdmaEnds, LeavesNobodyWithoutRoom)
{
    std::vector<std::unique_ptr<fake_pair>> pairs;
    for (unsigned pair = 0; pair < 16; ++pair) {
        for (unsigned end = 0; end < 2; ++end)
            ends.queues[end] = std::make_unique<fake_pair>(ends.at(end));
        ends.connect();
        for (unsigned entry = 0; entry < 60; ++entry)
            ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, whole)});
        ends.queue(0).push();
        for (std::unique_ptr<fake_pair>& each : ends.queues)
            pairs.push_back(std::move(each));
    }
    for (unsigned turns = 0; turns < 60; ++turns) {
        ends.at(0).turn();
        ends.at(1).turn();
    }
    for (std::size_t pair = 0; pair < pairs.size(); pair += 2) {
        EXPECT_GT(pairs[pair]->nic().counters().packets, 64u / GetParam().engines) << pair / 2; // they share mbufs
        pairs[pair]->nic().stop_sending();
    }
    pairs.clear();
    for (unsigned end = 0; end < 2; ++end)
        ends.queues[end] = std::make_unique<fake_pair>(ends.at(end));
}

TEST_P(RdmaEnds, BeginsAgainWhenItIsReset)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote(peer_memory.address(), 7), own_memory.local(0, 8)});
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return a.nic().failed() && b.nic().failed(); }));
    a.restart();
    b.restart();
    EXPECT_FALSE(a.nic().failed());
    ends.connect();
    const std::uint32_t position = a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 8)});
    a.push();
    ends.run();
    expect_done(0, position);
    EXPECT_EQ(std::memcmp(own_memory.data(), peer_memory.data(), 8), 0);
    EXPECT_EQ(a.nic().counters().done, 1u);
    EXPECT_EQ(a.nic().counters().failed, 1u);
}

TEST_P(RdmaEnds, SpeaksIpv6)
{
    ends.ipv6 = true;
    ends.connect();
    const std::uint32_t position =
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(100, 5001)});
    a.push();
    ends.run();
    EXPECT_EQ(std::memcmp(own_memory.data() + 100, peer_memory.data(), 5001), 0);
    expect_done(0, position);
}

TEST_P(UnreliableRdmaEnds, CarryMessages)
{
    ends.connect();
    b.post_receive({peer_memory.local(0, 5000)});
    const std::uint32_t position = a.post(WEFTIO_OPCODE_SEND, {own_memory.local(100, 5000)});
    a.push();
    ends.run();
    EXPECT_EQ(std::memcmp(own_memory.data() + 100, peer_memory.data(), 5000), 0);
    EXPECT_TRUE(b.received());
    expect_done(0, position);
    EXPECT_EQ(b.nic().counters().packets, 0u);
    EXPECT_EQ(a.nic().counters().answers, 0u);
}

/// Rings of 16 blocks, and entries of two of them: the ring ends within entries, and indices of 16 bits begin again.
TEST_P(RdmaEnds, GoesOnWhenIndicesWrap)
{
    two_ends small(GetParam(), 16, 4);
    small.connect();
    const std::vector<segment> body{pointer(4, small.memory(0).region.lkey(), small.memory(0).address()),
                                    pointer(4, small.memory(0).region.lkey(), small.memory(0).address(4)),
                                    pointer(4, small.memory(0).region.lkey(), small.memory(0).address(8)),
                                    pointer(4, small.memory(0).region.lkey(), small.memory(0).address(12))};
    std::uint32_t received = 0;
    for (std::uint32_t sent = 0; sent < 40'000; ++sent) {
        small.queue(1).post_receive({small.memory(1).local(sent % 1000 * 16, 16)});
        small.memory(0).data()[sent % 16] ^= static_cast<std::uint8_t>(sent);
        const std::uint32_t position = small.queue(0).post(WEFTIO_OPCODE_SEND_IMMEDIATE, body, sent);
        small.queue(0).push();
        ASSERT_TRUE(small.run_until([&] { return small.queue(0).sent().position == (position & 0xffff); })) << sent;
        const std::optional<weftio_cqe> cqe = small.queue(1).received();
        ASSERT_TRUE(cqe) << sent;
        ASSERT_EQ(weftio_swap32(cqe->immediate_be), received++);
        ASSERT_EQ(std::memcmp(small.memory(0).data(), small.memory(1).data() + sent % 1000 * 16, 16), 0) << sent;
    }
    EXPECT_EQ(small.queue(0).nic().counters().done, 40'000u);
}

constexpr auto name_of_ends = [](const testing::TestParamInfo<ends_at>& where) { return name_of(where.param); };
INSTANTIATE_TEST_SUITE_P(Of, RdmaEnds, testing::ValuesIn(all_ends), name_of_ends);
INSTANTIATE_TEST_SUITE_P(Of, UnreliableRdmaEnds, testing::ValuesIn(all_ends), name_of_ends);

} // namespace weftio::test
