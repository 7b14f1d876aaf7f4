// Long copies are done in parts, and a region may end between two of them.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "core/undying.hpp"
#include "dma_fixture.hpp"
#include "nic/soft/dma/soft_dma.hpp"

namespace weftio::test {

namespace {

/// A long copy at an engine whose turns are those that a thread would run.
class LongCopy : public testing::Test {
 protected:
    static constexpr std::uint32_t entries = 64; ///< of a turn
    static constexpr std::uint64_t part = entries * nic::soft::copy_work::bytes_of_an_entry;

    LongCopy()
    {
        weftio_dev_dma_memcpy(queue.handle(), from.buffer(), 0, to->buffer(), 0, 3 * part, 0);
        weftio_dev_dma_memcpy(queue.handle(), from.buffer(), 0, to->buffer(), 0, 100, 0);
        weftio_dev_dma_memcpy(neighbor.handle(), from.buffer(), 0, beside.buffer(), 0, 100, 0);
        for (const dma_queue* each : {&queue, &neighbor}) { // no commit: in inline mode that would run the engine
            weftio_dev_send_queue_commit_strong(&each->handle()->queue);
            weftio_dev_send_doorbell(&each->handle()->queue.ring);
        }
    }
    void turn() { soft.queues().turn(entries); }

    dma_engine engine{{.mode = engine_mode::inline_worker}};
    nic::soft::soft_dma& soft = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
    device cpu = device::open("cpu");
    modelled_memory from{engine, cpu, 3 * part}, beside{engine, cpu, 4096};
    std::optional<modelled_memory> to{std::in_place, engine, cpu, 3 * part};
    dma_queue queue{engine, cpu}, neighbor{engine, cpu};
};

} // namespace

TEST_F(LongCopy, DoesNotHoldUpANeighbor)
{
    turn();
    EXPECT_EQ(neighbor.counters().copied, 1u);
    EXPECT_EQ(queue.counters().copied, 0u);
    turn();
    EXPECT_EQ(queue.counters().copied, 0u);
    turn();
    turn();
    EXPECT_EQ(queue.counters().copied, 2u);
    to->model = from.model;
    EXPECT_TRUE(to->as_modelled());
}

/// What lies in rings of others must not make a call of an inline worker long.
TEST_F(LongCopy, IsNotDoneAtOnceByAWorkerEither)
{
    EXPECT_NE(engine.turn(), 0u);
    EXPECT_EQ(neighbor.counters().copied, 1u);
    EXPECT_EQ(queue.counters().copied, 0u);
    EXPECT_EQ(weftio_dev_dma_wait(queue.handle(), 1, 0), WEFTIO_DEV_OK); // each look is a turn
}

TEST_F(LongCopy, FailsWhenItsRegionEndsMeanwhile)
{
    turn();
    to.reset();
    turn();
    EXPECT_TRUE(queue.failed());
    EXPECT_EQ(queue.counters().failed, 1u);
    EXPECT_EQ(queue.counters().flushed, 1u);
    EXPECT_EQ(weftio_dev_dma_status(queue.handle()), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_F(LongCopy, GoesOnWhenAnotherRegionEndsMeanwhile)
{
    turn();
    std::optional<modelled_memory> stranger(std::in_place, engine, cpu, 4096);
    stranger.reset();
    for (int more = 0; more < 3; ++more)
        turn();
    EXPECT_EQ(queue.counters().copied, 2u);
}

TEST_F(LongCopy, IsFlushedWithItsQueue)
{
    turn();
    queue.reset();
    EXPECT_EQ(queue.counters().flushed, 2u);
    EXPECT_EQ(queue.counters().copied, 0u);
    weftio_dev_dma_fill(queue.handle(), 0, beside.buffer(), 200, 100, 0);
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
    std::memcpy(&beside.model[0], &from.model[0], 100); // by the neighbor
    std::memset(&beside.model[200], 0, 100);
    EXPECT_TRUE(beside.as_modelled()); // nothing is left of the copy that was under way
}

} // namespace weftio::test
