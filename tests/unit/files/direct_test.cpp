// O_DIRECT, bounces, memory that the CPU does not see; what falls, and what strict engines say of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "fleeting_memory.hpp"
#include "near_device.hpp"
#include "scratch_file.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

class Direct : public testing::Test {
 protected:
    static constexpr std::size_t size = 64 * 1024;

    void SetUp() override
    try {
        scratch.emplace(O_DIRECT);
        ASSERT_EQ(ftruncate(scratch->descriptor(), size), 0);
    } catch (const std::runtime_error&) {
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    }
    file_fall fall_of(std::size_t address, std::size_t bytes, std::uint64_t offset, bool write = false)
    {
        const file file(engine, scratch->descriptor());
        EXPECT_TRUE(file.direct());
        const file_result result =
            write ? file.write(memory + address, bytes, offset) : file.read(memory + address, bytes, offset);
        EXPECT_EQ(result.bytes, static_cast<std::int64_t>(bytes));
        return result.fall;
    }

    std::optional<scratch_file> scratch;
    const file_engine engine;
    std::vector<std::byte> room = std::vector<std::byte>(size + 4096);
    std::byte* const memory =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(room.data()) + 4095) / 4096 * 4096);
};

TEST_F(Direct, EachMisalignmentHasItsName)
{
    for (const bool write : {false, true}) {
        EXPECT_EQ(fall_of(0, 8192, 4096, write), file_fall::none);
        EXPECT_EQ(fall_of(0, 8192, 4095, write), file_fall::offset);
        EXPECT_EQ(fall_of(1, 8192, 4096, write), file_fall::address);
        EXPECT_EQ(fall_of(0, 8191, 4096, write), file_fall::size);
        EXPECT_EQ(fall_of(1, 8191, 4095, write), file_fall::offset); // the first of the list
    }
    const file_counters counters = engine.counters();
    EXPECT_EQ(counters.of(file_fall::none), 2U);
    EXPECT_EQ(counters.of(file_fall::offset), 4U);
    EXPECT_EQ(counters.of(file_fall::address), 2U);
    EXPECT_EQ(counters.of(file_fall::size), 2U);
}

TEST_F(Direct, AStrictEngineFailsInsteadOfFalling)
{
    const file_engine strict = [] {
        try {
            return file_engine({.strict = true});
        } catch (const error&) {
            return file_engine({.strict = true, .only = file_way::posix});
        }
    }();
    const file file(strict, scratch->descriptor());
    EXPECT_EQ(file.read(memory, 4096, 0).bytes, 4096);
    const file_result result = file.read(memory, 4096, 100);
    EXPECT_EQ(result.error, ENOTSUP);
    EXPECT_EQ(result.fall, file_fall::offset);
    EXPECT_EQ(result.way, file_way::none);
    EXPECT_EQ(result.bytes, 0);
    EXPECT_EQ(result.position, 100U);
    EXPECT_EQ(file.write(memory + 1, 4096, 0).error, ENOTSUP);
    EXPECT_EQ(strict.counters().of(file_way::none).errors(), 2U);
}

TEST_F(Direct, TheEnvironmentMakesEnginesStrict)
{
    setenv("WEFTIO_FILE_STRICT", "1", 1);
    const bool strict = file_engine({.only = file_way::posix}).options().strict;
    unsetenv("WEFTIO_FILE_STRICT");
    EXPECT_TRUE(strict);
    EXPECT_FALSE(engine.options().strict);
}

TEST_F(Direct, MemoryThatIsNotThereIsEfaultAlsoBehindABounce)
{
    fleeting_memory gone(leaving::unmapped, 8192);
    gone.go();
    const file file(engine, scratch->descriptor());
    EXPECT_EQ(file.read(gone.data(), 4096, 0).error, EFAULT);
    EXPECT_EQ(file.read(gone.data() + 1, 4096, 0).error, EFAULT);
    EXPECT_EQ(file.write(gone.data() + 1, 4096, 0).error, EFAULT);
    EXPECT_EQ(file.read(memory, 4096, 0).bytes, 4096);
}

TEST_F(Direct, TransfersWithoutTheDescriptorsFlagAvoidThePageCacheWhenAsked)
{
    const int plain = open(scratch->path().c_str(), O_RDWR | O_CLOEXEC);
    const file_engine reopening({.part_bytes = 16384, .reopen_direct = true});
    {
        const file file(reopening, plain);
        const auto written = pattern(size, 9);
        std::copy(written.begin(), written.end(), memory);
        EXPECT_EQ(file.write(memory, size, 0).bytes, static_cast<std::int64_t>(size));
        std::fill_n(memory, size, std::byte{0});
        const file_result result = file.read(memory, size, 0);
        EXPECT_EQ(result.fall, file_fall::none);
        EXPECT_TRUE(std::equal(written.begin(), written.end(), memory));
        void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, plain, 0);
        unsigned char cached[size / 4096] = {};
        ASSERT_EQ(mincore(mapped, size, cached), 0);
        munmap(mapped, size);
        EXPECT_EQ(std::count_if(std::begin(cached), std::end(cached), [](unsigned char page) { return page & 1; }), 0);
    }
    close(plain);
}

class Staged : public testing::Test {
 protected:
    ~Staged() override { late_copies::fails = false; }

    const scratch_file scratch;
    const file_engine engine{{.depth = 4, .part_bytes = 16384}};
    const file here{engine, scratch.descriptor()};
    std::vector<std::byte> bytes = pattern(3'000'000, 4);
    const memory device_memory = detail::internals::make_memory(near_block(bytes));
};

TEST_F(Staged, MemoryOfADeviceFallsAndIsStaged)
{
    const auto written = bytes;
    file_result result = here.write(device_memory, bytes.size(), 0);
    EXPECT_EQ(result.bytes, static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(result.fall, file_fall::no_direct);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    result = here.read(file_memory(device_memory, 100), bytes.size() - 100, 100);
    EXPECT_EQ(result.bytes, static_cast<std::int64_t>(bytes.size() - 100));
    EXPECT_TRUE(std::equal(bytes.begin() + 100, bytes.end(), written.begin() + 100));
    EXPECT_EQ(bytes[99], std::byte{0});
}

TEST_F(Staged, BytesBehindTheMemoryAreRefused)
{
    EXPECT_EQ(here.read(file_memory(device_memory, 1), bytes.size(), 0).error, EINVAL);
    EXPECT_EQ(here.read(file_memory(device_memory, bytes.size() + 1), 1, 0).error, EINVAL);
}

TEST_F(Staged, ADeviceThatHasFailedIsAnInputOutputError)
{
    ASSERT_EQ(ftruncate(scratch.descriptor(), 3'000'000), 0);
    late_copies::fails = true;
    const file_result result = here.read(device_memory, bytes.size(), 0);
    EXPECT_EQ(result.error, EIO);
    EXPECT_EQ(result.bytes, 0);
}

TEST_F(Staged, RegisteredMemoryIsFoundByItsAddress)
{
    const file_buffer registered(engine, device_memory);
    EXPECT_EQ(registered.address(), bytes.data());
    EXPECT_EQ(registered.bytes(), bytes.size());
    const file_result result = here.write(file_memory(bytes.data() + 7), 1000, 0); // as a program with a CUDA pointer
    EXPECT_EQ(result.fall, file_fall::no_direct);
    EXPECT_EQ(here.write(file_memory(registered, 7), 1000, 0).fall, file_fall::no_direct);
    EXPECT_EQ(here.write(file_memory(registered, 7), bytes.size(), 0).error, EINVAL);
    EXPECT_THROW(file_buffer(engine, bytes.data() + 100, 10), error);
    EXPECT_THROW(file_buffer(engine, bytes.data() - 100, 101), error);
    EXPECT_NO_THROW(file_buffer(engine, bytes.data() - 100, 100));
}

TEST_F(Staged, ABufferThatHasEndedIsOrdinaryMemoryAgain)
{
    {
        const file_buffer registered(engine, device_memory);
    }
    EXPECT_EQ(here.write(bytes.data(), 1000, 0).fall,
              engine.has(file_way::uring) ? file_fall::none : file_fall::no_uring);
    EXPECT_THROW(file_buffer(engine, nullptr, 1), error);
    EXPECT_THROW(file_buffer(engine, bytes.data(), 0), error);
    EXPECT_THROW(file_buffer(engine, memory()), error);
}

} // namespace

} // namespace weftio::test
