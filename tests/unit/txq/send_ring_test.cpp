// The ring of a send queue as a kernel keeps it: what is free, what is completed, what is filled without a gap.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <thread>

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

/// Marks of two pages. The second cannot be touched before `meanwhile` was called, in the middle of what touches it
/// first.
class SendRingOfTwoPages : public testing::Test {
 public:
    static constexpr std::uint32_t words_in_page = 1024, blocks_in_page = words_in_page * 32;

    void SetUp() override
    {
        void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(pages, MAP_FAILED);
        ring.filled = static_cast<std::uint32_t*>(pages);
        ring.mask = 2 * blocks_in_page - 1;
        now = this;
        struct sigaction calls {};
        calls.sa_handler = [](int) { now->touched(); };
        ASSERT_EQ(sigaction(SIGSEGV, &calls, &before), 0);
    }
    void TearDown() override
    {
        sigaction(SIGSEGV, &before, nullptr);
        munmap(ring.filled, 2 * page);
    }
    /// @param rights  to the second page, before `then` was called
    void hold_second_page(int rights, void (*then)(SendRingOfTwoPages& of))
    {
        meanwhile = then;
        ASSERT_EQ(mprotect(ring.filled + words_in_page, page, rights), 0);
    }
    std::uint32_t scan(std::uint32_t from) { return weftio_dev_send_scan(&ring, from); }

    weftio_dev_send_ring ring{};
    std::uint32_t committed_to = ~0u;

 private:
    static constexpr std::size_t page = words_in_page * sizeof(std::uint32_t);

    void touched()
    {
        mprotect(ring.filled + words_in_page, page, PROT_READ | PROT_WRITE);
        meanwhile(*this);
    }

    static inline SendRingOfTwoPages* now = nullptr;
    void (*meanwhile)(SendRingOfTwoPages& of) = nullptr;
    struct sigaction before {};
};

TEST_F(SendRingOfTwoPages, IsNotCommittedUpToTheMiddleOfAnEntryThatIsBeingMarked)
{
    hold_second_page(PROT_READ, [](SendRingOfTwoPages& of) { of.committed_to = of.scan(blocks_in_page - 1); });
    weftio_dev_send_fill(&ring, blocks_in_page - 1, 2);
    EXPECT_EQ(committed_to, blocks_in_page - 1);
    EXPECT_EQ(scan(blocks_in_page - 1), blocks_in_page + 1);
    EXPECT_EQ(scan(blocks_in_page - 1), blocks_in_page - 1) << "what has been committed is not marked any more";
}

TEST_F(SendRingOfTwoPages, IsNotCommittedUpToTheMiddleOfAnEntryThatIsMarkedDuringTheScan)
{
    constexpr std::uint32_t first = blocks_in_page - 32; // the scan looks at this word and, at once, at later ones
    hold_second_page(PROT_NONE, [](SendRingOfTwoPages& of) {
        weftio_dev_send_fill(&of.ring, blocks_in_page - 1, 2);
        weftio_dev_send_fill(&of.ring, first, 31);
    });
    committed_to = scan(first);
    EXPECT_TRUE(committed_to == first || committed_to == blocks_in_page + 1) << committed_to;
    EXPECT_EQ(scan(committed_to), blocks_in_page + 1);
}

/// A ring that a test fills block by block and in any order.
class Marks : public testing::TestWithParam<std::uint32_t> {
 public:
    static constexpr std::uint32_t most = 1024;

 protected:
    Marks()
    {
        ring_.filled = words_.data();
        ring_.mask = GetParam() - 1;
    }

    std::array<std::uint32_t, most / 32> words_{};
    weftio_dev_send_ring ring_{};
};

TEST_P(Marks, AreTakenUpToTheFirstGapWhereverItIs)
{
    const std::uint32_t depth = GetParam();
    for (std::uint32_t start : {0u, 31u, depth - 1, depth + 17, 0u - 40}) {
        for (std::uint32_t gap = 0; gap <= depth; ++gap) {
            for (std::uint32_t block = 0; block < depth; ++block)
                if (block != gap)
                    weftio_dev_send_fill(&ring_, start + block, 1);
            ASSERT_EQ(weftio_dev_send_scan(&ring_, start), start + gap) << start;
            if (gap == depth)
                continue;
            weftio_dev_send_fill(&ring_, start + gap, 1);
            ASSERT_EQ(weftio_dev_send_scan(&ring_, start + gap), start + depth) << start << ", " << gap;
        }
        ASSERT_EQ(words_, (decltype(words_){})) << start;
    }
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
        for (std::uint32_t first = 0; weftio_dev_send_reserve(&ring, count, &first);)
            for (std::uint32_t at = first; at < first + count; ++at)
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
