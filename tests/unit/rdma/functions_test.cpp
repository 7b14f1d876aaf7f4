// The functions of weftio/device/rdma.h, called by the host: what memory is afterwards, and what each refuses.
#include <gmock/gmock.h>

#include "public_pair.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

class RdmaFunctions : public testing::TestWithParam<place_of_ends> {
 protected:
    void SetUp() override
    {
        ends.connect();
        local_model = ends.memory(0).copy();
        remote_model = ends.memory(1).copy();
    }
    void TearDown() override
    {
        EXPECT_EQ(ends.memory(0).copy(), local_model);
        EXPECT_EQ(ends.memory(1).copy(), remote_model);
        for (unsigned end = 0; end < 2; ++end)
            expect_conserved(ends.queue(end).counters());
    }
    weftio_dev_rdma* a() { return ends.queue(0).handle(); }
    weftio_dev_rdma_recv* b() { return ends.queue(1).receives().handle(); }
    std::int32_t done() { return weftio_dev_rdma_commit_wait(a(), 0); }
    void post_receives(std::uint32_t count, std::uint32_t bytes)
    {
        for (std::uint32_t each = 0; each < count; ++each)
            ASSERT_EQ(weftio_dev_rdma_recv_post(b(), ends.buffer(1), std::uint64_t{each} * bytes, bytes),
                      WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_commit(b()), WEFTIO_DEV_OK);
    }
    /// The next message.
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
    static std::uint64_t number_at(const std::vector<std::uint8_t>& bytes, std::size_t at)
    {
        std::uint64_t number = 0;
        std::memcpy(&number, &bytes[at], sizeof number);
        return number;
    }

    public_pair ends{GetParam()};
    weftio_dev_buf buffer = ends.buffer(0);
    weftio_dev_remote peer = ends.remote(1);
    std::vector<std::uint8_t> local_model, remote_model;
};

} // namespace

TEST_P(RdmaFunctions, WriteBytesOfMemoryOfTheEntryAndOfARegister)
{
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer, 5000, buffer, 100, 20001, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
    expect_remote(5000, 100, 20001);
    for (std::uint32_t bytes = 1; bytes <= WEFTIO_DEV_RDMA_INLINE_BYTES; ++bytes) {
        ASSERT_EQ(weftio_dev_rdma_write_inline(a(), peer, bytes * 64, buffer.address + bytes, bytes, 0), WEFTIO_DEV_OK);
        expect_remote(bytes * 64, bytes, bytes);
    }
    constexpr weftio_u64 number = 0x1122334455667788;
    ASSERT_EQ(weftio_dev_rdma_write_value(a(), peer, 4096, number, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_write_value(a(), peer, 4107, ~number, 0), WEFTIO_DEV_OK);
    for (const auto& [at, value] : {std::pair<std::size_t, weftio_u64>{4096, number}, {4107, ~number}})
        std::memcpy(&remote_model[at], &value, sizeof value);
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer, 0, buffer, 0, 0, 0), WEFTIO_DEV_OK) << "no bytes are a message, too";
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(ends.queue(0).counters().done, 4u + WEFTIO_DEV_RDMA_INLINE_BYTES);
}

TEST_P(RdmaFunctions, ReadAndChangeWordsAtThePeer)
{
    ASSERT_EQ(weftio_dev_rdma_read(a(), peer, 333, buffer, 40000, 9999, 0), WEFTIO_DEV_OK);
    std::copy_n(remote_model.begin() + 333, 9999, local_model.begin() + 40000);
    const std::uint64_t first = number_at(remote_model, 8), second = number_at(remote_model, 16),
                        third = number_at(remote_model, 24);
    ASSERT_EQ(weftio_dev_rdma_fetch_add(a(), peer, 8, 77, buffer, 800, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_compare_swap(a(), peer, 16, second, 123, buffer, 808, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_compare_swap(a(), peer, 24, third + 1, 123, buffer, 816, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    for (const auto& [at, value] : {std::pair<std::size_t, weftio_u64>{800, first}, {808, second}, {816, third}})
        std::memcpy(&local_model[at], &value, sizeof value);
    for (const auto& [at, value] : {std::pair<std::size_t, weftio_u64>{8, first + 77}, {16, 123}})
        std::memcpy(&remote_model[at], &value, sizeof value);
}

TEST_P(RdmaFunctions, SendMessagesAndTellWhatEachIs)
{
    post_receives(5, 100);
    ASSERT_EQ(weftio_dev_rdma_send(a(), buffer, 5, 100, WEFTIO_DEV_RDMA_SOLICITED), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_send_imm(a(), buffer, 200, 10, 0xfedcba98, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_write_imm(a(), peer, 9000, buffer, 300, 3000, 77, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_send(a(), buffer, 0, 0, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    expect_remote(0, 5, 100);
    expect_remote(100, 200, 10);
    expect_remote(9000, 300, 3000);
    weftio_dev_rdma_message reported = message();
    EXPECT_EQ(reported.kind, WEFTIO_DEV_RDMA_SEND);
    EXPECT_EQ(reported.bytes, 100u);
    EXPECT_EQ(reported.solicited, 1u);
    EXPECT_NE(reported.timestamp_ns, 0u);
    reported = message();
    EXPECT_EQ(reported.kind, WEFTIO_DEV_RDMA_SEND_IMM);
    EXPECT_EQ(reported.bytes, 10u);
    EXPECT_EQ(reported.immediate, 0xfedcba98u);
    EXPECT_EQ(reported.solicited, 0u);
    reported = message();
    EXPECT_EQ(reported.kind, WEFTIO_DEV_RDMA_WRITE_IMM);
    EXPECT_EQ(reported.bytes, 3000u);
    EXPECT_EQ(reported.immediate, 77u);
    reported = message();
    EXPECT_EQ(reported.kind, WEFTIO_DEV_RDMA_SEND);
    EXPECT_EQ(reported.bytes, 0u);
    EXPECT_EQ(reported.syndrome, 0u);
}

TEST_P(RdmaFunctions, ARequestToInvalidateTheKeyOfARegionIsRefused)
{
    post_receives(1, 100);
    ASSERT_EQ(weftio_dev_rdma_send_inval(a(), buffer, 0, 0, ends.memory(1).region.lkey(), 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK) << "as with Linux's rdma_rxe, the peer is not told";
    EXPECT_EQ(message(WEFTIO_DEV_QUEUE_ERROR).syndrome, std::uint32_t{WEFTIO_SYNDROME_REMOTE_INVALID});
}

TEST_P(RdmaFunctions, WeakOnesDoTheSame)
{
    weftio_u32 position = 0, mask = 0, receive = 0, receive_mask = 0;
    weftio_dev_rdma_get_info(a(), &position, &mask);
    weftio_dev_rdma_recv_get_info(b(), &receive, &receive_mask);
    EXPECT_EQ(mask, 63u);
    EXPECT_EQ(receive_mask, 63u);
    for (std::uint32_t each = 0; each < 3; ++each)
        ASSERT_EQ(weftio_dev_rdma_recv_post_weak(b(), ends.buffer(1), 1000 * each, 1000, receive + each),
                  WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit_weak(b(), 3), WEFTIO_DEV_OK);
    weftio_u32 at = position;
    for (const weftio_dev_rdma_request& request :
         {weftio_dev_rdma_write_request(peer, 10000, buffer, 0, 100),
          weftio_dev_rdma_write_imm_request(peer, 10200, buffer, 0, 100, 5),
          weftio_dev_rdma_write_inline_request(peer, 10400, buffer.address, 20),
          weftio_dev_rdma_write_value_request(peer, 10504, 9), weftio_dev_rdma_send_request(buffer, 0, 50),
          weftio_dev_rdma_send_imm_request(buffer, 100, 50, 6),
          weftio_dev_rdma_read_request(peer, 20000, buffer, 30000, 100),
          weftio_dev_rdma_fetch_add_request(peer, 20480, 1, buffer, 30200),
          weftio_dev_rdma_compare_swap_request(peer, 20488, 1, 2, buffer, 30208),
          weftio_dev_rdma_write_request(peer, 10600, buffer, 0, 10), // a signal: these two
          weftio_dev_rdma_write_value_request(peer, 10624, 8)})
        EXPECT_EQ(weftio_dev_rdma_enqueue_weak(a(), request, at++, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_weak(a(), at - position), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_wait(a(), at - 1, 0), WEFTIO_DEV_OK);
    const std::array<std::pair<std::size_t, std::size_t>, 4> writes{
        {{10000, 100}, {10200, 100}, {10400, 20}, {10600, 10}}};
    for (const auto& [to, count] : writes)
        expect_remote(to, 0, count);
    for (const auto& [to, value] : {std::pair<std::size_t, weftio_u64>{10504, 9}, {10624, 8}})
        std::memcpy(&remote_model[to], &value, sizeof value);
    expect_remote(1000, 0, 50);
    expect_remote(2000, 100, 50);
    std::copy_n(remote_model.begin() + 20000, 100, local_model.begin() + 30000);
    std::copy_n(remote_model.begin() + 20480, 16, local_model.begin() + 30200);
    const std::uint64_t more = number_at(remote_model, 20480) + 1;
    std::memcpy(&remote_model[20480], &more, sizeof more);
    EXPECT_EQ(message().immediate, 5u);
    EXPECT_EQ(message().kind, WEFTIO_DEV_RDMA_SEND);
    EXPECT_EQ(message().immediate, 6u);
    EXPECT_EQ(weftio_dev_rdma_enqueue_weak(a(), weftio_dev_rdma_write_request(peer, 0, buffer, 0, 8), position, 0),
              WEFTIO_DEV_INVALID_ARGUMENT)
        << "it is committed";
    EXPECT_EQ(weftio_dev_rdma_recv_post_weak(b(), ends.buffer(1), 0, 8, receive), WEFTIO_DEV_INVALID_ARGUMENT);
}

TEST_P(RdmaFunctions, RefuseWhatReachesBeyondMemoryAndEnqueueNothing)
{
    constexpr std::size_t size = public_pair::memory_bytes;
    constexpr weftio_u64 huge = ~weftio_u64{0};
    const auto refused = [](std::int32_t status) { EXPECT_EQ(status, WEFTIO_DEV_INVALID_ARGUMENT); };
    refused(weftio_dev_rdma_write(a(), peer, 0, buffer, 1, size, 0));
    refused(weftio_dev_rdma_write(a(), peer, 1, buffer, 0, size, 0));
    refused(weftio_dev_rdma_write(a(), peer, huge, buffer, 0, 2, 0));
    refused(weftio_dev_rdma_write(a(), peer, 0, buffer, huge, 2, 0));
    refused(weftio_dev_rdma_read(a(), peer, size, buffer, 0, 1, 0));
    refused(weftio_dev_rdma_write_imm(a(), peer, 0, buffer, size, 1, 0, 0));
    refused(weftio_dev_rdma_write_inline(a(), peer, 0, buffer.address, 0, 0));
    refused(weftio_dev_rdma_write_inline(a(), peer, 0, buffer.address, WEFTIO_DEV_RDMA_INLINE_BYTES + 1, 0));
    refused(weftio_dev_rdma_write_inline(a(), peer, size - 1, buffer.address, 2, 0));
    refused(weftio_dev_rdma_write_value(a(), peer, size - 7, 0, 0));
    refused(weftio_dev_rdma_send(a(), buffer, size, 1, 0));
    refused(weftio_dev_rdma_fetch_add(a(), peer, size - 7, 1, buffer, 0, 0));
    refused(weftio_dev_rdma_compare_swap(a(), peer, 0, 1, 1, buffer, size - 7, 0));
    refused(weftio_dev_rdma_write_signal(a(), weftio_dev_rdma_write_request(peer, size, buffer, 0, 1), peer, 0, 1, 0));
    refused(weftio_dev_rdma_write_signal(a(), weftio_dev_rdma_write_request(peer, 0, buffer, 0, 1), peer, size, 1, 0));
    weftio_dev_buf endless = buffer;
    weftio_dev_remote everything = peer;
    endless.bytes = ~0u;
    everything.bytes = huge;
    refused(weftio_dev_rdma_write(a(), everything, 0, endless, 0, WEFTIO_DEV_RDMA_MOST_BYTES + 1, 0));
    refused(weftio_dev_rdma_recv_post(b(), ends.buffer(1), 1, size));
    refused(weftio_dev_rdma_recv_post(b(), ends.buffer(1), size + 1, 0));
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(ends.queue(0).counters().enqueued, 0u);
}

TEST_P(RdmaFunctions, AFullRingTakesNothingMore)
{
    for (std::uint32_t each = 0; each < 63; ++each)
        ASSERT_EQ(weftio_dev_rdma_write(a(), peer, 0, buffer, 0, 8, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_write_signal(a(), weftio_dev_rdma_write_request(peer, 0, buffer, 0, 8), peer, 8, 1, 0),
              WEFTIO_DEV_FULL)
        << "it takes two positions";
    ASSERT_EQ(weftio_dev_rdma_write(a(), peer, 0, buffer, 0, 8, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_write(a(), peer, 0, buffer, 0, 8, 0), WEFTIO_DEV_FULL);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_wait_room(a(), 64, 0), WEFTIO_DEV_OK);
    expect_remote(0, 0, 8);
}

TEST_P(RdmaFunctions, PositionsOfReceivesAreFreeOnceTheirMessagesAreHandedOut)
{
    weftio_u32 count = 0, first = 0, position = 0;
    weftio_dev_rdma_message reported{};
    for (std::uint32_t round = 0; round < 5; ++round) {
        for (std::uint32_t each = 0; each < 64; ++each) {
            ASSERT_EQ(weftio_dev_rdma_recv_post_position(b(), ends.buffer(1), each * 8, 8, &position), WEFTIO_DEV_OK);
            ASSERT_EQ(position, round * 64 + each);
        }
        EXPECT_EQ(weftio_dev_rdma_recv_post(b(), ends.buffer(1), 0, 8), WEFTIO_DEV_FULL);
        ASSERT_EQ(weftio_dev_rdma_recv_commit(b()), WEFTIO_DEV_OK);
        for (std::uint32_t each = 0; each < 64; ++each)
            ASSERT_EQ(weftio_dev_rdma_send_imm(a(), buffer, each * 8, 8, position + each, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(done(), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_rdma_recv_post(b(), ends.buffer(1), 0, 8), WEFTIO_DEV_FULL);
        ASSERT_EQ(weftio_dev_rdma_recv_wait(b(), 64, 0, &count, &first), WEFTIO_DEV_OK);
        ASSERT_EQ(first, round * 64);
        ASSERT_EQ(count, 64u);
        ASSERT_EQ(weftio_dev_rdma_recv_message(b(), first + 63, &reported), WEFTIO_DEV_OK);
        ASSERT_EQ(reported.immediate, position + 63);
        ASSERT_EQ(weftio_dev_rdma_recv_message(b(), first + 64, &reported), WEFTIO_DEV_NOT_FOUND);
        ASSERT_EQ(weftio_dev_rdma_recv_message(b(), first - 1, &reported), WEFTIO_DEV_NOT_FOUND);
    }
    expect_remote(0, 0, 512);
}

TEST_P(RdmaFunctions, AWaitForMessagesEndsInTimeAndHandsOutWhatCame)
{
    weftio_u32 count = 7, first = 7;
    EXPECT_EQ(weftio_dev_rdma_recv_poll(b(), 64, &count, &first), WEFTIO_DEV_OK);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 1000, &count, &first), WEFTIO_DEV_TIMEOUT);
    EXPECT_EQ(count, 0u);
    post_receives(3, 8);
    for (std::uint32_t each = 0; each < 2; ++each)
        ASSERT_EQ(weftio_dev_rdma_send_imm(a(), buffer, 0, 0, each, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 3, 1000, &count, &first), WEFTIO_DEV_TIMEOUT);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(first, 0u);
    ASSERT_EQ(weftio_dev_rdma_send_imm(a(), buffer, 0, 0, 2, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_recv_poll(b(), 64, &count, &first), WEFTIO_DEV_OK);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(first, 2u);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 0, 1, &count, &first), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 65, 1, &count, &first), WEFTIO_DEV_INVALID_ARGUMENT);
}

TEST_P(RdmaFunctions, WaitsForAValueEndInTimeAndWhenTheHostWants)
{
    auto* const word = reinterpret_cast<weftio_u64*>(ends.memory(1).data() + 128);
    weftio_dev_rdma* const there = ends.queue(1).handle();
    const std::uint64_t before = 1000, signal = 2000;
    std::memcpy(word, &before, sizeof before);
    EXPECT_EQ(weftio_dev_rdma_wait_value(there, word, 1000, 1000), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_wait_value(there, word, 1001, 1000), WEFTIO_DEV_TIMEOUT);
    ASSERT_EQ(weftio_dev_rdma_write_signal(a(), weftio_dev_rdma_write_request(peer, 200, buffer, 0, 2000), peer, 128,
                                           signal, 0),
              WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit(a()), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_wait_value(there, word, 1500, 0), WEFTIO_DEV_OK);
    expect_remote(200, 0, 2000);
    std::memcpy(&remote_model[128], &signal, sizeof signal);
    EXPECT_EQ(ends.memory(1).copy(), remote_model) << "all that was in front of the signal has come";
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    weftio_store_release_sys_u32(&ends.queue(1).control()->abort, 1);
    EXPECT_EQ(weftio_dev_rdma_wait_value(there, word, 3000, 0), WEFTIO_DEV_ABORTED);
    weftio_u32 count = 0, first = 0;
    weftio_store_release_sys_u32(&ends.queue(1).receives().control()->abort, 1);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 0, &count, &first), WEFTIO_DEV_ABORTED);
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaFunctions, testing::ValuesIn(places_of_ends),
                         [](const auto& info) { return name_of(info.param); });

} // namespace weftio::test
