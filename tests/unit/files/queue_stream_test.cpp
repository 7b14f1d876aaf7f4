// Files read into memory that the CPU does not see, and written from it: a device's copy engine carries the bytes on.
#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <random>
#include <thread>

#include "queue_fixture.hpp"
#include "unit/device/fake_gpu.hpp"

namespace weftio::test {

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class FileLane : public testing::Test {
 public:
    ~FileLane() override { copies.fail(); } // what is still under way must not be waited for

 protected:
    static constexpr std::size_t bytes = 1 << 20;

    FileLane() { fill(scratch, content); }
    void read(std::size_t offset, std::size_t at, std::size_t count, weftio_u32 flags = 0) const
    {
        ASSERT_EQ(weftio_dev_file_read(queue.handle(), one.key(), offset, there.buffer(), at, count, flags),
                  WEFTIO_DEV_OK);
    }
    void write(std::size_t offset, std::size_t at, std::size_t count, weftio_u32 flags = 0) const
    {
        ASSERT_EQ(weftio_dev_file_write(queue.handle(), one.key(), offset, there.buffer(), at, count, flags),
                  WEFTIO_DEV_OK);
    }
    void commit() const { weftio_dev_file_commit(queue.handle()); }
    /// Turns until `condition`, while copies complete.
    template <class Condition>
    bool with_turns(Condition&& condition, bool complete_all = true)
    {
        return eventually([&] {
            queue.turn();
            if (complete_all && copies.batches_under_way())
                copies.complete_one();
            return condition();
        });
    }
    std::uint64_t done() const { return queue.counters().read + queue.counters().written; }

    file_engine engine{{.threads = 2, .mode = engine_mode::inline_worker}};
    device cpu = device::open("cpu");
    std::shared_ptr<fake_gpu> gpu = std::make_shared<fake_gpu>();
    slow_copies& copies = *gpu->copies;
    const scratch_file scratch;
    std::vector<std::byte> content = pattern(bytes, 9);
    std::optional<file> file_{std::in_place, engine, scratch.descriptor()};
    file& one = *file_;
    file_queue queue{engine, cpu, {.entries = 64}};
    fake_gpu_memory there{engine, gpu, bytes};
};

TEST_F(FileLane, MovesWhatPreadAndPwriteDo)
{
    std::minstd_rand random(3);
    for (unsigned step = 0; step < 200; ++step) {
        const std::size_t count = 1 + random() % (random() % 8 ? 5000 : 400'000);
        const std::size_t offset = random() % (bytes - count), at = random() % (bytes - count);
        if (random() % 2) {
            read(offset, at, count, WEFTIO_DEV_FILE_FENCE);
            std::memcpy(&there.model[at], &content[offset], count);
        } else {
            write(offset, at, count, WEFTIO_DEV_FILE_FENCE);
            std::memcpy(&content[offset], &there.model[at], count);
        }
        commit();
        ASSERT_TRUE(with_turns([&] { return done() + 32 > step; }));
    }
    ASSERT_TRUE(with_turns([&] { return done() == 200; }));
    EXPECT_TRUE(there.as_modelled());
    std::vector<std::byte> in_file(bytes);
    ASSERT_EQ(pread(scratch.descriptor(), in_file.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(in_file == content);
    EXPECT_EQ(engine.counters().of(file_fall::no_direct), 200u);
}

/// Latency, size and GPU, as for operations of the host.
TEST(FileLaneStatistics, AreMeasuredAsTheConfigurationSays)
{
    const scratch_file configuration, scratch;
    const std::string_view wanted = R"({"profile": {"cufile_stats": 3}})";
    ASSERT_EQ(pwrite(configuration.descriptor(), wanted.data(), wanted.size(), 0), static_cast<ssize_t>(wanted.size()));
    fill(scratch, pattern(8192, 2));
    const file_engine engine{{.configuration = configuration.path(), .mode = engine_mode::inline_worker}};
    const auto gpu = std::make_shared<fake_gpu>(2);
    const device cpu = device::open("cpu");
    const file one(engine, scratch.descriptor());
    file_queue queue(engine, cpu, {.entries = 64});
    const fake_gpu_memory there(engine, gpu, 8192);
    ASSERT_EQ(weftio_dev_file_read(queue.handle(), one.key(), 0, there.buffer(), 0, 5000, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_file_commit(queue.handle()), WEFTIO_DEV_OK);
    ASSERT_TRUE(eventually([&] {
        queue.turn();
        if (gpu->copies->batches_under_way())
            gpu->copies->complete_one();
        return queue.counters().read == 1;
    }));
    const storage::live_statistics& page = detail::internals::share(engine)->counts.page();
    const auto way = static_cast<std::size_t>(engine.has(file_way::uring) ? file_way::uring : file_way::posix);
    EXPECT_GT(page.ways[way].latency_ns[0], 0u);
    EXPECT_EQ(page.sizes[way][0][13], 1u) << "4096 to 8191";
    EXPECT_EQ(page.gpus[2][way].operations, 1u);
    EXPECT_EQ(page.gpus[2][way].bytes, 5000u);
    gpu->copies->fail(); // what is still under way must not be waited for
}

TEST_F(FileLane, AReadIsDoneWhenItsCopyHasLanded)
{
    read(0, 0, 5000);
    commit();
    ASSERT_TRUE(with_turns([&] { return copies.batches_under_way(); }, false));
    for (unsigned each = 0; each < 10; ++each)
        queue.turn();
    EXPECT_EQ(done(), 0u);
    copies.complete_all();
    queue.turn();
    EXPECT_EQ(done(), 1u);
}

/// It arrives in a staging buffer when nobody may write to the memory any more.
TEST_F(FileLane, AReadIntoARegionThatHasEndedIsCopiedNowhere)
{
    const auto unfinished = std::make_shared<devices::unfinished_copies>();
    fake_gpu_memory other(engine, gpu, bytes, unfinished);
    ASSERT_EQ(weftio_dev_file_read(queue.handle(), one.key(), 0, other.buffer(), 0, 5000, 0), WEFTIO_DEV_OK);
    commit(); // begins it
    other.end();
    EXPECT_TRUE(unfinished->ended());
    ASSERT_TRUE(with_turns([&] { return queue.failed(); }, false));
    EXPECT_TRUE(copies.copies.empty());
    weftio_s64 result = 0;
    (void)weftio_dev_file_result(queue.handle(), 0, &result);
    EXPECT_EQ(result, -EFAULT);
}

TEST_F(FileLane, AWriteFromARegionThatHasEndedIsLeftToItsCopy)
{
    const auto unfinished = std::make_shared<devices::unfinished_copies>();
    fake_gpu_memory other(engine, gpu, bytes, unfinished);
    ASSERT_EQ(weftio_dev_file_write(queue.handle(), one.key(), 0, other.buffer(), 0, 5000, 0), WEFTIO_DEV_OK);
    commit();
    ASSERT_TRUE(with_turns([&] { return copies.batches_under_way(); }, false));
    other.end();
    EXPECT_FALSE(unfinished->ended());
    copies.complete_all();
    EXPECT_TRUE(unfinished->ended());
    EXPECT_TRUE(with_turns([&] { return queue.counters().written == 1; }));
}

TEST_F(FileLane, AShortReadCopiesWhatTheFileHas)
{
    read(bytes - 100, 0, 5000);
    commit();
    ASSERT_TRUE(with_turns([&] { return done() == 1; }));
    std::memcpy(there.model.data(), &content[bytes - 100], 100);
    EXPECT_TRUE(there.as_modelled());
    weftio_s64 result = 0;
    EXPECT_EQ(weftio_dev_file_result(queue.handle(), 0, &result), WEFTIO_DEV_OK);
    EXPECT_EQ(result, 100);
}

/// More than all slots hold.
TEST_F(FileLane, GoesOnAsSlotsBecomeFree)
{
    for (unsigned each = 0; each < 40; ++each)
        read(0, 0, bytes);
    commit();
    ASSERT_TRUE(with_turns([&] { return done() == 40; }));
    std::memcpy(there.model.data(), content.data(), bytes);
    EXPECT_TRUE(there.as_modelled());
}

TEST_F(FileLane, ADeviceThatFailsFailsTheEntry)
{
    read(0, 0, 5000);
    read(0, 0, 5000, WEFTIO_DEV_FILE_FENCE);
    commit();
    ASSERT_TRUE(with_turns([&] { return copies.batches_under_way(); }, false));
    copies.fail();
    ASSERT_TRUE(with_turns([&] { return queue.counters().flushed == 1; }, false));
    EXPECT_EQ(queue.counters().failed, 1u);
    weftio_s64 result = 0;
    EXPECT_EQ(weftio_dev_file_result(queue.handle(), 0, &result), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(result, -EIO);
}

TEST_F(FileLane, ARegionEndsWhenNothingIsCopiedThereAnyMore)
{
    read(0, 0, 5000);
    commit();
    ASSERT_TRUE(with_turns([&] { return copies.batches_under_way(); }, false));
    std::future<void> ending = std::async(std::launch::async, [&] { there.end(); });
    EXPECT_EQ(ending.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    auto& backend = dynamic_cast<nic::soft::soft_files&>(*detail::internals::backend(engine));
    backend.engine().between_turns([&] { copies.complete_all(); });
    ending.get();
}

TEST_F(FileLane, AFileEndsWhenNothingIsReadFromItAnyMore)
{
    read(0, 0, 5000);
    commit();
    ASSERT_TRUE(with_turns([&] { return copies.batches_under_way(); }, false));
    std::future<void> ending = std::async(std::launch::async, [&] { file_.reset(); });
    EXPECT_EQ(ending.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    auto& backend = dynamic_cast<nic::soft::soft_files&>(*detail::internals::backend(engine));
    backend.engine().between_turns([&] { copies.complete_all(); });
    ending.get();
}

} // namespace

} // namespace weftio::test
