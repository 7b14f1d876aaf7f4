// What rings register with the kernel: when, for how long, and that nobody notices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "patience.hpp"
#include "queue_fixture.hpp"
#include "refused_call.hpp"
#include "storage/uring_tables.hpp"
#include "weftio/error.hpp"
#include "weftio/log.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;
using storage::uring_tables;

class Registered : public testing::Test {
 protected:
    static constexpr std::size_t block = 4096, blocks = 64, bytes = block * blocks;

    void SetUp() override
    {
        if (!engine.has(file_way::uring))
            GTEST_SKIP() << "io_uring is refused here";
        fill(scratch, content);
        direct = open(scratch.path().c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
        if (direct < 0)
            GTEST_SKIP() << "no O_DIRECT in /tmp";
    }
    void TearDown() override { close(direct); }
    /// Reads all blocks, 16 at a time, to `memory`. @return whether each was read
    bool read_all(file_batch& batch, const file& file, std::byte* memory)
    {
        std::vector<file_operation> asked;
        std::array<file_event, 16> events;
        bool good = true;
        for (std::size_t at = 0; at < bytes; at += block) {
            asked.push_back({file_operation::kind::read, &file, file_memory(memory + at), block, at, nullptr});
            if (asked.size() != events.size())
                continue;
            good = batch.submit(asked) && batch.status(events.size(), events, 10s) == events.size() && good;
            for (const file_event& each : events)
                good = good && each.result.bytes == static_cast<std::int64_t>(block);
            asked.clear();
        }
        return good;
    }
    std::uint64_t files() const { return rings.files; }
    std::uint64_t buffers() const { return rings.buffers; }
    bool is_content() const { return std::memcmp(memory, content.data(), bytes) == 0; }

    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(bytes, 4);
    int direct = -1;
    const file_engine engine;
    const storage::live_statistics::of_rings& rings = detail::internals::share(engine)->counts.rings();
    std::vector<std::byte> room = std::vector<std::byte>(bytes + block);
    std::byte* const memory = room.data() + (block - reinterpret_cast<std::uintptr_t>(room.data()) % block);
    file_batch batch{engine, 16};
};

TEST_F(Registered, AFileOnceItIsUsedOftenAndNoLongerThanItLasts)
{
    std::optional<file> one(std::in_place, engine, scratch.descriptor());
    EXPECT_TRUE(read_all(batch, *one, memory));
    EXPECT_EQ(files(), 0u);
    EXPECT_TRUE(read_all(batch, *one, memory));
    EXPECT_EQ(files(), 1u);
    EXPECT_TRUE(is_content());
    one.reset();
    EXPECT_EQ(files(), 0u);
}

/// A lock of flock() lasts as long as anything has the file open.
TEST_F(Registered, NoFileStaysOpenBehindItsDescriptor)
{
    const int brief = open(scratch.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(brief, LOCK_EX), 0);
    {
        const file one(engine, brief);
        for (unsigned each = 0; each < 2; ++each)
            EXPECT_TRUE(read_all(batch, one, memory));
        ASSERT_EQ(files(), 1u);
    }
    EXPECT_NE(flock(scratch.descriptor(), LOCK_EX | LOCK_NB), 0);
    close(brief);
    EXPECT_TRUE(eventually([&] { return flock(scratch.descriptor(), LOCK_EX | LOCK_NB) == 0; }));
}

TEST_F(Registered, ADescriptorsNumberMayBeAnotherFilesNext)
{
    const int number = dup(scratch.descriptor());
    const scratch_file other;
    const auto others = pattern(bytes, 9);
    fill(other, others);
    for (unsigned round = 0; round < 4; ++round) {
        ASSERT_EQ(dup2(round % 2 ? other.descriptor() : scratch.descriptor(), number), number);
        const file one(engine, number);
        for (unsigned each = 0; each < 2; ++each)
            EXPECT_TRUE(read_all(batch, one, memory));
        EXPECT_EQ(files(), 1u);
        EXPECT_EQ(std::memcmp(memory, round % 2 ? others.data() : content.data(), bytes), 0);
    }
    close(number);
}

TEST_F(Registered, SomeOfMoreFilesThanATableHas)
{
    std::vector<file> many;
    for (unsigned each = 0; each < uring_tables::slots; ++each)
        many.emplace_back(engine, scratch.descriptor());
    for (const file& each : many) {
        std::memset(memory, 0, bytes);
        EXPECT_TRUE(read_all(batch, each, memory));
        EXPECT_TRUE(is_content());
    }
    EXPECT_GT(files(), uring_tables::slots / 4);
    EXPECT_LE(files(), uring_tables::slots);
    many.clear();
    EXPECT_EQ(files(), 0u);
}

TEST_F(Registered, MemoryOnceItIsUsedAsMuchAsItHasBytes)
{
    const file one(engine, direct);
    {
        const file_buffer buffer(engine, memory, bytes);
        const file_operation first{file_operation::kind::read, &one, file_memory(memory), block, 0, nullptr};
        std::array<file_event, 1> event;
        ASSERT_TRUE(batch.submit({&first, 1}));
        ASSERT_EQ(batch.status(1, event, 10s), 1u);
        EXPECT_EQ(buffers(), 0u);
        EXPECT_TRUE(read_all(batch, one, memory));
        EXPECT_EQ(buffers(), 1u);
        for (unsigned each = 0; each < 3; ++each) {
            std::memset(memory, 0, bytes);
            EXPECT_TRUE(read_all(batch, one, memory));
            EXPECT_TRUE(is_content());
        }
    }
    EXPECT_EQ(buffers(), 0u);
    std::memset(memory, 0, bytes);
    EXPECT_TRUE(read_all(batch, one, memory));
    EXPECT_TRUE(is_content());
}

TEST_F(Registered, NoMemoryThatThePageCacheIsReadInto)
{
    const file one(engine, scratch.descriptor());
    const file_buffer buffer(engine, memory, bytes);
    for (unsigned each = 0; each < 3; ++each)
        EXPECT_TRUE(read_all(batch, one, memory));
    EXPECT_EQ(buffers(), 0u);
}

TEST_F(Registered, AMemoryThatAKernelsDeviceHasToo)
{
    const device cpu = device::open("cpu");
    const weftio::memory allocated = cpu.allocate(bytes, memory_kind::cpu_device);
    const file one(engine, direct);
    const file_buffer buffer(engine, allocated);
    for (unsigned each = 0; each < 2 * blocks; ++each) {
        const file_operation read{file_operation::kind::read, &one, file_memory(buffer, each % blocks * block), block,
                                  each % blocks * block};
        ASSERT_TRUE(batch.submit({&read, 1}));
        file_event event;
        ASSERT_EQ(batch.status(1, {&event, 1}, 10s), 1u);
        ASSERT_EQ(event.result.bytes, static_cast<std::int64_t>(block));
    }
    EXPECT_EQ(buffers(), 1u);
    EXPECT_EQ(std::memcmp(allocated.cpu_address(), content.data(), bytes), 0);
}

TEST_F(Registered, ABufferThatEndsUnderItsReadsDisturbsNone)
{
    const file one(engine, direct);
    std::atomic<bool> stop = false;
    std::thread registers([&] {
        while (!stop) {
            const file_buffer buffer(engine, memory, bytes);
            std::this_thread::sleep_for(200us);
        }
    });
    for (unsigned each = 0; each < 200; ++each) {
        std::memset(memory, 0, bytes);
        EXPECT_TRUE(read_all(batch, one, memory));
        EXPECT_TRUE(is_content());
    }
    stop = true;
    registers.join();
    EXPECT_EQ(buffers(), 0u);
}

/// Between submit() and flush() nothing holds the registration.
TEST_F(Registered, AnIoWhoseRegistrationHasEndedGoesWithoutIt)
{
    storage::tally counts;
    storage::registrations names(counts);
    const auto way = storage::make_uring(4, &names);
    const auto result_of = [&](std::uint64_t memory_name, bool ends) {
        EXPECT_TRUE(way->submit({.what = storage::io::kind::read,
                                 .fd = direct,
                                 .address = memory,
                                 .bytes = bytes,
                                 .tag = 7,
                                 .memory = memory_name}));
        if (ends)
            names.leave_memory(memory_name);
        way->cancel(99); // of no io
        storage::io_done done{};
        while (way->reap({&done, 1}) == 0)
            way->wait(1s);
        EXPECT_EQ(done.tag, 7u);
        return done.result;
    };
    for (unsigned round = 0; round < 3; ++round) {
        const std::uint64_t name = names.enter_memory({memory, bytes}, storage::registrations::owner::program);
        std::memset(memory, 0, bytes);
        EXPECT_EQ(result_of(name, false), static_cast<std::int64_t>(bytes));
        EXPECT_EQ(counts.rings().buffers, 1u);
        EXPECT_EQ(result_of(name, true), static_cast<std::int64_t>(bytes));
        EXPECT_TRUE(is_content());
        EXPECT_EQ(counts.rings().buffers, 0u);
    }
}

/// As where no more memory may be locked, or by Linux 5.18 and older.
TEST_F(Registered, NothingWhereItIsRefusedWhichIsCountedAndSaidOnce)
{
    std::atomic<unsigned> lines = 0;
    set_log_sink([&](log_level, std::string_view line) { lines += line.find("cannot register") != line.npos; });
    where_refused(__NR_io_uring_register, ENOMEM, [&] {
        const file_engine other;
        const auto& refused = detail::internals::share(other)->counts.rings();
        const file one(other, direct);
        const file_buffer buffer(other, memory, bytes);
        file_batch batch(other, 16);
        for (unsigned each = 0; each < 3; ++each)
            EXPECT_TRUE(read_all(batch, one, memory));
        EXPECT_TRUE(is_content());
        EXPECT_EQ(refused.refused, 2u) << "one of files, and one of memory";
        EXPECT_EQ(refused.files, 0u);
        EXPECT_EQ(refused.buffers, 0u);
        EXPECT_EQ(other.counters().of(file_fall::none), 3 * blocks) << "it is no fall";
    });
    set_log_sink({});
    EXPECT_EQ(lines, 1u);
}

TEST_F(Registered, MemoryOfAKernelsRegionToo)
{
    const file_engine inline_engine({.mode = engine_mode::inline_worker});
    const auto& held = detail::internals::share(inline_engine)->counts.rings();
    const device cpu = device::open("cpu");
    const file one(inline_engine, direct);
    file_queue queue(inline_engine, cpu, {.entries = 64});
    {
        const file_bytes region(inline_engine, cpu, bytes);
        for (unsigned each = 0; each < 3 * blocks; ++each) {
            const std::uint64_t at = each % blocks * block;
            ASSERT_EQ(weftio_dev_file_read(queue.handle(), one.key(), at, region.buffer(), at, block, 0),
                      WEFTIO_DEV_OK);
            ASSERT_EQ(weftio_dev_file_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
        }
        EXPECT_EQ(held.files, 1u);
        EXPECT_EQ(held.buffers, 1u);
        EXPECT_TRUE(region.has(content, 0, bytes));
    }
    EXPECT_EQ(held.buffers, 0u);
}

} // namespace

} // namespace weftio::test
