// The ring of a send queue as a kernel keeps it: what is free, what is completed, what is filled without a gap.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

/// Both sides of a ring in one step: commits some, completes them. `at_least` and `at_most` enclose what is completed.
void play(weftio_dev_send_ring& ring, weftio_cqe& completion, std::atomic<std::uint32_t>& at_least,
          std::atomic<std::uint32_t>& at_most, std::uint32_t step)
{
    std::uint32_t next = at_least.load() + step;
    at_most.store(next);
    weftio_store_relaxed_u32(&ring.ready, next);
    weftio_store_release_sys_u32(&completion.publication,
                                 weftio_cqe_publication(next - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    at_least.store(next);
}

TEST(SendRing, KnowsWhatIsCompletedHoweverMuchOthersCommitMeanwhile)
{
    weftio_cqe completion{};
    weftio_dev_send_ring ring{};
    ring.completion = &completion;
    ring.mask = 32767;
    std::atomic<std::uint32_t> at_least{0}, at_most{0};
    play(ring, completion, at_least, at_most, 1);
    std::atomic<bool> ending{false};
    std::thread others([&] {
        for (std::uint32_t step = 1; !ending.load(); step = step % 9000 + 7)
            play(ring, completion, at_least, at_most, step);
    });
    std::uint32_t wrong = 0;
    for (std::uint32_t look = 0; look < 300000; ++look) {
        std::uint32_t low = at_least.load();
        std::uint32_t completed = weftio_dev_send_completed(&ring);
        std::uint32_t high = at_most.load();
        wrong += completed - low > high - low;
    }
    ending = true;
    others.join();
    EXPECT_EQ(wrong, 0u);
}

TEST(SendRing, HasNoRoomWhenACompletionNamesAnEntryThatIsNotInIt)
{
    constexpr std::uint32_t entries = 64, enqueued = 3;
    weftio_cqe completion{};
    weftio_dev_send_ring ring{};
    ring.completion = &completion;
    ring.mask = entries - 1;
    ring.reserved = ring.ready = enqueued;
    ring.completed = 0;
    for (std::uint32_t named : {0x8000u, enqueued, enqueued - 1 - entries - 1}) {
        completion.publication = weftio_cqe_publication(named, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        EXPECT_EQ(weftio_dev_send_room(&ring, entries), 0u) << named;
    }
    completion.publication = weftio_cqe_publication(enqueued - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    EXPECT_EQ(weftio_dev_send_room(&ring, entries), entries);
}

struct weftio_dev_send_range claim_of(std::uint32_t first, std::uint32_t count)
{
    return {.first = first, .count = count, .group = weftio_find_peers(0)};
}

/// A ring that a test fills in any order, in runs of any length.
class Marks : public testing::TestWithParam<std::uint32_t> {
 public:
    static constexpr std::uint32_t most = 1024;

 protected:
    Marks()
    {
        ring_.filled = words_.data();
        ring_.mask = GetParam() - 1;
    }
    void fill(std::uint32_t first, std::uint32_t count)
    {
        weftio_dev_send_fill(weftio_dev_send_parts_of(&ring_), claim_of(first, count));
    }
    std::uint32_t scan(std::uint32_t ready) const
    {
        return weftio_dev_send_scan(weftio_dev_send_parts_of(&ring_), ready);
    }

    std::array<std::uint32_t, most> words_{};
    weftio_dev_send_ring ring_{};
};

TEST_P(Marks, AreTakenUpToTheFirstGapWhereverItIs)
{
    const std::uint32_t depth = GetParam();
    for (std::uint32_t start : {0u, 31u, depth - 1, depth + 17, 0u - 40}) {
        for (std::uint32_t gap = 0; gap <= depth; ++gap) {
            for (std::uint32_t block = 0; block < depth; ++block)
                if (block != gap)
                    fill(start + block, 1);
            ASSERT_EQ(scan(start), start + gap) << start;
            if (gap == depth)
                continue;
            fill(start + gap, 1);
            ASSERT_EQ(scan(start + gap), start + depth) << start << ", " << gap;
        }
        ASSERT_EQ(words_, (decltype(words_){})) << start;
    }
}

TEST_P(Marks, AreTakenInRunsOfAnyLength)
{
    const std::uint32_t depth = GetParam();
    std::minstd_rand random(depth);
    const auto any = [&] { return static_cast<std::uint32_t>(random()); };
    std::uint32_t start = 0u - 5000;
    for (std::uint32_t round = 0; round < 2000; ++round) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
        std::uint32_t end = start;
        while (end - start < depth) {
            const std::uint32_t kind = any() % 4, left = depth - (end - start);
            const std::uint32_t count = std::min(left, kind == 0 ? 1u : kind == 1 ? 32u : 1 + any() % (depth / 4));
            runs.emplace_back(end, count);
            end += count;
        }
        const auto [gap, missing] = runs[random() % runs.size()];
        std::ranges::shuffle(runs, random);
        for (const auto& [first, count] : runs)
            if (first != gap)
                fill(first, count);
        ASSERT_EQ(scan(start), gap) << round;
        ASSERT_EQ(scan(gap), gap) << "what has been committed is not marked any more";
        fill(gap, missing);
        ASSERT_EQ(scan(gap), end) << round;
        ASSERT_EQ(words_, (decltype(words_){})) << round;
        start = end + any() % depth;
    }
}

TEST_P(Marks, OfAWholeRingAreTakenOnce)
{
    const std::uint32_t depth = GetParam();
    fill(7, depth);
    EXPECT_EQ(scan(7), 7 + depth);
    EXPECT_EQ(scan(7 + depth), 7 + depth);
}

INSTANTIATE_TEST_SUITE_P(Blocks, Marks, testing::Values(64u, 256u, Marks::most));

/// A ring from which nothing is sent, and who has which place of it.
struct contested_ring {
    static constexpr std::uint32_t depth = 64;

    contested_ring()
    {
        completion.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        ring.completion = &completion;
        ring.mask = depth - 1;
    }
    /// Claims `count` places at a time until there is none.
    void claim_all(std::uint32_t count)
    {
        for (struct weftio_dev_send_range claim{}; weftio_dev_send_reserve(&ring, count, &claim);)
            for (std::uint32_t at = claim.first; at < claim.first + count; ++at)
                weftio_fetch_add_u32(&holders.at(at), 1);
    }

    weftio_cqe completion{};
    weftio_dev_send_ring ring{};
    std::array<std::uint32_t, depth> holders{};
};

TEST(SendRing, GivesEveryPlaceToOneHoweverManyAsk)
{
    for (std::uint32_t round = 0; round < 1000; ++round) {
        contested_ring shared;
        std::barrier start(3);
        auto ask = [&](std::uint32_t count) {
            start.arrive_and_wait();
            shared.claim_all(count);
        };
        std::thread two([&] { ask(2); }), three([&] { ask(3); });
        ask(5);
        two.join();
        three.join();
        shared.claim_all(
            1); // what was too little for them, or was left because a claim beside theirs was being refused
        ASSERT_THAT(shared.holders, testing::Each(1u)) << round;
        ASSERT_EQ(shared.ring.asked, contested_ring::depth);
        ASSERT_EQ(shared.ring.reserved, contested_ring::depth);
    }
}

} // namespace
} // namespace weftio::test
