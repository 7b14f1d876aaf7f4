// Files, as their users have them: synchronous reads and writes of the host's memory.
#include "weftio/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "scratch_file.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

TEST(File, ReadsWhatWasWritten)
{
    const scratch_file scratch;
    const file_engine engine;
    const file file(engine, scratch.descriptor());
    const auto written = pattern(10'000, 1);
    EXPECT_EQ(file.write(written.data(), written.size(), 77).bytes, 10'000);
    std::vector<std::byte> read(10'000);
    const file_result result = file.read(read.data(), read.size(), 77);
    EXPECT_EQ(result.bytes, 10'000);
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.position, 10'077U);
    EXPECT_EQ(read, written);
    EXPECT_TRUE(file.sync().ok());
    EXPECT_TRUE(file.sync(true).ok());
}

TEST(File, EndOfFileIsAShortReadAndNoError)
{
    const scratch_file scratch;
    const file_engine engine;
    const file file(engine, scratch.descriptor());
    const auto written = pattern(1000, 2);
    ASSERT_EQ(file.write(written.data(), written.size(), 0).bytes, 1000);
    std::vector<std::byte> read(4096);
    const file_result result = file.read(read.data(), read.size(), 900);
    EXPECT_EQ(result.bytes, 100);
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.position, 1000U);
    EXPECT_EQ(file.read(read.data(), read.size(), 5000).bytes, 0);
}

TEST(File, CountsEachOperationOnceByItsWay)
{
    const scratch_file scratch;
    const file_engine engine({.only = file_way::posix});
    const file file(engine, scratch.descriptor());
    std::vector<std::byte> bytes(512);
    (void)file.write(bytes.data(), 512, 0);
    (void)file.read(bytes.data(), 512, 0);
    (void)file.read(bytes.data(), 512, 500);
    (void)file.read(static_cast<void*>(nullptr), 512, 0);
    (void)file.sync();
    const file_counters counters = engine.counters();
    const file_way_counters& posix = counters.of(file_way::posix);
    EXPECT_EQ(posix.writes, 1U);
    EXPECT_EQ(posix.write_bytes, 512U);
    EXPECT_EQ(posix.reads, 3U);
    EXPECT_EQ(posix.read_bytes, 524U);
    EXPECT_EQ(posix.read_errors, 1U);
    EXPECT_EQ(posix.syncs, 1U);
    EXPECT_EQ(posix.operations(), 5U);
    EXPECT_EQ(counters.of(file_fall::none), 5U);
    EXPECT_EQ(counters.of(file_way::uring).operations(), 0U);
}

TEST(File, KeepsToTheBufferThatItWasGiven)
{
    const scratch_file scratch;
    const file_engine engine;
    const file file(engine, scratch.descriptor());
    std::vector<std::byte> around(1000, std::byte{7});
    const auto written = pattern(100, 3);
    ASSERT_EQ(file.write(written.data(), 100, 0).bytes, 100);
    const file_buffer buffer(engine, &around[400], 100);
    for (const std::size_t offset :
         {std::size_t{91}, std::size_t{100}, std::size_t{150}, SIZE_MAX, SIZE_MAX - 49, std::size_t{1} << 63}) {
        EXPECT_EQ(file.read(file_memory(buffer, offset), 10, 0).error, EINVAL) << offset;
        EXPECT_EQ(file.write(file_memory(buffer, offset), 10, 0).error, EINVAL) << offset;
    }
    EXPECT_EQ(around, std::vector<std::byte>(1000, std::byte{7}));
    EXPECT_EQ(file.read(file_memory(buffer, 90), 10, 0).bytes, 10);
    EXPECT_TRUE(std::equal(&around[490], &around[500], written.begin()));
    EXPECT_THROW(file_buffer(engine, around.data(), SIZE_MAX), error);
}

TEST(File, RefusesWhatIsNoFile)
{
    const file_engine engine;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_THROW(file(engine, ends[0]), error);
    const scratch_file scratch;
    const int path_only = open(scratch.path().c_str(), O_PATH | O_CLOEXEC);
    ASSERT_GE(path_only, 0);
    EXPECT_THROW(file(engine, path_only), error);
    close(path_only);
    close(ends[0]);
    close(ends[1]);
    EXPECT_THROW(file(engine, ends[0]), error);
    EXPECT_THROW(file(engine, -1), error);
}

TEST(File, AKeyNamesTheFileWhileItLives)
{
    const scratch_file scratch;
    const file_engine engine;
    std::uint32_t key = 0;
    {
        const file file(engine, scratch.descriptor());
        key = file.key();
        EXPECT_NE(key, 0U);
        EXPECT_NE(weftio::file(engine, scratch.descriptor()).key(), key);
    }
    EXPECT_NE(file(engine, scratch.descriptor()).key(), key);
}

TEST(FileEngine, RefusesOptionsThatCannotBe)
{
    EXPECT_THROW(file_engine({.depth = 4097}), error);
    EXPECT_THROW(file_engine({.threads = 257}), error);
    EXPECT_THROW(file_engine({.part_bytes = 5000}), error);
    EXPECT_THROW(file_engine({.only = file_way::direct}), error);
}

} // namespace

} // namespace weftio::test
