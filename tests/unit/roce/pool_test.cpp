// Memory for what is under way: it grows, it runs out, it is given back.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace roce_ends {

using asking::at_requester;
using responding::at_responder;
using responding::dma;

namespace {

constexpr std::size_t of_8_messages = 8 * sizeof(message), of_4_answers = 256;

} // namespace

TEST(RocePool, GivesABlockToTheNextWhoAsksForItsSize)
{
    block_pool pool(64 + 128);
    void* const first = pool.take(64);
    void* const second = pool.take(128);
    EXPECT_EQ(pool.in_use(), 192u);
    EXPECT_EQ(pool.take(64), nullptr);
    pool.give_back(first, 64);
    EXPECT_EQ(pool.take(128), nullptr);
    EXPECT_EQ(pool.take(64), first);
    pool.give_back(first, 64);
    pool.give_back(second, 128);
    EXPECT_EQ(pool.in_use(), 0u);
}

TEST(RocePool, MessagesTakeWhatIsInFlightAndGiveItBack)
{
    at_requester end;
    EXPECT_EQ(end.shared.pool.in_use(), 0u);
    for (unsigned posted = 0; posted < 100; ++posted)
        end.post_write(1, posted != 99);
    EXPECT_EQ(end.sent_packets().size(), 100u);
    EXPECT_EQ(end.shared.pool.in_use(), 128 * sizeof(message));
    end.ours.rest();
    EXPECT_NE(end.shared.pool.in_use(), 0u) << "messages are in flight";
    end.ack(asking::first + 99);
    EXPECT_EQ(end.ours.completed.value(), 100u);
    end.ours.rest();
    EXPECT_EQ(end.shared.pool.in_use(), 0u);
}

TEST(RocePool, MessagesWithoutMemoryWaitUntilOthersAreAcknowledged)
{
    at_requester end({}, of_8_messages);
    for (unsigned posted = 0; posted < 20; ++posted)
        end.post_write(1, true);
    for (std::uint32_t acknowledged = 0; acknowledged < 20;) {
        const asking::packets sent = end.sent_packets();
        ASSERT_EQ(sent.size(), std::min(20 - acknowledged, 8u));
        EXPECT_TRUE(sent.size() < 8 || sent.back().ack_request) << "nobody would answer";
        acknowledged += static_cast<std::uint32_t>(sent.size());
        end.ack(asking::first + acknowledged - 1);
    }
    ASSERT_EQ(end.sends.ends.size(), 20u);
    for (std::uint32_t index = 0; index < 20; ++index)
        EXPECT_EQ(end.sends.ends[index], (fake_sends::ended{index, refusal::none}));
}

TEST(RocePool, NothingBeginsWithoutMemoryAndNothingIsLost)
{
    at_requester end({}, 0);
    end.post_write(1);
    EXPECT_TRUE(end.sent_packets().empty());
    EXPECT_EQ(end.ours.entries_read.value(), 0u);
    EXPECT_FALSE(end.ours.failed());
    EXPECT_TRUE(end.sends.ends.empty());
}

TEST(RocePool, AReadWithoutMemoryIsAsIfItWereLost)
{
    at_responder end({}, of_4_answers);
    for (std::uint32_t asked = 0; asked < 4; ++asked)
        end.ask(weftio::net::roce_opcode::rc_read_request, responding::first + asked, 0, dma(8));
    EXPECT_EQ(end.ours.executed.value(), 3u);
    EXPECT_EQ(end.ours.ignored.value(), 1u);
    EXPECT_EQ(end.answered().size(), 3u);
    end.ask(weftio::net::roce_opcode::rc_read_request, responding::first + 3, 0, dma(8));
    EXPECT_EQ(end.answered().size(), 1u);
    end.ours.rest();
    EXPECT_EQ(end.shared.pool.in_use(), 0u);
}

TEST(RocePool, AWriteNeedsNoMemoryForItsAnswer)
{
    at_responder end({}, 0);
    end.ask(weftio::net::roce_opcode::rc_write_only, responding::first, 8);
    end.ask(weftio::net::roce_opcode::rc_read_request, responding::first + 1, 0, dma(8));
    end.ask(weftio::net::roce_opcode::rc_write_only, responding::first + 1, 8);
    EXPECT_EQ(end.answered(), responding::answers{responding::ack(responding::first + 1, 2)});
    EXPECT_EQ(end.ours.ignored.value(), 1u);
}

TEST(RocePool, AnAtomicWithoutMemoryForItsResultIsNotExecuted)
{
    at_responder end({}, of_4_answers);
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, end.memory.data(), sizeof before);
    end.ask(weftio::net::roce_opcode::rc_fetch_add, responding::first, 0,
            [](weftio::net::roce_headers& headers) { headers.swap_or_add = 5; });
    std::memcpy(&after, end.memory.data(), sizeof after);
    EXPECT_EQ(after, before);
    EXPECT_EQ(end.ours.ignored.value(), 1u);
    EXPECT_TRUE(end.answered().empty());
}

TEST(RocePool, ResultsOfAtomicsStayUntilTheConnectionEnds)
{
    at_responder end({.most_reads_of_peer = 4});
    end.ask(weftio::net::roce_opcode::rc_write_only, responding::first, 8);
    end.ask(weftio::net::roce_opcode::rc_fetch_add, responding::first + 1);
    EXPECT_EQ(end.answered().size(), 2u) << "an acknowledge that stood alone, and the result";
    end.ours.rest();
    EXPECT_EQ(end.shared.pool.in_use(), 64u) << "4 results";
    end.ask(weftio::net::roce_opcode::rc_fetch_add, responding::first + 1);
    EXPECT_EQ(end.answered().size(), 1u);
    end.ours.stop();
    end.ours.rest();
    EXPECT_EQ(end.shared.pool.in_use(), 0u);
}

} // namespace roce_ends
