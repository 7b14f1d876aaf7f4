// Queue pairs do the same on every NIC behind nic/rdma_backend.hpp.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>

#include "nic_case.hpp"
#include "unit/device/fixture.hpp"
#include "unit/rdma/posted_ends.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

struct port_of_nic {
    const nic_case& at = testing::TestWithParam<nic_case>::GetParam();
    port port_ = port::open(at.spec, {.mode = at.mode});
};

/// Two rdma_queues of one port, connected. The host calls what kernels call.
class EveryNicRdma : public testing::TestWithParam<nic_case>, protected port_of_nic, protected queue_ends {
 protected:
    EveryNicRdma() : queue_ends({&port_, &port_}, at.mode)
    {
        connect();
        local_model = memories[0]->copy();
        remote_model = memories[1]->copy();
    }
    ~EveryNicRdma() override
    {
        EXPECT_EQ(memories[0]->copy(), local_model);
        EXPECT_EQ(memories[1]->copy(), remote_model);
        for (const auto& queue : queues) {
            const rdma_counters count = queue->counters();
            EXPECT_EQ(count.enqueued, count.done + count.skipped + count.failed + count.flushed);
            EXPECT_EQ(count.received, count.filled + count.receive_failed + count.receive_flushed);
        }
    }
    bool eventually_here(const std::function<bool()>& condition)
    {
        return eventually([&] {
            if (at.mode == engine_mode::inline_worker)
                port_.turn();
            return condition();
        });
    }
    weftio_dev_rdma* a() { return queues[0]->handle(); }
    weftio_dev_rdma_recv* b() { return queues[1]->receives().handle(); }
    weftio_dev_remote peer() { return remote(1); }
    std::int32_t done() { return weftio_dev_rdma_commit_wait(a(), 0); }
    void post_receives(std::uint32_t count)
    {
        for (std::uint32_t each = 0; each < count; ++each)
            ASSERT_EQ(weftio_dev_rdma_recv_post(b(), buffer(1), std::uint64_t{each} * 100, 100), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_commit(b()), WEFTIO_DEV_OK);
    }
    weftio_dev_rdma_message message(std::int32_t expected = WEFTIO_DEV_OK)
    {
        weftio_u32 count = 0, first = 0;
        weftio_dev_rdma_message reported{};
        EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 0, &count, &first), expected);
        EXPECT_EQ(count, 1u);
        EXPECT_EQ(weftio_dev_rdma_recv_message(b(), first, &reported), expected);
        return reported;
    }
    /// In the models: copies bytes of the local memory to the remote one.
    void expect_remote(std::size_t to, std::size_t from, std::size_t count)
    {
        std::copy_n(local_model.begin() + static_cast<std::ptrdiff_t>(from), count,
                    remote_model.begin() + static_cast<std::ptrdiff_t>(to));
    }
    std::uint64_t remote_number(std::size_t at) const
    {
        std::uint64_t number = 0;
        std::memcpy(&number, &remote_model[at], sizeof number);
        return number;
    }

    std::vector<std::uint8_t> local_model, remote_model;
};

TEST_P(EveryNicRdma, WritesBytesOfMemoryAndOfTheEntry)
{
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 5000, buffer(0), 100, 20001, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
    expect_remote(5000, 100, 20001);
    for (std::uint32_t bytes = 1; bytes <= WEFTIO_DEV_RDMA_INLINE_BYTES; ++bytes) {
        ASSERT_EQ(weftio_dev_rdma_write_inline(a(), peer(), bytes * 64, buffer(0).address + bytes, bytes, 0),
                  WEFTIO_DEV_OK);
        expect_remote(bytes * 64, bytes, bytes);
    }
    constexpr weftio_u64 number = 0x1122334455667788;
    ASSERT_EQ(weftio_dev_rdma_write_value(a(), peer(), 4096, number, 0), WEFTIO_DEV_OK);
    std::memcpy(&remote_model[4096], &number, sizeof number);
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 0, buffer(0), 0, 0, 0), WEFTIO_DEV_OK) << "of no bytes";
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(queues[0]->counters().done, 3u + WEFTIO_DEV_RDMA_INLINE_BYTES);
}

TEST_P(EveryNicRdma, ReadsAndChangesWordsAtThePeer)
{
    ASSERT_EQ(weftio_dev_rdma_read(a(), peer(), 333, buffer(0), 40000, 9999, 0), WEFTIO_DEV_OK);
    std::copy_n(remote_model.begin() + 333, 9999, local_model.begin() + 40000);
    const std::uint64_t first = remote_number(8), second = remote_number(16), third = remote_number(24);
    ASSERT_EQ(weftio_dev_rdma_fetch_add(a(), peer(), 8, 77, buffer(0), 800, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_compare_swap(a(), peer(), 16, second, 123, buffer(0), 808, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_compare_swap(a(), peer(), 24, third + 1, 123, buffer(0), 816, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    for (const auto& [at, value] : {std::pair<std::size_t, std::uint64_t>{800, first}, {808, second}, {816, third}})
        std::memcpy(&local_model[at], &value, sizeof value);
    for (const auto& [at, value] : {std::pair<std::size_t, std::uint64_t>{8, first + 77}, {16, 123}})
        std::memcpy(&remote_model[at], &value, sizeof value);
}

TEST_P(EveryNicRdma, SendsMessagesAndTellsWhatEachIs)
{
    post_receives(3);
    ASSERT_EQ(weftio_dev_rdma_send(a(), buffer(0), 5, 100, WEFTIO_DEV_RDMA_SOLICITED), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_send_imm(a(), buffer(0), 200, 10, 0xfedcba98, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_write_imm(a(), peer(), 9000, buffer(0), 300, 3000, 77, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    expect_remote(0, 5, 100);
    expect_remote(100, 200, 10);
    expect_remote(9000, 300, 3000);
    const weftio_dev_rdma_message sent = message(), immediate = message(), written = message();
    EXPECT_EQ(sent.kind, WEFTIO_DEV_RDMA_SEND);
    EXPECT_EQ(sent.bytes, 100u);
    EXPECT_EQ(sent.solicited, 1u);
    EXPECT_EQ(immediate.kind, WEFTIO_DEV_RDMA_SEND_IMM);
    EXPECT_EQ(immediate.immediate, 0xfedcba98);
    EXPECT_EQ(immediate.solicited, 0u);
    EXPECT_EQ(written.kind, WEFTIO_DEV_RDMA_WRITE_IMM);
    EXPECT_EQ(written.bytes, 3000u);
    EXPECT_EQ(written.immediate, 77u);
}

TEST_P(EveryNicRdma, WaitsUntilThePeerHasAReceive)
{
    ASSERT_EQ(weftio_dev_rdma_send(a(), buffer(0), 5, 100, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit(a()), WEFTIO_DEV_OK);
    for (unsigned turn = 0; turn < 20; ++turn)
        eventually_here([] { return true; });
    EXPECT_EQ(queues[0]->counters().done, 0u);
    post_receives(1);
    EXPECT_EQ(message().bytes, 100u);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    expect_remote(0, 5, 100);
}

TEST_P(EveryNicRdma, ExecutesWhatWasRung)
{
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 5000, buffer(0), 0, 10, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_send_queue_commit_strong(&a()->queue), WEFTIO_DEV_OK);
    if (std::string(GetParam().spec) == "cable:0") // the software NIC believes the record alone
        for (unsigned turn = 0; turn < 20; ++turn) {
            eventually_here([] { return true; });
            EXPECT_EQ(queues[0]->counters().done, 0u);
        }
    weftio_dev_rdma_push(a());
    ASSERT_TRUE(eventually_here([&] { return queues[0]->counters().done == 1; }));
    expect_remote(5000, 0, 10);
}

TEST_P(EveryNicRdma, FailsBothEndsWhereThePeersKeyIsWrongAndGoesOnBehindAReset)
{
    for (std::uint32_t round = 1; round <= 3; ++round) {
        post_receives(2);
        weftio_dev_remote wrong = peer();
        wrong.rkey_be ^= 1;
        ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 5000, buffer(0), round, 10, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_write(a(), wrong, 6000, buffer(0), 0, 10, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 7000, buffer(0), 0, 10, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        expect_remote(5000, round, 10);
        ASSERT_TRUE(eventually_here([&] { return queues[0]->failed() && queues[1]->failed(); }));
        for (unsigned each = 0; each < 2; ++each)
            EXPECT_EQ(message(WEFTIO_DEV_QUEUE_ERROR).syndrome, WEFTIO_SYNDROME_FLUSHED);
        ASSERT_TRUE(eventually_here([&] { return queues[0]->counters().flushed == round; }));
        EXPECT_EQ(queues[0]->counters().failed, round);
        EXPECT_EQ(queues[0]->state(), rdma_state::error);
        reset();
        EXPECT_EQ(queues[0]->state(), rdma_state::ready_to_send);
    }
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 7000, buffer(0), 0, 10, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    expect_remote(7000, 0, 10);
}

TEST_P(EveryNicRdma, FailsThisEndWhereItsOwnKeyIsWrong)
{
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(*queues[0], {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    weftio_dev_buf wrong = buffer(0);
    wrong.lkey_be ^= 1;
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 5000, wrong, 0, 10, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    ASSERT_TRUE(eventually_here([&] { return progress.progress() != 0; }));
    ASSERT_EQ(reported.size(), 1u);
    EXPECT_EQ(reported[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_FALSE(queues[1]->failed());
}

TEST_P(EveryNicRdma, FailsBothEndsWhereTheRightIsMissing)
{
    const memory_region readable(port_, memories[1]->memory, {.rights = access::local_write | access::remote_read});
    const weftio_dev_remote there = remote_region::of(readable).on_device();
    ASSERT_EQ(weftio_dev_rdma_read(a(), there, 0, buffer(0), 0, 100, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    std::copy_n(remote_model.begin(), 100, local_model.begin());
    ASSERT_EQ(weftio_dev_rdma_write(a(), there, 0, buffer(0), 200, 10, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_TRUE(eventually_here([&] { return queues[1]->failed(); }));
}

TEST_P(EveryNicRdma, FailsTheQueuesOfACompletionQueueThatOverran)
{
    completion_queue completions(port_, where, {.entries = 1, .overrun = completion_overrun::fail});
    queue_pair full(*devices[0], where, completions, completions), other(*devices[0], where, completions, completions);
    for (queue_pair* each : {&full, &other})
        each->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .rights = access::none});
    weftio_store_release_sys_u32(static_cast<std::uint32_t*>(full.record()), weftio_swap32(2)); // receives
    completions.arm();
    full.modify(rdma_state::error);
    ASSERT_TRUE(eventually_here([&] { return completions.overrun(); }));
    EXPECT_TRUE(eventually_here([&] { return other.state() == rdma_state::error; }));
    std::uint64_t events = 0;
    EXPECT_TRUE(
        eventually_here([&] { return read(completions.descriptor(), &events, sizeof events) == sizeof events; }));
}

TEST_P(EveryNicRdma, ResizesACompletionQueueOrSaysThatItCannot)
{
    const bool can = std::string(GetParam().spec) != "cable:0";
    completion_queue completions(port_, where, {.entries = 2});
    errc refused{};
    try {
        completions.resize(8);
    } catch (const error& why) {
        refused = static_cast<errc>(why.code().value());
    }
    EXPECT_EQ(refused, can ? errc{} : errc::not_supported);
    EXPECT_EQ(completions.entries(), can ? 8u : 2u);
}

TEST_P(EveryNicRdma, FlushesWithAnyKeyOfItsOwn)
{
    const end_memory fixed(port_, where, 4096, {.rights = access::none});
    const weftio_dev_buf readable = fixed.region.buffer();
    std::uint64_t flushed = 0;
    for (const auto& [at, bytes] : {std::pair{0u, 1u}, {7u, 100u}, {4095u, 1u}, {0u, 4096u}}) {
        ASSERT_EQ(weftio_dev_rdma_flush(a(), readable, at, bytes, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_flush(a(), buffer(0), at, bytes, WEFTIO_DEV_RDMA_FENCE), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_OK) << at << " " << bytes;
        flushed += 2;
    }
    EXPECT_EQ(queues[0]->counters().done, flushed);
    EXPECT_EQ(queues[0]->counters().done_bytes, 0u) << "nothing was sent";
    EXPECT_EQ(queues[1]->counters().requests, 0u);
    EXPECT_EQ(weftio_dev_rdma_needs_flush(a()), 0u);
    EXPECT_EQ(weftio_dev_rdma_recv_needs_flush(b()), 0u);
}

TEST_P(EveryNicRdma, RefusesFlushesThatReachBeyondTheBuffer)
{
    weftio_u32 position = 0, mask = 0;
    weftio_dev_rdma_get_info(a(), &position, &mask);
    for (const auto& [at, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, 0},
                                    {memory_bytes, 1},
                                    {1, memory_bytes},
                                    {0, std::uint64_t{WEFTIO_DEV_RDMA_MOST_BYTES} + 1}}) {
        EXPECT_EQ(weftio_dev_rdma_flush(a(), buffer(0), at, bytes, 0), WEFTIO_DEV_INVALID_ARGUMENT);
        EXPECT_EQ(weftio_dev_rdma_enqueue_weak(a(), weftio_dev_rdma_flush_request(buffer(0), at, bytes), position, 0),
                  WEFTIO_DEV_INVALID_ARGUMENT);
    }
    EXPECT_EQ(weftio_dev_rdma_enqueue_weak(a(), weftio_dev_rdma_flush_request(buffer(0), 5, 9), position, 0),
              WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_weak(a(), 1), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_wait(a(), position, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(queues[0]->counters().done, 1u);
}

/// What no function of the device library writes, too.
TEST_P(EveryNicRdma, FailsThisEndAloneWhereAFlushIsWrong)
{
    const weftio_dev_rdma_request good = weftio_dev_rdma_flush_request(buffer(0), 0, 16);
    struct {
        const char* name;
        weftio_dev_rdma_request entry;
        std::uint8_t syndrome;
    } rows[] = {{"key", good, WEFTIO_SYNDROME_LOCAL_PROTECTION},
                {"address", good, WEFTIO_SYNDROME_LOCAL_PROTECTION},
                {"length", good, WEFTIO_SYNDROME_LOCAL_PROTECTION},
                {"no memory", good, WEFTIO_SYNDROME_LOCAL_QP_OPERATION},
                {"two pieces", good, WEFTIO_SYNDROME_LOCAL_QP_OPERATION},
                {"inline", good, WEFTIO_SYNDROME_LOCAL_QP_OPERATION}};
    rows[0].entry.body[1] ^= weftio_swap32(1);
    rows[1].entry.body[3] ^= weftio_swap32(memory_bytes);
    rows[2].entry.body[0] = weftio_swap32(memory_bytes + 1);
    rows[3].entry.segments = 1;
    rows[4].entry.segments = 3;
    std::copy_n(good.body, 4, rows[4].entry.body + 4);
    rows[5].entry.body[0] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 4);
    for (const auto& row : rows) {
        SCOPED_TRACE(row.name);
        std::vector<send_failure> reported;
        progress_engine progress;
        progress.attach(*queues[0], {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
        ASSERT_EQ(weftio_dev_rdma_enqueue(a(), row.entry, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_write(a(), peer(), 5000, buffer(0), 0, 10, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        ASSERT_TRUE(eventually_here([&] { return progress.progress() != 0; }));
        ASSERT_EQ(reported.size(), 1u);
        EXPECT_EQ(reported[0].syndrome, row.syndrome);
        EXPECT_FALSE(queues[1]->failed());
        reset();
    }
}

INSTANTIATE_TEST_SUITE_P(Of, EveryNicRdma, testing::ValuesIn(every_nic), name_of_nic);

/// Rings of the caller's, and code that was not written for Weftio.
struct shape_at_nic {
    const char* spec;
    foreign_shape shape;
};
void PrintTo(const shape_at_nic& which, std::ostream* out)
{
    *out << which.spec << ' ' << which.shape.name;
}
std::vector<shape_at_nic> shapes_at_nics()
{
    std::vector<shape_at_nic> all;
    for (const char* spec : {"loopback", "cable:0"})
        for (const foreign_shape& shape : foreign_shapes)
            all.push_back({spec, shape});
    return all;
}

class EveryNicForeign : public testing::TestWithParam<shape_at_nic> {
 protected:
    port port_ = port::open(GetParam().spec);
    foreign_ends ends{GetParam().shape, {&port_, &port_}};
};

TEST_P(EveryNicForeign, CodeSendsWritesReadsAndReceivesThroughRingsOfItsOwn)
{
    constexpr std::uint32_t rounds = 1000;
    ends.game().rounds = rounds;
    foreign_play(&ends.game());
    ends.expect_as_simulated(rounds);
    EXPECT_EQ(ends.pair(0).counters().done, rounds);
}

TEST_P(EveryNicForeign, ReceivesAreFlushedAndAllGoesOnBehindAReset)
{
    foreign_game& game = ends.game();
    for (std::uint32_t round = 1; round <= 3; ++round) {
        foreign_post_receive(&game.ends[1]);
        ends.pair(1).modify(rdma_state::error);
        std::uint32_t polled = 0;
        ASSERT_TRUE(eventually([&] { return (polled = foreign_poll(&game, 1)) != 0; }));
        EXPECT_EQ(polled, 2u);
        EXPECT_EQ(game.syndrome & 0xff, WEFTIO_SYNDROME_FLUSHED);
        EXPECT_EQ(ends.pair(1).counters().receive_flushed, round);
        ends.start_again();
        EXPECT_EQ(ends.pair(1).state(), rdma_state::ready_to_send);
    }
    game.rounds = 100;
    foreign_play(&game);
    ends.expect_as_simulated(100);
}

TEST_P(EveryNicForeign, TellsOnceOfACompletionThatWasAskedFor)
{
    foreign_game& game = ends.game();
    const int descriptor = ends.completions(1).descriptor();
    std::uint64_t events = 0;
    const auto is_notified = [&] { return read(descriptor, &events, sizeof events) == sizeof events; };
    ends.completions(1).arm();
    EXPECT_FALSE(is_notified()) << "nothing has come";
    foreign_post_receive(&game.ends[1]);
    ends.pair(1).modify(rdma_state::error);
    EXPECT_TRUE(eventually(is_notified));
    EXPECT_EQ(events, 1u);
    EXPECT_NE(foreign_poll(&game, 1), 0u);
    EXPECT_FALSE(is_notified());
}

INSTANTIATE_TEST_SUITE_P(Of, EveryNicForeign, testing::ValuesIn(shapes_at_nics()),
                         [](const testing::TestParamInfo<shape_at_nic>& info) {
                             return std::string(info.param.spec).substr(0, 5) + "_" + info.param.shape.name;
                         });

} // namespace
} // namespace weftio::test
