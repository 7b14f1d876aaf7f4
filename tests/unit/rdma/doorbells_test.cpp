// Queue pairs that sleep until somebody rings, and not until their record is polled.
#include <atomic>
#include <deque>

#include "datagram_ends.hpp"

namespace weftio::test {

namespace {

/// Both at one port, and rung by the same words.
class QueuePairDoorbell : public testing::TestWithParam<bool> {
 protected:
    QueuePairDoorbell()
    {
        ends_.connect();
        fall_asleep();
    }
    void fall_asleep()
    {
        ends_.run();
        for (unsigned turn = 0; turn < 300; ++turn)
            this->turn();
    }
    void turn() { ends_.ports.get(0).turn(); }
    std::uint64_t done(unsigned end) { return ends_.pair(end)->counters().done; }
    std::atomic_ref<std::uint64_t> word(unsigned which)
    {
        return std::atomic_ref(static_cast<std::uint64_t*>(words_.cpu_address())[which * 32]);
    }

    device cpu_ = device::open("cpu");
    memory words_ = cpu_.allocate(512, memory_kind::cpu_device);
    verbs_ends ends_{{.one_port = true, .pair = {.doorbell = {.of = &words_}, .two_doorbells = GetParam()}}};
};

} // namespace

TEST_P(QueuePairDoorbell, WakesASleeperAndIsTaken)
{
    ends_.write(0, 10);
    for (unsigned turn = 0; turn < 100; ++turn)
        this->turn();
    ASSERT_EQ(done(0), 0u) << "nobody has rung";
    word(0) = 7;
    turn();
    EXPECT_EQ(done(0), 1u);
    EXPECT_EQ(word(0), 0u);
}

TEST_P(QueuePairDoorbell, WakesAllThatShareIt)
{
    ends_.write(0, 10);
    ends_.write(1, 10);
    word(0) = 7;
    turn();
    EXPECT_EQ(done(0), 1u);
    EXPECT_EQ(done(1), 1u);
}

TEST_P(QueuePairDoorbell, IsTheSecondWordToo)
{
    ends_.write(0, 10);
    word(1) = 7;
    turn();
    EXPECT_EQ(done(0), GetParam() ? 1u : 0u);
    EXPECT_EQ(word(1), GetParam() ? 0u : 7u);
}

TEST_P(QueuePairDoorbell, MayStayAwayForAWhile)
{
    ends_.write(0, 10);
    EXPECT_TRUE(ends_.run_until([&] { return done(0) == 1; })) << "a sleeper has a turn now and then";
}

TEST_P(QueuePairDoorbell, OutlivesQueuePairsThatShareIt)
{
    ends_.pairs[1].reset();
    ends_.write(0, 10);
    word(0) = 7;
    turn();
    EXPECT_EQ(word(0), 0u);
    EXPECT_EQ(ends_.pair(0)->counters().enqueued, 1u);
    ends_.pairs[0].reset();
    word(0) = 7;
    turn();
    EXPECT_EQ(word(0), 7u) << "it is nobody's";
}

INSTANTIATE_TEST_SUITE_P(Of, QueuePairDoorbell, testing::Bool());

/// Whatever the number of doorbells and of queue pairs behind one: none is passed over for ever.
TEST(QueuePairDoorbells, MayAllStayAwayForAWhile)
{
    for (std::uint32_t doorbells = 1; doorbells != 5; ++doorbells)
        for (std::uint32_t behind = 1; behind != 5; ++behind) {
            datagram_ends ends{true};
            ends.start();
            const memory words = ends.cpu.allocate(doorbells * sizeof(std::uint64_t), memory_kind::cpu_device);
            std::deque<posted_pair> sleepers;
            for (std::uint32_t each = 0; each != doorbells * behind; ++each) {
                queue_pair_options options{.service = rdma_service::datagram};
                options.doorbell = {.of = &words, .offset = each % doorbells * sizeof(std::uint64_t)};
                posted_pair& made = sleepers.emplace_back(*ends.devices[0], ends.cpu, *ends.completions[0],
                                                          *ends.completions[0], options);
                made->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .queue_key = usual_key});
                made->modify(rdma_state::ready_to_receive);
                made->modify(rdma_state::ready_to_send, {.send_psn = 0});
            }
            for (unsigned turn = 0; turn != 300; ++turn)
                ends.at(0).turn();
            for (posted_pair& each : sleepers)
                each.post(WEFTIO_OPCODE_SEND, named(ends.peer(1)));
            for (posted_pair& each : sleepers)
                ASSERT_TRUE(ends.run_until([&] { return each->counters().done == 1; }))
                    << each->number() << ": " << doorbells << " doorbells, " << behind << " behind each";
        }
}

TEST(QueuePairDoorbells, ThatDoNotLieInTheirMemoryAreRefused)
{
    verbs_ends ends;
    const memory words = ends.cpu.allocate(256, memory_kind::cpu_device);
    const auto refused = [&](const queue_pair_options& options, const char* why) {
        try {
            const queue_pair made(*ends.devices[0], ends.cpu, *ends.completions[0], *ends.completions[0], options);
            ADD_FAILURE() << why;
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), errc::invalid_argument);
            EXPECT_NE(std::string(refusal.what()).find(why), std::string::npos) << refusal.what();
        }
    };
    refused({.doorbell = {&words, 4}}, "doorbell is at");
    refused({.doorbell = {&words, 256}}, "doorbell needs 8 bytes");
    refused({.doorbell = {&words, 0}, .two_doorbells = true}, "doorbell needs 264 bytes");
}

} // namespace weftio::test
