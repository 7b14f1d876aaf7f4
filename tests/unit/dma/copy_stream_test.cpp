// Copies to and from memory that the CPU does not see: a device's copy engine does them, when the test says so.
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "dma_fixture.hpp"
#include "nic/soft/dma/soft_dma.hpp"
#include "unit/device/fake_gpu.hpp"

namespace weftio::test {

using testing::HasSubstr;

namespace {

class Lane : public testing::Test {
 public:
    ~Lane() override { copies.fail(); } // what is still under way must not be waited for

 protected:
    static constexpr std::size_t bytes = 4096;
    static constexpr std::uint32_t entries = 64, few = 4; ///< of a turn
    /// The most that a turn of few entries fills or copies within a device.
    static constexpr std::size_t part =
        few * nic::soft::copy_work::bytes_by_stream * nic::soft::copy_work::bytes_within_per_byte;

    void copy(const weftio_dev_buf& from, const weftio_dev_buf& to, std::size_t count = bytes) const
    {
        ASSERT_EQ(weftio_dev_dma_memcpy(queue.handle(), from, 0, to, 0, count, 0), WEFTIO_DEV_OK);
    }
    /// Without a turn: in inline mode a push would be one.
    void commit(const dma_queue& which) const
    {
        weftio_dev_send_queue_commit_strong(&which.handle()->queue);
        weftio_dev_send_doorbell(&which.handle()->queue.ring);
    }
    void commit() const { commit(queue); }
    /// As a thread of the engine runs them.
    void turn(std::uint32_t most = entries)
    {
        soft.engine().between_turns([&] {
            soft.queues().turn(most);
            soft.streams().end_batches();
        });
    }
    std::uint64_t copied() const { return queue.counters().copied; }
    void expect_all_counted() const
    {
        const dma_counters now = queue.counters();
        EXPECT_EQ(now.enqueued, now.copied + now.skipped + now.failed + now.flushed);
    }

    dma_engine engine{{.mode = engine_mode::inline_worker}};
    nic::soft::soft_dma& soft = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
    device cpu = device::open("cpu");
    std::shared_ptr<fake_gpu> gpu = std::make_shared<fake_gpu>();
    slow_copies& copies = *gpu->copies;
    dma_queue queue{engine, cpu, {.entries = 64}};
    modelled_memory here{engine, cpu, bytes};
    fake_gpu_memory there{engine, gpu, bytes}, beside{engine, gpu, bytes};
};

} // namespace

/// Random copies and fills, at random addresses, that complete at random times.
TEST_F(Lane, CopiesAndFillsWhatAModelDoes)
{
    std::minstd_rand random(11);
    std::vector<std::byte>* models[] = {&here.model, &there.model, &beside.model};
    auto buffer = [&](std::size_t which) {
        return which == 0 ? here.buffer() : which == 1 ? there.buffer() : beside.buffer();
    };
    for (unsigned step = 0; step < 3000; ++step) {
        const std::size_t to = random() % 3, from = (to + 1 + random() % 2) % 3;
        const std::size_t count = 1 + random() % 500, at = random() % (bytes - count),
                          source = random() % (bytes - count);
        if (random() % 3 == 0) {
            const auto pattern = static_cast<weftio_u32>(random() * 2654435761u);
            ASSERT_EQ(weftio_dev_dma_fill(queue.handle(), pattern, buffer(to), at, count, 0), WEFTIO_DEV_OK);
            for (std::size_t each = 0; each < count; ++each)
                std::memcpy(&(*models[to])[at + each], reinterpret_cast<const char*>(&pattern) + each % 4, 1);
        } else {
            ASSERT_EQ(weftio_dev_dma_memcpy(queue.handle(), buffer(from), source, buffer(to), at, count, 0),
                      WEFTIO_DEV_OK);
            std::memcpy(&(*models[to])[at], &(*models[from])[source], count);
        }
        if (random() % 4 != 0 && step % 40 != 39)
            continue;
        commit();
        while (copied() <= step) {
            turn();
            if (random() % 2 == 0 && copies.batches_under_way())
                copies.complete_one();
        }
    }
    EXPECT_TRUE(here.as_modelled() && there.as_modelled() && beside.as_modelled());
    expect_all_counted();
}

TEST_F(Lane, CompletesWhenACopyHasLanded)
{
    copy(here.buffer(), there.buffer());
    commit();
    turn();
    turn();
    EXPECT_EQ(copied(), 0u);
    EXPECT_EQ(weftio_dev_dma_poll_completion(queue.handle(), 0, nullptr), WEFTIO_DEV_NOT_FOUND);
    copies.complete_all();
    turn();
    EXPECT_EQ(copied(), 1u);
    EXPECT_EQ(queue.counters().copied_bytes, bytes);
}

/// The copy engine keeps the order of its own; what the CPU copies waits for it.
TEST_F(Lane, KeepsTheOrder)
{
    copy(here.buffer(), there.buffer());
    copy(there.buffer(), beside.buffer());
    copy(here.buffer(), here.buffer(), 1); // by the CPU
    copy(beside.buffer(), here.buffer());
    commit();
    turn();
    EXPECT_EQ(copies.copies.size(), 2u);
    EXPECT_EQ(copies.marks, (std::vector<std::uint32_t>{1})); // one batch
    copies.complete_all();
    turn();
    turn();
    EXPECT_EQ(copied(), 3u);
    EXPECT_EQ(copies.copies.size(), 1u);
}

TEST_F(Lane, GathersWhatComesWhileBatchesAreUnderWay)
{
    for (int batch = 0; batch < 6; ++batch) {
        copy(here.buffer(), there.buffer());
        commit();
        turn();
    }
    EXPECT_EQ(copies.marks.size(), 4u);
    EXPECT_EQ(copies.copies.size(), 4u);
    copies.complete_one();
    turn();
    EXPECT_EQ(copies.marks.size(), 5u);
    EXPECT_EQ(copies.copies.size(), 5u); // the last two in one batch
}

TEST_F(Lane, LongCopiesAreDoneInParts)
{
    fake_gpu_memory one(engine, gpu, 2 * part + 100);
    fake_gpu_memory other(engine, gpu, 2 * part + 100);
    for (std::size_t at = 0; at < one.model.size(); ++at)
        one.model[at] = std::byte{static_cast<std::uint8_t>(1 + at % 4)};
    dma_queue neighbor(engine, cpu, {.entries = 64});
    copy(here.buffer(), there.buffer(), 3); // so that the part behind it ends at an odd byte
    ASSERT_EQ(weftio_dev_dma_fill(queue.handle(), 0x04030201, one.buffer(), 0, one.model.size(), 0), WEFTIO_DEV_OK);
    copy(one.buffer(), other.buffer(), one.model.size());
    ASSERT_EQ(weftio_dev_dma_memcpy(neighbor.handle(), here.buffer(), 0, there.buffer(), 0, 100, 0), WEFTIO_DEV_OK);
    commit();
    commit(neighbor);
    turn(few);
    EXPECT_EQ(copies.copies.size(), 3u); // three bytes, a part, and the neighbor's
    copies.complete_all();
    turn(few);
    EXPECT_EQ(neighbor.counters().copied, 1u);
    EXPECT_EQ(copied(), 1u);
    for (int more = 0; more < 8; ++more) {
        if (copies.batches_under_way())
            copies.complete_all();
        turn(few);
    }
    EXPECT_EQ(copied(), 3u);
    EXPECT_TRUE(one.as_modelled());
    other.model = one.model;
    EXPECT_TRUE(other.as_modelled());
}

/// What crosses a bus takes longer.
TEST_F(Lane, PartsThatCrossABusAreShorter)
{
    fake_gpu_memory one(engine, gpu, part);
    modelled_memory other(engine, cpu, part);
    copy(one.buffer(), other.buffer(), part);
    commit();
    turn(few);
    ASSERT_EQ(copies.copies.size(), 1u);
    EXPECT_EQ(copies.copies[0].shape.bytes, part / nic::soft::copy_work::bytes_within_per_byte);
    copies.fail(); // the regions end before the fixture does
}

/// Whoever ends a region may free its bytes next.
TEST_F(Lane, ARegionThatEndsWaitsForItsCopies)
{
    const weftio_dev_buf stale = there.buffer();
    copy(here.buffer(), there.buffer());
    commit();
    turn();
    std::future<void> ended = std::async(std::launch::async, [&] { there.end(); });
    EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    copies.complete_all();
    ended.get();
    turn();
    EXPECT_EQ(copied(), 1u);
    copy(here.buffer(), stale);
    commit();
    turn();
    EXPECT_TRUE(queue.failed());
    EXPECT_TRUE(copies.copies.empty());
}

TEST_F(Lane, ADeviceThatFailsFailsWhatHasNotLanded)
{
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(queue, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    copy(here.buffer(), there.buffer());
    commit();
    turn();
    copies.complete_all();
    for (int more = 0; more < 2; ++more) {
        copy(here.buffer(), there.buffer());
        commit();
        turn();
    }
    copies.fail();
    copy(here.buffer(), there.buffer());
    commit();
    turn();
    const dma_counters now = queue.counters();
    EXPECT_EQ(now.copied, 1u);
    EXPECT_EQ(now.failed, 1u);
    EXPECT_EQ(now.flushed, 2u);
    expect_all_counted();
    EXPECT_EQ(weftio_dev_dma_status(queue.handle()), WEFTIO_DEV_QUEUE_ERROR);
    progress.progress();
    ASSERT_EQ(reported.size(), 1u);
    EXPECT_EQ(reported[0].position, 1u);
    EXPECT_THAT(reported[0].text, HasSubstr("failed; restart the process"));
    queue.reset();
    copy(here.buffer(), here.buffer(), 1); // the CPU goes on
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
    copy(here.buffer(), there.buffer());
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_F(Lane, ADeviceThatFailsAmidACopyFailsIt)
{
    fake_gpu_memory one(engine, gpu, 2 * part);
    ASSERT_EQ(weftio_dev_dma_fill(queue.handle(), 0, one.buffer(), 0, 2 * part, 0), WEFTIO_DEV_OK);
    copy(here.buffer(), there.buffer());
    commit();
    turn(few);
    copies.fail();
    turn(few);
    turn(few);
    EXPECT_EQ(queue.counters().failed, 1u);
    EXPECT_EQ(queue.counters().flushed, 1u);
    expect_all_counted();
    EXPECT_EQ(weftio_dev_dma_status(queue.handle()), WEFTIO_DEV_QUEUE_ERROR);
}

/// A part of a copy that will not go on is under way: its completion, which says that the bytes are left alone, waits.
TEST_F(Lane, ACopyThatFailsHalfDoneCompletesWhenItsPartHasLanded)
{
    fake_gpu_memory one(engine, gpu, 2 * part);
    auto gone = std::make_unique<fake_gpu_memory>(engine, gpu, 2 * part);
    copy(gone->buffer(), one.buffer(), 2 * part);
    commit();
    turn(few);
    const std::uint32_t key = weftio_swap32(gone->buffer().lkey_be);
    std::future<void> ended = std::async(std::launch::async, [&] { gone->end(); });
    while (soft.keys().find(key))
        std::this_thread::yield();
    turn(few);
    EXPECT_EQ(queue.counters().failed, 1u);
    EXPECT_EQ(weftio_dev_dma_poll_completion(queue.handle(), 0, nullptr), WEFTIO_DEV_NOT_FOUND);
    copies.complete_all();
    turn(few);
    EXPECT_EQ(weftio_dev_dma_poll_completion(queue.handle(), 0, nullptr), WEFTIO_DEV_QUEUE_ERROR);
    ended.get();
}

/// The engine makes a change for whoever waits for it, by what lies on the stack of that thread.
TEST(EngineInATurn, OutlivesAThreadThatIsCancelledWhileItWaits)
{
    const device cpu = device::open("cpu");
    auto gpu = std::make_shared<fake_gpu>();
    const dma_engine engine;
    dma_queue queue(engine, cpu);
    fake_gpu_memory there(engine, gpu, 64);
    std::promise<void> begun, go_on;
    gpu->copies->before_copy = [&] {
        begun.set_value();
        go_on.get_future().wait();
    };
    ASSERT_TRUE(queue.submit(dma_copy{.source = there.buffer(), .destination = there.buffer(), .bytes = 1}));
    begun.get_future().wait();
    pthread_t asks{};
    auto ask = [](void* context) -> void* { return static_cast<dma_queue*>(context)->failed() ? context : nullptr; };
    ASSERT_EQ(pthread_create(&asks, nullptr, ask, &queue), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // it waits for the turn to end
    pthread_cancel(asks);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(pthread_tryjoin_np(asks, nullptr), EBUSY); // its stack is still there
    go_on.set_value();
    pthread_join(asks, nullptr);
    gpu->copies->fail();
    EXPECT_TRUE(eventually([&] { return queue.failed(); }));
}

TEST_F(Lane, AResetWaitsForWhatIsUnderWay)
{
    copy(here.buffer(), there.buffer());
    commit();
    turn();
    copy(here.buffer(), there.buffer());
    commit();
    std::future<void> landing = std::async(std::launch::async, [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        soft.engine().between_turns([&] { copies.complete_all(); });
    });
    queue.reset();
    landing.get();
    const dma_counters now = queue.counters();
    EXPECT_EQ(now.copied, 1u);
    EXPECT_EQ(now.flushed, 1u);
    expect_all_counted();
}

} // namespace weftio::test
