// What is refused: by the own side, by the peer, by the port. Nothing is written then.
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "core/refusal.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

class RdmaRefusal : public testing::Test {
 protected:
    explicit RdmaRefusal(rdma_service service = rdma_service::reliable) : ends(false, service) {}
    void SetUp() override
    {
        before = peer_memory.copy();
        ours = own_memory.copy();
    }
    /// Nothing was written at either end, and every entry counts once.
    void TearDown() override
    {
        EXPECT_EQ(peer_memory.copy(), before);
        EXPECT_EQ(own_memory.copy(), ours);
        for (unsigned end = 0; end < 2; ++end) {
            if (ends.queues[end])
                expect_conserved(ends.queue(end).nic().counters());
            expect_conserved(ends.unit(end));
        }
    }
    /// The queue is in error: the first entry failed with this syndrome, the one behind it was flushed.
    void expect_failure(std::uint8_t syndrome)
    {
        const nic::send_outcome reported = a.reported();
        EXPECT_EQ(reported.syndrome, syndrome) << reported.text;
        EXPECT_EQ(reported.position, 0u);
        EXPECT_TRUE(a.nic().failed());
        EXPECT_EQ(a.sent().syndrome, WEFTIO_SYNDROME_FLUSHED);
        const nic::rdma_counters count = a.nic().counters();
        EXPECT_EQ(count.failed, 1u);
        EXPECT_EQ(count.flushed, 1u);
        EXPECT_EQ(count.done, 0u);
    }
    /// This is reported to the host for the entry, and nothing else.
    void expect_reason(refusal why)
    {
        const nic::send_outcome reported = a.reported();
        EXPECT_EQ(reported.reason, why) << reported.text;
        EXPECT_EQ(reported.syndrome, core::syndrome_of(why)) << reported.text;
        EXPECT_THAT(reported.text, testing::HasSubstr(" failed: "));
        EXPECT_THAT(reported.text, testing::EndsWith(explain(why)));
    }
    /// This is reported to the host of the peer, and nothing more.
    void expect_reported(nic::outcome_of what, std::uint8_t syndrome, const std::string& words)
    {
        const nic::send_outcome reported = b.reported();
        EXPECT_EQ(reported.what, what) << reported.text;
        EXPECT_EQ(reported.syndrome, syndrome) << reported.text;
        EXPECT_EQ(reported.position, what == nic::outcome_of::receive_ring ? 1u : 0u);
        EXPECT_THAT(reported.text, testing::StartsWith(fmt::format("weftio: rdma_queue {}: ", b.number())));
        EXPECT_THAT(reported.text, testing::HasSubstr(words));
        EXPECT_THAT(reported.text, testing::EndsWith(explain(reported.reason)));
        EXPECT_EQ(b.reported().text, "");
    }
    /// Posts an entry, and one behind it that would be right.
    void run(std::uint32_t opcode, const std::vector<segment>& body)
    {
        a.post(opcode, body);
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(50, 8)});
        a.push();
        ASSERT_TRUE(ends.run_until([&] { return a.nic().failed(); }));
        ends.run();
    }

    two_ends ends;
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    end_memory &own_memory = ends.memory(0), &peer_memory = ends.memory(1);
    std::vector<std::uint8_t> before, ours;
};

} // namespace

TEST_F(RdmaRefusal, OfAKeyThatThePeerDoesNotHave)
{
    ends.connect();
    run(WEFTIO_OPCODE_RDMA_WRITE,
        {remote(peer_memory.address(), peer_memory.region.lkey() ^ 1), own_memory.local(0, 3000)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_ACCESS);
    EXPECT_EQ(b.nic().counters().refused, 1u);
    EXPECT_TRUE(b.nic().failed());
}

TEST_F(RdmaRefusal, OfBytesBehindTheRegionOfThePeer)
{
    ends.connect();
    run(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(two_ends::memory_bytes - 2999), own_memory.local(0, 3000)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_ACCESS);
}

TEST_F(RdmaRefusal, OfARightThatTheRegionLacks)
{
    ends.connect();
    const end_memory readable(ends.at(1), ends.cpu, 4096, {.rights = access::local_write | access::remote_read});
    const std::vector<std::uint8_t> kept = readable.copy();
    run(WEFTIO_OPCODE_RDMA_WRITE, {readable.remote_at(0), own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_ACCESS);
    EXPECT_EQ(readable.copy(), kept);
}

TEST_F(RdmaRefusal, OfARegionOfAnotherDomain)
{
    ends.connect();
    const end_memory apart(ends.at(1), ends.cpu, 4096, {.rights = all_rights, .domain = protection_domain::make()});
    const std::vector<std::uint8_t> kept = apart.copy();
    run(WEFTIO_OPCODE_RDMA_WRITE, {apart.remote_at(0), own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_ACCESS);
    EXPECT_EQ(apart.copy(), kept);
}

TEST_F(RdmaRefusal, OfAnOperationThatThePeersQueueDoesNotAllow)
{
    a.connect(ends.connection(0));
    nic::rdma_connection to = ends.connection(1);
    to.rights = access::remote_read;
    b.connect(to);
    run(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_INVALID);
}

TEST_F(RdmaRefusal, OfAKeyOfOurOwnThatIsUnknown)
{
    ends.connect();
    run(WEFTIO_OPCODE_RDMA_WRITE,
        {peer_memory.remote_at(0), pointer(8, own_memory.region.lkey() ^ 1, own_memory.address())});
    expect_failure(WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(b.nic().counters().requests, 0u);
}

/// 2^31 bytes are sent, and the peer refuses them; one more is refused here.
TEST_F(RdmaRefusal, OfAMessageOfMoreThan2GiBIsOurOwn)
{
    constexpr std::size_t most = std::size_t{1} << 31;
    void* const pages = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    {
        const memory adopted = ends.cpu.adopt(pages, most);
        const memory_region region(ends.at(0), adopted);
        const segment whole = pointer(0, region.lkey(), reinterpret_cast<std::uint64_t>(pages)); // 0: 2^31 bytes
        const std::vector<segment> as_long{peer_memory.remote_at(0), whole},
            longer{peer_memory.remote_at(0), whole, own_memory.local(0, 1)};
        const std::tuple<std::uint32_t, std::vector<segment>, refusal> cases[]{
            {WEFTIO_OPCODE_RDMA_WRITE, as_long, refusal::remote_access},
            {WEFTIO_OPCODE_RDMA_WRITE, longer, refusal::message_too_long},
            {WEFTIO_OPCODE_RDMA_READ, as_long, refusal::remote_access},
            {WEFTIO_OPCODE_RDMA_READ, longer, refusal::read_too_long}};
        for (const auto& [opcode, body, why] : cases) {
            a.restart();
            b.restart();
            ends.connect();
            run(opcode, body);
            expect_reason(why);
        }
    }
    munmap(pages, most);
}

TEST_F(RdmaRefusal, OfAReadToMemoryThatMayNotBeWritten)
{
    ends.connect();
    const end_memory fixed(ends.at(0), ends.cpu, 4096, {.rights = access::none});
    const std::vector<std::uint8_t> kept = fixed.copy();
    run(WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), fixed.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(fixed.copy(), kept);
    EXPECT_EQ(a.sent().vendor, static_cast<std::uint8_t>(refusal::flushed));
}

TEST_F(RdmaRefusal, OfARegionOfOurOwnThatIsOfAnotherDomain)
{
    ends.connect();
    const end_memory apart(ends.at(0), ends.cpu, 4096, {.domain = protection_domain::make()});
    run(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), apart.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_LOCAL_PROTECTION);
}

TEST_F(RdmaRefusal, OfAnEntryThatIsMadeShorterBeforeItsAnswerComes)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), own_memory.local(0, 0x48)});
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(50, 8)}, 0, WEFTIO_FENCE);
    a.push();
    ends.at(0).turn();
    a.spoil(0, 8); // the byte count of its data segment: 8
    ends.run();
    expect_failure(WEFTIO_SYNDROME_LOCAL_QP_OPERATION);
}

TEST_F(RdmaRefusal, OfMemoryThatAnEntryNamesOnlyWhenItsAnswerComes)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), own_memory.local(0, 8)});
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(50, 8)}, 0, WEFTIO_FENCE);
    a.push();
    ends.at(0).turn();
    a.spoil(0, 10); // the upper half of the address of its data segment
    ends.run();
    expect_failure(WEFTIO_SYNDROME_LOCAL_PROTECTION);
}

TEST_F(RdmaRefusal, ByThePeerThatCannotWriteToItsReceive)
{
    ends.connect();
    b.post_receive({pointer(100, peer_memory.region.lkey() ^ 1, peer_memory.address())});
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_OPERATION);
    const std::optional<weftio_cqe> cqe = b.received();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(weftio_cqe_syndrome(&*cqe), WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(weftio_swap64(cqe->timestamp_be) >> 8 & 0xff, static_cast<std::uint8_t>(refusal::unknown_key));
}

TEST_F(RdmaRefusal, ToInvalidateTheKeyOfARegion)
{
    ends.connect();
    b.post_receive({peer_memory.local(0, 8)});
    a.post(WEFTIO_OPCODE_SEND_INVALIDATE, {own_memory.local(0, 8)}, 0x1234);
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return b.nic().failed(); }));
    EXPECT_FALSE(a.nic().failed()) << "the peer is not told";
    const std::optional<weftio_cqe> cqe = b.received();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(weftio_swap64(cqe->timestamp_be) >> 8 & 0xff, static_cast<std::uint8_t>(refusal::not_invalidated));
    const std::string reported = b.reported().text;
    EXPECT_THAT(reported, testing::HasSubstr("the peer's SEND, which invalidates key 0x1234, was refused: "));
}

TEST_F(RdmaRefusal, EndsBothSidesOfAQueue)
{
    ends.connect();
    a.post_receive({own_memory.local(0, 8)});
    run(WEFTIO_OPCODE_RDMA_WRITE,
        {remote(peer_memory.address(), peer_memory.region.lkey() ^ 1), own_memory.local(0, 8)});
    const std::optional<weftio_cqe> cqe = a.received();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(weftio_cqe_syndrome(&*cqe), WEFTIO_SYNDROME_FLUSHED);
    b.post(WEFTIO_OPCODE_RDMA_WRITE, {own_memory.remote_at(0), peer_memory.local(0, 8)});
    b.push();
    ends.run();
    EXPECT_EQ(b.sent().syndrome, WEFTIO_SYNDROME_FLUSHED);
    EXPECT_EQ(b.nic().counters().flushed, 1u);
}

TEST_F(RdmaRefusal, OfRequestsToAQueueThatHasFailed)
{
    a.connect(ends.connection(0));
    nic::rdma_connection to = ends.connection(1);
    to.timeout = 1;
    to.retry_count = 1;
    b.connect(to);
    run(WEFTIO_OPCODE_RDMA_WRITE,
        {peer_memory.remote_at(0), pointer(8, own_memory.region.lkey() ^ 1, own_memory.address())});
    b.post(WEFTIO_OPCODE_RDMA_WRITE, {own_memory.remote_at(0), peer_memory.local(0, 8)});
    b.push();
    ASSERT_TRUE(ends.run_until([&] { return b.nic().failed(); }));
    EXPECT_EQ(b.reported().syndrome, WEFTIO_SYNDROME_RETRIES_EXCEEDED);
    EXPECT_EQ(a.nic().counters().ignored, 2u);
}

TEST_F(RdmaRefusal, OfEntriesThatAreMalformed)
{
    const std::tuple<std::uint32_t, std::vector<segment>, refusal> bad[]{
        {WEFTIO_OPCODE_MMO, {}, refusal::unknown_opcode},
        {WEFTIO_OPCODE_RDMA_WRITE, {}, refusal::wrong_size},
        {WEFTIO_OPCODE_FETCH_ADD, {peer_memory.remote_at(0), atomic(1)}, refusal::wrong_atomic},
        {WEFTIO_OPCODE_FETCH_ADD, {peer_memory.remote_at(0), atomic(1), own_memory.local(0, 4)}, refusal::wrong_atomic},
        {WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), inlined({1, 2})[0]}, refusal::wrong_segment},
        {WEFTIO_OPCODE_SEND, {pointer(WEFTIO_INLINE_SEGMENT | 13, 0, 0)}, refusal::wrong_size},
    };
    for (const auto& [opcode, body, why] : bad) {
        ends.connect();
        const std::uint64_t failed = a.nic().counters().failed;
        run(opcode, body);
        expect_reason(why);
        EXPECT_EQ(a.nic().counters().failed, failed + 1) << opcode;
        EXPECT_EQ(b.nic().counters().requests, 0u) << opcode;
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
    }
}

/// The peer refuses it, as it refuses that of any requester.
TEST_F(RdmaRefusal, OfAnAtomicAtAnAddressThatIsNotAligned)
{
    for (const bool one_port : {false, true})
        for (const auto& [opcode, at] : {std::pair{WEFTIO_OPCODE_FETCH_ADD, 4}, {WEFTIO_OPCODE_COMPARE_SWAP, 9}}) {
            two_ends some(one_port);
            some.connect();
            some.queue(0).post(
                static_cast<std::uint32_t>(opcode),
                {some.memory(1).remote_at(static_cast<std::uint64_t>(at)), atomic(1), some.memory(0).local(0, 8)});
            some.queue(0).push();
            ASSERT_TRUE(some.run_until([&] { return some.queue(0).nic().failed(); }));
            EXPECT_EQ(some.queue(0).reported().reason, refusal::remote_invalid);
            EXPECT_EQ(some.queue(1).nic().counters().refused, 1u);
        }
}

/// The reason of an entry is its own, and not one that has its syndrome too.
TEST_F(RdmaRefusal, TellsTheHostWhatIsWrongWithOurMemory)
{
    const end_memory apart(ends.at(0), ends.cpu, 4096, {.domain = protection_domain::make()});
    const end_memory fixed(ends.at(0), ends.cpu, 4096, {.rights = access::none});
    const std::tuple<std::uint32_t, segment, refusal> cases[]{
        {WEFTIO_OPCODE_RDMA_WRITE, pointer(8, own_memory.region.lkey() ^ 1, own_memory.address()),
         refusal::unknown_key},
        {WEFTIO_OPCODE_RDMA_WRITE, apart.local(0, 8), refusal::other_domain},
        {WEFTIO_OPCODE_RDMA_READ, fixed.local(0, 8), refusal::no_local_write},
        {WEFTIO_OPCODE_RDMA_WRITE, own_memory.local(two_ends::memory_bytes - 7, 8), refusal::outside_region}};
    for (const auto& [opcode, piece, why] : cases) {
        ends.connect();
        run(opcode, {peer_memory.remote_at(0), piece});
        expect_reason(why);
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
    }
}

TEST_F(RdmaRefusal, OfASendThatIsLongerThanItsReceive)
{
    ends.connect();
    b.post_receive({peer_memory.local(0, 1024)});
    b.post_receive({peer_memory.local(0, 1024)});
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 1025)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_INVALID);
    const std::optional<weftio_cqe> first = b.received(), second = b.received();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(weftio_cqe_opcode(first->publication), WEFTIO_CQE_OPCODE_RESPONDER_ERROR);
    EXPECT_EQ(weftio_cqe_syndrome(&*first), WEFTIO_SYNDROME_LOCAL_LENGTH);
    EXPECT_EQ(weftio_cqe_syndrome(&*second), WEFTIO_SYNDROME_FLUSHED);
    // The first packet fits, and was placed before the second showed that the message does not.
    std::copy_n(own_memory.data(), 1024, before.begin());
}

TEST_F(RdmaRefusal, OfARecordThatClaimsMoreThanTheRingHolds)
{
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 8)});
    a.push_as(65);
    ends.run();
    EXPECT_TRUE(a.nic().failed());
    EXPECT_EQ(a.reported().syndrome, WEFTIO_SYNDROME_LOCAL_QP_OPERATION);
}

TEST_F(RdmaRefusal, OfAReceiveRecordThatClaimsMoreThanTheRingHolds)
{
    ends.connect();
    b.claim_receives(65);
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_REMOTE_OPERATION);
    expect_reported(nic::outcome_of::none, WEFTIO_SYNDROME_LOCAL_QP_OPERATION, "doorbell record claims more entries");
    EXPECT_TRUE(b.nic().failed());
    EXPECT_EQ(b.sent().vendor, static_cast<std::uint8_t>(refusal::refused_peer)) << "the kernel hears of it too";
    EXPECT_EQ(b.nic().counters().received, 0u);
}

class UnreliableRdmaRefusal : public RdmaRefusal {
 protected:
    UnreliableRdmaRefusal() : RdmaRefusal(rdma_service::unreliable) {}
};

TEST_F(UnreliableRdmaRefusal, OfAReceiveRecordByAQueueThatAnswersNothing)
{
    ends.connect();
    b.claim_receives(65);
    a.post(WEFTIO_OPCODE_SEND, {own_memory.local(0, 8)});
    a.push();
    ends.run();
    EXPECT_TRUE(b.nic().failed());
    expect_reported(nic::outcome_of::none, WEFTIO_SYNDROME_LOCAL_QP_OPERATION, "doorbell record claims more entries");
}

TEST_F(RdmaRefusal, OfReceivesThatArePostedToAFailedQueue)
{
    ends.connect();
    run(WEFTIO_OPCODE_RDMA_WRITE, {remote(peer_memory.address(), 7), own_memory.local(0, 8)});
    ASSERT_TRUE(b.nic().failed());
    EXPECT_EQ(b.sent().syndrome, WEFTIO_SYNDROME_FLUSHED) << "who waits for a receive looks here";
    b.post_receive({peer_memory.local(0, 8)});
    b.push(); // it may sleep
    ends.run();
    const std::optional<weftio_cqe> cqe = b.received();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(weftio_cqe_syndrome(&*cqe), WEFTIO_SYNDROME_FLUSHED);
}

TEST_F(RdmaRefusal, TellsTheHostWhoseMemoryAndWhy)
{
    const end_memory readable(ends.at(1), ends.cpu, 4096, {.rights = access::local_write | access::remote_read});
    const end_memory apart(ends.at(1), ends.cpu, 4096, {.rights = all_rights, .domain = protection_domain::make()});
    const std::vector<std::pair<segment, std::string>> cases{
        {remote(peer_memory.address(), 7),
         fmt::format("the peer's WRITE was refused: 8 bytes at {:#x} with key 0x7: no memory "
                     "region has that key",
                     peer_memory.address())},
        {readable.remote_at(0), "the key's memory region or window lacks access::remote_write"},
        {apart.remote_at(0), "in different protection domains"},
        {peer_memory.remote_at(two_ends::memory_bytes - 7), "the address range exceeds the key's memory region"}};
    for (const auto& [where, words] : cases) {
        ends.connect();
        run(WEFTIO_OPCODE_RDMA_WRITE, {where, own_memory.local(0, 8)});
        expect_reported(nic::outcome_of::none, WEFTIO_SYNDROME_REMOTE_ACCESS, words);
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
    }
}

TEST_F(RdmaRefusal, TellsTheHostWhichMemoryOfAnEntryWasRefused)
{
    const std::uint64_t ours = own_memory.address() + 64, theirs = peer_memory.address();
    const segment good = own_memory.local(0, 16), wrong = pointer(24, own_memory.region.lkey() ^ 1, ours);
    const std::string by_us = fmt::format("failed: 24 bytes at {:#x} with key {:#x}: {}", ours,
                                          own_memory.region.lkey() ^ 1, explain(refusal::unknown_key));
    const std::string by_peer =
        fmt::format("failed: 16 bytes at {:#x} with key 0x7: {}", theirs, explain(refusal::remote_access));
    const std::vector<std::tuple<std::uint32_t, std::vector<segment>, std::string>> cases{
        {WEFTIO_OPCODE_SEND, {good, wrong, good}, by_us},
        {WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), good, wrong}, by_us},
        {WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(0), wrong}, by_us},
        {WEFTIO_OPCODE_RDMA_WRITE, {remote(theirs, 7), good}, by_peer},
        {WEFTIO_OPCODE_RDMA_READ, {remote(theirs, 7), good}, by_peer}};
    for (const auto& [opcode, body, words] : cases) {
        ends.connect();
        run(opcode, body);
        EXPECT_THAT(a.reported().text, testing::EndsWith(words));
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
    }
}

TEST_F(RdmaRefusal, TellsTheHostOfAReceiveThatIsTooShortWithoutMemory)
{
    ends.connect();
    b.post_receive({peer_memory.local(0, 8)});
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 16)});
    EXPECT_THAT(a.reported().text, testing::EndsWith(fmt::format(" failed: {}", explain(refusal::remote_invalid))));
}

TEST_F(RdmaRefusal, TellsTheHostWhichReceiveEntryFailed)
{
    ends.connect();
    b.post_receive({peer_memory.local(0, 8)});
    b.post_receive({pointer(100, peer_memory.region.lkey() ^ 1, peer_memory.address())});
    a.post(WEFTIO_OPCODE_SEND, {});
    a.post(WEFTIO_OPCODE_SEND, {own_memory.local(0, 8)});
    a.push();
    ends.run();
    expect_reported(nic::outcome_of::receive_ring, WEFTIO_SYNDROME_LOCAL_PROTECTION,
                    "receive entry at position 1 failed: no memory region has that key");
}

TEST_F(RdmaRefusal, OfAPeerThatHasGone)
{
    for (unsigned end = 0; end < 2; ++end) {
        nic::rdma_connection to = ends.connection(end);
        to.timeout = 1;
        to.retry_count = 3;
        ends.queue(end).connect(to);
    }
    ends.queues[1].reset();
    run(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_RETRIES_EXCEEDED);
    EXPECT_EQ(a.nic().counters().local_ack_timeout_err, 4u);
}

TEST_F(RdmaRefusal, OfAPeerThatIsNeverReady)
{
    for (unsigned end = 0; end < 2; ++end) {
        nic::rdma_connection to = ends.connection(end);
        to.rnr_retry = 2;
        to.min_rnr_timer = 1;
        ends.queue(end).connect(to);
    }
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 8)});
    expect_failure(WEFTIO_SYNDROME_NOT_READY_EXCEEDED);
    EXPECT_EQ(b.nic().counters().not_ready, 3u);
    EXPECT_EQ(a.nic().counters().rnr_nak_retry_err, 1u);
}

} // namespace weftio::test
