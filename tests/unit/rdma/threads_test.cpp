// Ports whose engines have threads, so that what both sides write and read is seen by ThreadSanitizer.
#include <atomic>
#include <thread>

#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::uint32_t receives_ahead = 32;

/// Two ends at engines with threads. Their requests wait for ever for an answer. The wire loses nothing, but the thread
/// of the peer's engine may have no core for longer than the 8 x 67 ms after which a queue pair gives up. A packet that
/// is lost all the same is a hang here, and is never mended by a repeat that nobody sees.
class threaded_ends {
 public:
    explicit threaded_ends(ends_at where) : ends_(where, 64, 64, engine_mode::thread)
    {
        ends_.timeout = 0;
        ends_.connect();
        for (std::uint32_t each = 0; each < receives_ahead; ++each)
            ends_.queue(1).post_receive({ends_.memory(1).local(each * 8, 8)});
    }

    two_ends& get() { return ends_; }
    /// Sends `count` messages, each of which says its number and fills a receive of its own.
    void send_stamped(std::uint32_t count)
    {
        for (std::uint32_t stamp = 0; stamp < count; ++stamp) {
            std::memcpy(ends_.memory(0).data() + stamp % 64 * 8, &stamp, sizeof stamp);
            const std::uint32_t position =
                ends_.queue(0).post(WEFTIO_OPCODE_SEND_IMMEDIATE, {ends_.memory(0).local(stamp % 64 * 8, 8)}, stamp);
            ends_.queue(0).push();
            ASSERT_TRUE(wait_until([&] { return ends_.queue(0).sent().position == (position & 0xffff); }))
                << "message " << stamp << how_it_stands();
            ASSERT_FALSE(give_up_if(ends_.queue(0).nic().failed())) << "message " << stamp << how_it_stands();
        }
    }
    void receive_stamped(std::uint32_t count)
    {
        for (std::uint32_t got = 0; got < count; ++got) {
            std::optional<weftio_cqe> cqe;
            ASSERT_TRUE(wait_until([&] { return (cqe = ends_.queue(1).received()).has_value(); }))
                << "message " << got << how_it_stands();
            std::uint32_t stamp = 0;
            std::memcpy(&stamp, ends_.memory(1).data() + got % receives_ahead * 8, sizeof stamp);
            ASSERT_EQ(stamp, got);
            ASSERT_EQ(weftio_swap32(cqe->immediate_be), got);
            ends_.queue(1).post_receive({ends_.memory(1).local(got % receives_ahead * 8, 8)});
        }
    }

 private:
    bool give_up_if(bool failed)
    {
        given_up_ = given_up_ || failed;
        return failed;
    }
    /// Calls `done` until it is true, within `patience`, unless the other side has given up.
    template <class Done>
    bool wait_until(Done&& done)
    {
        for (auto end = std::chrono::steady_clock::now() + patience;
             std::chrono::steady_clock::now() < end && !given_up_; std::this_thread::yield())
            if (done())
                return true;
        given_up_ = true;
        return false;
    }
    std::string how_it_stands()
    {
        std::string all = "\n";
        for (unsigned end = 0; end < 2; ++end) {
            const nic::rdma_counters count = ends_.queue(end).nic().counters();
            all += to_string(ends_.queue(end).nic().dump()) + "\npackets " + std::to_string(count.packets) +
                   ", repeated " + std::to_string(count.repeated) + ", answers " + std::to_string(count.answers) +
                   ", requests " + std::to_string(count.requests) + ", duplicates " +
                   std::to_string(count.duplicate_request) + "; the port has sent " +
                   std::to_string(ends_.unit(end).sent().sent.value()) + " and claimed " +
                   std::to_string(ends_.unit(end).arrivals().claimed.value()) + "\n";
        }
        return all;
    }

    two_ends ends_;
    std::atomic<bool> given_up_{false};
};

/// What one end has sent, the other has received.
void expect_nothing_lost(two_ends& ends)
{
    for (unsigned end = 0; end < 2; ++end) {
        const nic::soft::roce_sender& sender = ends.unit(1 - end).sent();
        EXPECT_EQ(ends.unit(end).arrivals().claimed.value(), sender.sent.value() - sender.copied.value())
            << "at end " << end;
    }
}

} // namespace

class RdmaThreads : public testing::TestWithParam<ends_at> {};

TEST_P(RdmaThreads, CarryEveryMessageOnce)
{
    constexpr std::uint32_t count = 2000;
    threaded_ends both(GetParam());
    two_ends& ends = both.get();
    std::thread receiver([&] { both.receive_stamped(count); });
    both.send_stamped(count);
    receiver.join();
    EXPECT_EQ(ends.queue(0).nic().counters().done, count);
    EXPECT_EQ(ends.queue(1).nic().counters().filled, count);
    for (unsigned end = 0; end < 2; ++end) {
        ends.queue(end).nic().stop_sending();
        expect_conserved(ends.queue(end).nic().counters());
    }
    expect_nothing_lost(ends);
}

TEST_P(RdmaThreads, WaitForAnEngineWhoseThreadHasNoCore)
{
    constexpr std::chrono::milliseconds longer_than_all_repeats(700);
    threaded_ends both(GetParam());
    std::atomic<bool> stands_still{false};
    std::thread holder([&] {
        software_nic(both.get().at(1)).engine().between_turns([&] {
            stands_still = true;
            std::this_thread::sleep_for(longer_than_all_repeats);
        });
    });
    EXPECT_TRUE(eventually([&] { return stands_still.load(); }));
    both.send_stamped(1);
    holder.join();
    both.receive_stamped(1);
    EXPECT_EQ(both.get().queue(0).nic().counters().repeated, 0u);
    expect_nothing_lost(both.get());
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaThreads, testing::ValuesIn(all_ends),
                         [](const testing::TestParamInfo<ends_at>& where) { return name_of(where.param); });

} // namespace weftio::test
