// Memory that goes away under a key of a queue pair: the right end fails, both hear why, and everything else goes on.
#include <cstring>

#include <gmock/gmock.h>

#include "fleeting_memory.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

struct gone_case {
    leaving way;
    bool one_port; ///< packets take no driver, and no ICRC is summed
};

/// Memory of one end that goes away.
struct fleeting_end {
    fleeting_end(leaving way, const port& port, const device& device)
        : bytes(way), adopted(device.adopt(bytes.data(), bytes.bytes())), region(port, adopted, {.rights = all_rights})
    {}
    std::uint64_t address(std::size_t at) const { return reinterpret_cast<std::uint64_t>(bytes.data()) + at; }
    segment local(std::size_t at, std::uint32_t count) const { return pointer(count, region.lkey(), address(at)); }
    segment remote_at(std::size_t at) const { return remote(address(at), region.lkey()); }

    fleeting_memory bytes;
    memory adopted;
    memory_region region;
};

class RdmaGone : public testing::TestWithParam<gone_case> {
 protected:
    RdmaGone()
    {
        for (unsigned end = 0; end < 2; ++end)
            others[end] = std::make_unique<fake_pair>(ends.at(end), 64, 64);
        ends.connect();
        ends.queues.swap(others);
        ends.connect();
        ends.queues.swap(others);
    }
    /// Runs the entry while the memory is there, and again when it is not; with a good one behind it, and one of a
    /// neighbor's beside it.
    void run(std::uint32_t opcode, const std::vector<segment>& body, fleeting_end& gone)
    {
        a.post(opcode, body);
        a.push();
        ends.run();
        EXPECT_EQ(a.sent().syndrome, 0u);
        EXPECT_EQ(a.nic().counters().done, 1u);
        gone.bytes.go();
        a.post(opcode, body);
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(0), own_memory.local(50, 8)});
        a.push();
        others[0]->post(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(100), own_memory.local(0, 5000)});
        others[0]->push();
        ASSERT_TRUE(ends.run_until([&] { return a.nic().failed(); }));
        ends.run();
        EXPECT_EQ(others[0]->nic().counters().done, 1u);
        EXPECT_FALSE(others[0]->nic().failed() || others[1]->nic().failed());
        EXPECT_EQ(std::memcmp(peer_memory.data() + 100, own_memory.data(), 5000), 0);
        for (unsigned end = 0; end < 2; ++end)
            expect_conserved(ends.queue(end).nic().counters());
        expect_conserved(ends.unit(0));
    }
    void expect_ours(std::uint8_t syndrome, const char* words)
    {
        const nic::send_outcome reported = a.reported();
        EXPECT_EQ(reported.syndrome, syndrome) << reported.text;
        EXPECT_EQ(reported.position, 1u);
        EXPECT_THAT(reported.text, testing::HasSubstr(words));
        EXPECT_EQ(a.nic().counters().failed, 1u);
        EXPECT_EQ(a.nic().counters().flushed, 1u);
    }
    void expect_theirs(std::uint8_t syndrome, const char* operation)
    {
        const nic::send_outcome reported = b.reported();
        EXPECT_EQ(reported.syndrome, syndrome) << reported.text;
        EXPECT_THAT(reported.text, testing::HasSubstr(operation));
        EXPECT_THAT(reported.text, testing::HasSubstr(gone_words));
        EXPECT_TRUE(b.nic().failed());
    }

    two_ends ends{GetParam().one_port};
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    std::array<std::unique_ptr<fake_pair>, 2> others;
    end_memory &own_memory = ends.memory(0), &peer_memory = ends.memory(1);
    fleeting_end ours{GetParam().way, ends.at(0), ends.cpu}, theirs{GetParam().way, ends.at(1), ends.cpu};
};

} // namespace

TEST_P(RdmaGone, AtTheSourceOfAWrite)
{
    run(WEFTIO_OPCODE_RDMA_WRITE, {peer_memory.remote_at(8000), own_memory.local(0, 700), ours.local(3, 5000)}, ours);
    expect_ours(WEFTIO_SYNDROME_LOCAL_PROTECTION, gone_words);
}

TEST_P(RdmaGone, AtTheSourceOfASend)
{
    for (unsigned entry = 0; entry < 2; ++entry)
        b.post_receive({peer_memory.local(8000, 4096)});
    run(WEFTIO_OPCODE_SEND, {ours.local(0, 64)}, ours);
    expect_ours(WEFTIO_SYNDROME_LOCAL_PROTECTION, gone_words);
}

TEST_P(RdmaGone, AtTheBytesOfAFlush)
{
    run(WEFTIO_OPCODE_DUMP, {ours.local(0, 5000)}, ours);
    expect_ours(WEFTIO_SYNDROME_LOCAL_PROTECTION, gone_words);
}

TEST_P(RdmaGone, WhereTheAnswerOfAReadGoes)
{
    run(WEFTIO_OPCODE_RDMA_READ, {peer_memory.remote_at(8000), own_memory.local(60000, 10), ours.local(0, 5000)}, ours);
    expect_ours(WEFTIO_SYNDROME_LOCAL_PROTECTION, gone_words);
}

TEST_P(RdmaGone, WhereTheResultOfAnAtomicGoes)
{
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, peer_memory.data() + 8000, sizeof before);
    run(WEFTIO_OPCODE_FETCH_ADD, {peer_memory.remote_at(8000), atomic(1), ours.local(16, 8)}, ours);
    expect_ours(WEFTIO_SYNDROME_LOCAL_PROTECTION, gone_words);
    std::memcpy(&after, peer_memory.data() + 8000, sizeof after);
    EXPECT_EQ(after - before, 2u) << "each was executed once";
}

TEST_P(RdmaGone, UnderAWriteOfThePeer)
{
    run(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(5), own_memory.local(0, 5000)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer refused access to its memory");
    expect_theirs(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer's WRITE was refused");
}

TEST_P(RdmaGone, UnderANumberThatThePeerWrites)
{
    run(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(8), own_memory.local(0, 8)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer refused access to its memory");
    expect_theirs(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer's WRITE was refused");
}

TEST_P(RdmaGone, UnderAReadOfThePeer)
{
    run(WEFTIO_OPCODE_RDMA_READ, {theirs.remote_at(4096), own_memory.local(8000, 5000)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer refused access to its memory");
    expect_theirs(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer's READ was refused");
}

TEST_P(RdmaGone, UnderAnAtomicOfThePeer)
{
    run(WEFTIO_OPCODE_FETCH_ADD, {theirs.remote_at(24), atomic(5), own_memory.local(8000, 8)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer refused access to its memory");
    expect_theirs(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer's fetch-and-add was refused");
}

TEST_P(RdmaGone, UnderACompareAndSwapOfThePeer)
{
    run(WEFTIO_OPCODE_COMPARE_SWAP, {theirs.remote_at(24), atomic(5, 0), own_memory.local(8000, 8)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer refused access to its memory");
    expect_theirs(WEFTIO_SYNDROME_REMOTE_ACCESS, "the peer's compare-and-swap was refused");
}

TEST_P(RdmaGone, UnderAReceive)
{
    for (unsigned entry = 0; entry < 2; ++entry)
        b.post_receive({peer_memory.local(8000, 100), theirs.local(0, 4096)});
    run(WEFTIO_OPCODE_SEND, {own_memory.local(0, 2000)}, theirs);
    expect_ours(WEFTIO_SYNDROME_REMOTE_OPERATION, "the peer could not complete");
    expect_theirs(WEFTIO_SYNDROME_LOCAL_PROTECTION, "receive entry at position 1 failed");
}

/// The key stands for what comes next at its address.
TEST_P(RdmaGone, AndIsThereAgainForFreshConnections)
{
    run(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), own_memory.local(0, 5000)}, theirs);
    theirs.bytes.come_back();
    for (unsigned end = 0; end < 2; ++end)
        ends.queue(end).nic().stop_sending();
    for (unsigned end = 0; end < 2; ++end)
        ends.queue(end).restart();
    ends.connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {theirs.remote_at(0), own_memory.local(0, 5000)});
    a.push();
    ends.run();
    EXPECT_EQ(a.sent().syndrome, 0u);
    EXPECT_EQ(std::memcmp(theirs.bytes.data(), own_memory.data(), 5000), 0);
}

INSTANTIATE_TEST_SUITE_P(Is, RdmaGone,
                         testing::Values(gone_case{leaving::unmapped, false}, gone_case{leaving::unmapped, true},
                                         gone_case{leaving::truncated, false}, gone_case{leaving::truncated, true}),
                         [](const testing::TestParamInfo<gone_case>& info) {
                             return std::string(info.param.way == leaving::unmapped ? "Unmapped" : "Truncated") +
                                    (info.param.one_port ? "AtOnePort" : "OnAWire");
                         });

} // namespace weftio::test
