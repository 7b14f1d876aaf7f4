// Two GPUs of one host: queues of both at one port, and items that pass between their kernels.
#include <tuple>

#include "fixture.hpp"
#include "unit/rdma/two_device_cases.hpp"
#include "unit/semaphore/semaphore_kernels.h"

WEFTIO_DEFINE_KERNEL(ask_items, "semaphore_kernels.h");
WEFTIO_DEFINE_KERNEL(answer_asked, "semaphore_kernels.h");

namespace weftio::test {

namespace {

using TwoGpus = two_gpus_fixture;

struct frames_between {
    unsigned from;
    two_device_cases::memory_of_frames where;
    std::uint32_t bytes;
};

std::string name_of(const testing::TestParamInfo<frames_between>& info)
{
    const auto& [from, where, bytes] = info.param;
    return std::string(from == 0 ? "there" : "back") + std::to_string(bytes) +
           (where.sent == memory_kind::device ? "pulled" : "") +
           (where.received == memory_kind::device ? "staged" : "");
}

class TwoGpusStream : public two_gpus_fixture, public testing::WithParamInterface<frames_between> {};

class TwoGpusItems : public two_gpus_fixture, public testing::WithParamInterface<std::tuple<memory_kind, grid>> {};

} // namespace

TEST_P(TwoGpusStream, ArrivesWholeInOrderAndOnce)
{
    const auto& [from, where, bytes] = GetParam();
    two_device_cases(gpu(), second()).stream(from, where, bytes, 200'000);
}

INSTANTIATE_TEST_SUITE_P(Of, TwoGpusStream,
                         testing::Values(frames_between{0, {}, 64}, frames_between{1, {}, 1472},
                                         frames_between{0, {memory_kind::cpu_device, memory_kind::device}, 64},
                                         frames_between{1, {memory_kind::device, memory_kind::cpu_device}, 64},
                                         frames_between{0, {memory_kind::device, memory_kind::device}, 1472}),
                         name_of);

TEST_F(TwoGpus, WriteToEachOthersMemory)
{
    two_device_cases(gpu(), second()).play_ping_pong(1000);
}

TEST_P(TwoGpusItems, CrossAndComeBackWithAnAnswer)
{
    constexpr std::uint32_t total = 20'000;
    const auto [kind, shape] = GetParam();
    semaphore between(gpu(), {.items = 256,
                              .kind = kind,
                              .custom_info_bytes = WORDS * sizeof(std::uint32_t),
                              .custom_info_kind = kind,
                              .check_transitions = true,
                              .peer = second()});
    const shared_words tally(gpu(), 3), asked(second(), 3); // struct account
    running_kernel answers =
        gpu().launch(answer_asked_kernel, shape, between, total, reinterpret_cast<account*>(tally.on_device()));
    running_kernel asks =
        second().launch(ask_items_kernel, shape, between.peer(), total, reinterpret_cast<account*>(asked.on_device()));
    EXPECT_TRUE(asks.wait_for(patience)) << asks.dump();
    EXPECT_TRUE(answers.wait_for(patience)) << answers.dump();
    EXPECT_THAT(tally.all(), testing::ElementsAre(total, 0u, 0u));
    EXPECT_THAT(asked.all(), testing::Each(0u));
    EXPECT_EQ(between.illegal_transitions().count + between.peer().illegal_transitions().count, 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, TwoGpusItems,
                         testing::Combine(testing::Values(memory_kind::device, memory_kind::cpu_device),
                                          testing::Values(grid{1, 1}, grid{2, 32})));

} // namespace weftio::test
