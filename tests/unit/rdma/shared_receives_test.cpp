// Shared receive queues: the list of entries as an engine reads it, also when a program writes nonsense.
#include "weftio/shared_receives.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "keys/key_table.hpp"
#include "nic/soft/rdma/linked_receives.hpp"
#include "nic/soft/rdma/rdma_receives.hpp"
#include "public_pair.hpp"
#include "weftio/device/platform.h"

namespace weftio::test {
namespace {

using nic::soft::linked_receives;
using nic::soft::receive_entry;
using roce::taken;

/// The program's side: the ring, and the free entries in the order in which they are posted.
class program {
 public:
    explicit program(std::uint32_t depth) : words_(depth * words_of_entry)
    {
        for (std::uint32_t index = 0; index != depth; ++index) {
            link(index, (index + 1) % depth);
            free_.push_back(index);
        }
    }
    nic::soft::shared_rx_ring ring() const
    {
        return {.words = words_.data(),
                .dbrec = &record_,
                .depth = static_cast<std::uint32_t>(words_.size() / words_of_entry),
                .segments = words_of_entry / 4};
    }
    /// The last free entry is never posted. @return whether another one was
    bool post()
    {
        if (free_.size() == 1)
            return false;
        posted.push_back(free_.front());
        free_.pop_front();
        set_record(++count_);
        return true;
    }
    void release(std::uint32_t index)
    {
        link(free_.back(), index);
        free_.push_back(index);
    }
    void link(std::uint32_t from, std::uint32_t to) { words_[from * words_of_entry] = weftio_swap32(to); }
    void set_record(std::uint32_t count) { record_ = weftio_swap32(count & 0xffff); }

    std::deque<std::uint32_t> posted;

 private:
    static constexpr std::uint32_t words_of_entry = 8;

    std::vector<std::uint32_t> words_;
    std::deque<std::uint32_t> free_;
    std::uint32_t record_ = 0, count_ = 0;
};

/// Takes, returns, completes and posts at random: always the entry that a list of the program's would give. Goes around
/// the 16 bits of the record.
TEST(SharedReceives, GiveWhatAListGives)
{
    std::mt19937 random(4711);
    program by(16);
    linked_receives entries(by.ring());
    std::vector<receive_entry> held;
    std::uint64_t taken_in_all = 0;
    for (int step = 0; step != 300'000; ++step) {
        const std::size_t which = held.empty() ? 0 : random() % held.size();
        receive_entry next;
        switch (random() % 4) {
            case 0: by.post(); break;
            case 1:
                if (by.posted.empty()) {
                    ASSERT_EQ(entries.take(next), taken::none);
                    break;
                }
                ASSERT_EQ(entries.take(next), taken::entry);
                ASSERT_EQ(next.index, by.posted.front());
                by.posted.pop_front();
                held.push_back(next);
                ++taken_in_all;
                break;
            case 2:
                if (held.empty() || random() % 4 != 0)
                    break;
                entries.give_back(held[which]);
                by.posted.push_front(held[which].index);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
                break;
            default:
                if (held.empty())
                    break;
                by.release(held[which].index);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        }
        ASSERT_EQ(entries.waiting(), by.posted.size());
    }
    EXPECT_GT(taken_in_all, 0xffffu);
    EXPECT_FALSE(entries.is_broken());
}

TEST(SharedReceives, CountALimitOnce)
{
    program by(16);
    linked_receives entries(by.ring());
    receive_entry next;
    for (int each = 0; each != 5; ++each)
        by.post();
    entries.set_limit(3);
    for (const std::uint64_t reached : {0u, 0u, 1u, 1u}) {
        ASSERT_EQ(entries.take(next), taken::entry);
        EXPECT_EQ(entries.limit_reached.value(), reached);
    }
    EXPECT_EQ(entries.limit(), 0u);
    entries.set_limit(2); // one is waiting
    EXPECT_EQ(entries.limit_reached.value(), 2u);
}

TEST(SharedReceives, WhoseRecordClaimsTooMuchGiveNothing)
{
    program by(8);
    linked_receives entries(by.ring());
    receive_entry next;
    by.set_record(9);
    EXPECT_EQ(entries.take(next), taken::refused);
    by.set_record(1);
    EXPECT_EQ(entries.take(next), taken::refused);
    EXPECT_TRUE(entries.is_broken());
}

TEST(SharedReceives, WhoseLinkLeavesTheRingGiveNothingBehindIt)
{
    program by(8);
    linked_receives entries(by.ring());
    receive_entry next;
    by.link(1, 8);
    by.set_record(4);
    EXPECT_EQ(entries.take(next), taken::entry);
    EXPECT_EQ(entries.take(next), taken::entry);
    EXPECT_EQ(next.index, 1u);
    EXPECT_EQ(entries.take(next), taken::refused);
    entries.give_back(next); // what was taken can still be returned
    EXPECT_EQ(entries.take(next), taken::entry);
}

/// An entry that a queue pair has begun to fill goes to the next one if it is reset, and is completed if it fails.
TEST(SharedReceives, OfAQueuePairThatEndsAreNotLost)
{
    keys::key_table table;
    const keys::nic_keys keys("a test's", table);
    program by(8);
    linked_receives entries(by.ring());
    std::array<weftio_cqe, 8> completions{};
    const auto sharing = [&](std::uint32_t queue) {
        return nic::soft::rdma_receives({.completions = completions.data(), .depth = 8, .shared = &entries}, queue,
                                        keys, {});
    };
    nic::soft::rdma_receives reset = sharing(1), failed = sharing(2), other = sharing(3);
    for (int each = 0; each != 3; ++each)
        by.post();
    ASSERT_EQ(reset.take(), taken::entry);
    ASSERT_EQ(failed.take(), taken::entry);
    reset.be_silent();
    reset.complete({.result = refusal::flushed});
    failed.complete({.result = refusal::flushed});
    EXPECT_EQ(reset.flush() + failed.flush(), 0u);
    EXPECT_EQ(entries.waiting(), 2u);
    EXPECT_EQ(weftio_cqe_wqe_counter(completions[1].publication), 1u);
    ASSERT_EQ(other.take(), taken::entry);
    other.complete({.bytes = 1});
    EXPECT_EQ(weftio_cqe_wqe_counter(completions[0].publication), 0u);
    EXPECT_EQ(reset.received.value(), 0u);
}

class SharedReceivesObject : public testing::Test {
 protected:
    const port wire = port::open("loopback");
    const rdma_device at{wire, {.address = "198.51.100.7"}};
    const device cpu = device::open("cpu");
};

TEST_F(SharedReceivesObject, RefusesSizesInOneSentence)
{
    const auto refuse = [&](shared_receives_options options, const char* words) {
        try {
            const shared_receives made(at, cpu, options);
            ADD_FAILURE() << words;
        } catch (const error& why) {
            EXPECT_EQ(why.code(), errc::invalid_argument);
            EXPECT_STREQ(why.what(), words);
        }
    };
    refuse({.entries = 1}, "weftio: shared_receives: entries is 1; it must be a power of two from 2 to 32768");
    refuse({.entries = 48}, "weftio: shared_receives: entries is 48; it must be a power of two from 2 to 32768");
    refuse({.stride = 16}, "weftio: shared_receives: stride is 16; it must be a power of two from 32 to 512");
    refuse({.stride = 1024}, "weftio: shared_receives: stride is 1024; it must be a power of two from 32 to 512");
    shared_receives made(at, cpu, {.entries = 8});
    EXPECT_THROW(made.set_limit(8), error);
    EXPECT_NO_THROW(made.set_limit(7));
    EXPECT_EQ(made.standing().limits_reached, 1u); // none is waiting
}

TEST_F(SharedReceivesObject, IsForQueuePairsOfItsPort)
{
    const port other = port::open("loopback");
    const rdma_device there{other, {.address = "198.51.100.8"}};
    const completion_queue completions(other, cpu);
    const shared_receives mine(at, cpu), theirs(there, cpu);
    EXPECT_NO_THROW(queue_pair(there, cpu, completions, completions, {.shared = &theirs}));
    EXPECT_THROW(queue_pair(there, cpu, completions, completions, {.shared = &mine}), error);
}

} // namespace
} // namespace weftio::test
