// Ports whose engines have threads, so that what both sides write and read is seen by ThreadSanitizer.
#include <thread>

#include "two_ends.hpp"

namespace weftio::test {

namespace {

/// Calls `done` until it is true, within `patience`.
template <class Done>
bool wait_until(Done&& done)
{
    for (auto end = std::chrono::steady_clock::now() + patience; std::chrono::steady_clock::now() < end;
         std::this_thread::yield())
        if (done())
            return true;
    return false;
}

/// Sends `count` messages, each of which says its number and fills a receive of its own.
void send_stamped(two_ends& ends, std::uint32_t count)
{
    for (std::uint32_t sent = 0; sent < count; ++sent) {
        std::memcpy(ends.memory(0).data() + sent % 64 * 8, &sent, sizeof sent);
        const std::uint32_t position =
            ends.queue(0).post(WEFTIO_OPCODE_SEND_IMMEDIATE, {ends.memory(0).local(sent % 64 * 8, 8)}, sent);
        ends.queue(0).push();
        ASSERT_TRUE(wait_until([&] { return ends.queue(0).sent().position == (position & 0xffff); })) << sent;
        ASSERT_EQ(ends.queue(0).sent().syndrome, 0) << "message " << sent << " failed";
    }
}

void receive_stamped(two_ends& ends, std::uint32_t count)
{
    for (std::uint32_t each = 0; each < 32; ++each)
        ends.queue(1).post_receive({ends.memory(1).local(each * 8, 8)});
    for (std::uint32_t got = 0; got < count; ++got) {
        std::optional<weftio_cqe> cqe;
        ASSERT_TRUE(wait_until([&] { return (cqe = ends.queue(1).received()).has_value(); })) << got;
        std::uint32_t stamp = 0;
        std::memcpy(&stamp, ends.memory(1).data() + got % 32 * 8, sizeof stamp);
        ASSERT_EQ(stamp, got);
        ASSERT_EQ(weftio_swap32(cqe->immediate_be), got);
        ends.queue(1).post_receive({ends.memory(1).local(got % 32 * 8, 8)});
    }
}

} // namespace

class RdmaThreads : public testing::TestWithParam<ends_at> {};

TEST_P(RdmaThreads, CarryEveryMessageOnce)
{
    constexpr std::uint32_t count = 2000;
    two_ends ends(GetParam(), 64, 64, engine_mode::thread);
    // Nothing is lost on this wire. An engine that others keep from its core for half a second is no reason to give up.
    for (unsigned end = 0; end < 2; ++end) {
        nic::rdma_connection patient = ends.connection(end);
        patient.timeout = 0;
        ends.queue(end).nic().connect(patient);
    }
    std::thread receiver([&] { receive_stamped(ends, count); });
    send_stamped(ends, count);
    receiver.join();
    EXPECT_EQ(ends.queue(0).nic().counters().done, count);
    EXPECT_EQ(ends.queue(1).nic().counters().filled, count);
    for (unsigned end = 0; end < 2; ++end) {
        ends.queue(end).nic().stop_sending();
        expect_conserved(ends.queue(end).nic().counters());
    }
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaThreads, testing::ValuesIn(all_ends),
                         [](const testing::TestParamInfo<ends_at>& where) { return name_of(where.param); });

} // namespace weftio::test
