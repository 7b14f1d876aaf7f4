// Completion queues that get another ring while completions lie there and come.
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "posted_ends.hpp"

namespace weftio::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct size_of_ring {
    std::uint32_t entries, entry_bytes;
};
struct two_rings {
    size_of_ring old, next;
};

std::string name_of(const two_rings& of)
{
    return fmt::format("{}By{}To{}By{}", of.old.entries, of.old.entry_bytes, of.next.entries, of.next.entry_bytes);
}

class ResizedRings : public testing::TestWithParam<two_rings> {};

/// Whether the program was notified since the last call.
bool was_notified(const completion_queue& queue)
{
    pollfd watched{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
    std::uint64_t count = 0;
    return ::poll(&watched, 1, 0) == 1 && read(queue.descriptor(), &count, sizeof count) == sizeof count;
}

std::vector<std::uint32_t> indices_of(const std::vector<completion>& all)
{
    std::vector<std::uint32_t> indices;
    for (const completion& each : all)
        indices.push_back(each.index);
    return indices;
}

errc error_of_resize(completion_queue& queue, std::uint32_t entries, std::uint32_t entry_bytes = 64)
{
    try {
        queue.resize(entries, entry_bytes);
    } catch (const error& why) {
        return static_cast<errc>(why.code().value());
    }
    return {};
}

} // namespace

TEST_P(ResizedRings, LoseNoCompletionAndTellNoneTwice)
{
    const auto [old, next] = GetParam();
    const std::uint32_t fewest = std::min(old.entries, next.entries);
    verbs_ends ends({.completions = {.entries = old.entries, .entry_bytes = old.entry_bytes}});
    completion_queue& queue = *ends.completions[0];
    std::uint32_t posted = 0, seen = 0;
    const auto all_but = [&](std::uint32_t left) { // reads nothing before it must
        if (posted - seen <= left)
            return true;
        for (const completion& each : ends.poll(0)) {
            EXPECT_EQ(each.index, seen++ & 0xffff);
            EXPECT_FALSE(each.failed());
        }
        return posted - seen <= left;
    };
    ends.connect();
    for (unsigned turn = 0; turn < 20; ++turn) {
        const size_of_ring to = turn % 2 == 0 ? next : old;
        for (unsigned each = 0; each < 1 + turn % fewest; ++each, ++posted)
            ends.write(0, 8);
        if (turn % 3 != 0)
            ends.run();
        ASSERT_TRUE(ends.run_until([&] { return all_but(fewest - 1); })) << "the end of the ring has a place then";
        queue.resize(to.entries, to.entry_bytes);
        EXPECT_EQ(queue.entries(), to.entries);
    }
    EXPECT_TRUE(ends.run_until([&] { return all_but(0); }));
    EXPECT_EQ(seen, posted);
    EXPECT_THAT(ends.poll(0), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Of, ResizedRings,
                         testing::Values(two_rings{{16, 64}, {64, 64}}, two_rings{{16, 128}, {4, 128}},
                                         two_rings{{8, 64}, {32, 128}}, two_rings{{2, 64}, {4, 64}}),
                         [](const auto& info) { return name_of(info.param); });

TEST(CompletionResize, EndsTheOldRingWithACompletionThatSaysSo)
{
    verbs_ends ends;
    memory old = ends.cpu.allocate(16 * 64, memory_kind::cpu_device, 64);
    memory next = ends.cpu.allocate(64 * 64, memory_kind::cpu_device, 64);
    memset(old.device_address(), WEFTIO_CQE_NEVER_WRITTEN, 16 * 64);
    memset(next.device_address(), WEFTIO_CQE_NEVER_WRITTEN, 64 * 64);
    completion_queue queue(ends.at(0), ends.cpu, {.entries = 16, .ring = {.of = &old}});
    posted_pair sender(*ends.devices[0], ends.cpu, queue, queue);
    sender->connect(ends.pair(1)->address());
    ends.pair(1)->connect(sender->address());
    for (unsigned each = 0; each < 3; ++each)
        sender.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
    ends.run();
    std::array<completion, 1> first;
    ASSERT_EQ(queue.poll(first), 1u);
    queue.resize(64, 64, {.of = &next});
    const auto opcodes = [](const memory& ring, unsigned count) {
        std::vector<unsigned> all;
        for (unsigned each = 0; each < count; ++each)
            all.push_back(static_cast<const std::uint8_t*>(ring.device_address())[each * 64 + 63]);
        return all;
    };
    EXPECT_THAT(opcodes(old, 5), ElementsAre(0, 0, 0, WEFTIO_CQE_OPCODE_RESIZE << 4, WEFTIO_CQE_NEVER_WRITTEN));
    EXPECT_THAT(opcodes(next, 5),
                ElementsAre(WEFTIO_CQE_NEVER_WRITTEN, WEFTIO_CQE_NEVER_WRITTEN, 0, 0, WEFTIO_CQE_NEVER_WRITTEN));
    EXPECT_EQ(static_cast<const std::uint32_t*>(queue.record())[0], weftio_swap32(2));
    EXPECT_EQ(queue.ring(), next.device_address());
    const weftio_dev_completion_queue& handle = *queue.handle();
    EXPECT_EQ(handle.mask, 63u);
    EXPECT_EQ(handle.polled, 2u);
    memset(old.device_address(), 0xee, 16 * 64);
    sender.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
    ends.run();
    std::array<completion, 8> rest;
    ASSERT_EQ(queue.poll(rest), 3u);
    EXPECT_EQ(rest[2].index, 3u);
    EXPECT_THAT(opcodes(old, 1), ElementsAre(0xeeu)) << "the NIC has left it";
}

TEST(CompletionResize, RefusesWhatWouldLoseCompletions)
{
    verbs_ends ends({.completions = {.entries = 8}});
    completion_queue& queue = *ends.completions[0];
    ends.connect();
    for (unsigned each = 0; each < 8; ++each)
        ends.write(0, 8);
    ends.run();
    EXPECT_EQ(error_of_resize(queue, 16), errc::in_use) << "its end has no place";
    std::array<completion, 3> some;
    ASSERT_EQ(queue.poll(some), 3u);
    EXPECT_EQ(error_of_resize(queue, 4), errc::invalid_argument) << "five are not consumed";
    EXPECT_EQ(error_of_resize(queue, 12), errc::invalid_argument);
    EXPECT_EQ(error_of_resize(queue, 16, 32), errc::invalid_argument);
    EXPECT_THAT(indices_of(ends.poll(0)), ElementsAre(3, 4, 5, 6, 7));
    EXPECT_EQ(error_of_resize(queue, 4), errc{});
}

TEST(CompletionResize, IsRefusedByAQueueThatHasOverrun)
{
    verbs_ends ends({.completions = {.entries = 2, .overrun = completion_overrun::fail}});
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.write(0, 8);
    ends.run();
    ASSERT_TRUE(ends.completions[0]->overrun());
    ends.poll(0);
    EXPECT_EQ(error_of_resize(*ends.completions[0], 16), errc::closed);
}

TEST(CompletionResize, IsNoNewsAndKeepsWhatWasAskedFor)
{
    verbs_ends ends({.completions = {.entries = 8}});
    completion_queue& queue = *ends.completions[0];
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.write(0, 8);
    EXPECT_THAT(ends.poll(0), SizeIs(3));
    queue.arm();
    for (const std::uint32_t entries : {16u, 64u, 8u}) {
        queue.resize(entries);
        ends.run();
        EXPECT_FALSE(was_notified(queue)) << "nothing has come";
    }
    ends.write(0, 8);
    ends.run();
    EXPECT_TRUE(was_notified(queue));
    queue.arm();
    queue.resize(16);
    ends.run();
    EXPECT_FALSE(was_notified(queue)) << "it was told of that before";
    EXPECT_THAT(indices_of(ends.poll(0)), ElementsAre(3));
}

} // namespace weftio::test
