#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "library.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

CUfileOpError registration_of(int descriptor)
{
    return registered_file(descriptor).status;
}

class CufileFile : public testing::Test {
 protected:
    const open_driver driver;
    const scratch_file file;
};

TEST_F(CufileFile, IsNoPipeFolderOrClosedDescriptor)
{
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(registration_of(ends[0]), CU_FILE_INVALID_FILE_TYPE);
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(registration_of(ends[0]), CU_FILE_INVALID_VALUE);
    const int folder = open("/tmp", O_RDONLY | O_DIRECTORY);
    EXPECT_EQ(registration_of(folder), CU_FILE_INVALID_FILE_TYPE);
    close(folder);
}

TEST_F(CufileFile, HasOffsets)
{
    const int appends = open(file.path().c_str(), O_WRONLY | O_APPEND);
    EXPECT_EQ(registration_of(appends), CU_FILE_INVALID_FILE_OPEN_FLAG);
    const int name = open(file.path().c_str(), O_PATH);
    EXPECT_EQ(registration_of(name), CU_FILE_INVALID_FILE_OPEN_FLAG);
    const int reads = open(file.path().c_str(), O_RDONLY | O_APPEND);
    EXPECT_EQ(registration_of(reads), CU_FILE_SUCCESS);
    for (const int each : {appends, name, reads})
        close(each);
}

TEST_F(CufileFile, IsADescriptor)
{
    CUfileHandle_t handle = nullptr;
    CUfileDescr_t description{};
    description.handle.fd = file.descriptor();
    EXPECT_EQ(cufile().HandleRegister(&handle, &description).err, CU_FILE_IO_NOT_SUPPORTED); // type 0
    description.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
    EXPECT_EQ(cufile().HandleRegister(&handle, &description).err, CU_FILE_IO_NOT_SUPPORTED);
    EXPECT_EQ(cufile().HandleRegister(nullptr, &description).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().HandleRegister(&handle, nullptr).err, CU_FILE_INVALID_VALUE);
}

TEST_F(CufileFile, IsRegisteredOnce)
{
    const registered_file first(file.descriptor());
    EXPECT_EQ(registration_of(file.descriptor()), CU_FILE_HANDLE_ALREADY_REGISTERED);
    const int copy = dup(file.descriptor());
    EXPECT_EQ(registration_of(copy), CU_FILE_SUCCESS);
    close(copy);
}

TEST_F(CufileFile, TakesTheNumberOfOneThatWasClosedMeanwhile)
{
    const scratch_file other;
    const int number = dup(file.descriptor());
    const registered_file stale(number);
    ASSERT_EQ(dup2(other.descriptor(), number), number);
    EXPECT_EQ(registration_of(number), CU_FILE_SUCCESS);
    close(number);
}

TEST_F(CufileFile, IsUnknownOnceDeregistered)
{
    std::byte byte{};
    CUfileHandle_t handle = nullptr;
    {
        const registered_file registered(file.descriptor());
        handle = registered.handle;
    }
    EXPECT_EQ(cufile().Read(handle, &byte, 1, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED);
    EXPECT_EQ(cufile().Write(nullptr, &byte, 1, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED);
    const registered_file again(file.descriptor());
    EXPECT_NE(again.handle, handle);
    cufile().HandleDeregister(handle); // ignored
    EXPECT_EQ(cufile().Read(again.handle, &byte, 1, 0, 0), 0);
}

TEST_F(CufileFile, RefusesWrongArguments)
{
    const registered_file registered(file.descriptor());
    std::byte byte{};
    EXPECT_EQ(cufile().Read(registered.handle, nullptr, 1, 0, 0), -CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().Read(registered.handle, &byte, 1, -1, 0), -CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().Read(registered.handle, &byte, 1, 0, -1), -CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().Read(registered.handle, &byte, ~std::size_t{0}, 0, 0), -CU_FILE_INVALID_VALUE);
}

TEST_F(CufileFile, PassesErrnoOn)
{
    const int only_read = open(file.path().c_str(), O_RDONLY);
    const int only_write = open(file.path().c_str(), O_WRONLY);
    std::byte byte{};
    errno = 0;
    const registered_file reads(only_read), writes(only_write);
    EXPECT_EQ(cufile().Write(reads.handle, &byte, 1, 0, 0), -1);
    EXPECT_EQ(errno, EBADF);
    errno = 0;
    EXPECT_EQ(cufile().Read(writes.handle, &byte, 1, 0, 0), -1);
    EXPECT_EQ(errno, EBADF);
    close(only_read);
    close(only_write);
}

TEST_F(CufileFile, ReadsShortAtItsEnd)
{
    const registered_file registered(file.descriptor());
    ASSERT_EQ(ftruncate(file.descriptor(), 1000), 0);
    std::vector<std::byte> memory(4096);
    EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 0, 0), 1000);
    EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 999, 0), 1);
    EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 1000, 0), 0);
    EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 0, 0, 0), 0);
}

TEST_F(CufileFile, MemoryIsRegisteredOnce)
{
    std::vector<std::byte> memory(8192);
    EXPECT_EQ(cufile().BufRegister(memory.data(), 4096, 0).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory.data(), 4096, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cufile().BufRegister(memory.data() + 4096, 4096, 0).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory.data() + 4095, 2, 0).err, CU_FILE_SUCCESS); // it overlaps both
    EXPECT_EQ(cufile().BufDeregister(memory.data() + 4095).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufDeregister(memory.data() + 1).err, CU_FILE_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(cufile().BufDeregister(memory.data()).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufDeregister(memory.data()).err, CU_FILE_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(cufile().BufRegister(memory.data(), 4097, 0).err, CU_FILE_SUCCESS); // it overlaps the other
    EXPECT_EQ(cufile().BufDeregister(memory.data()).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufDeregister(memory.data() + 4096).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(nullptr, 1, 0).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BufRegister(memory.data(), 0, 0).err, CU_FILE_INVALID_VALUE);
}

TEST_F(CufileFile, StaysWithinRegisteredMemory)
{
    const registered_file registered(file.descriptor());
    std::vector<std::byte> memory(8192);
    ASSERT_EQ(cufile().BufRegister(memory.data(), 4096, 0).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 96, 0, 4000), 96);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 97, 0, 4000), -CU_FILE_INVALID_MAPPING_RANGE);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data() + 4000, 97, 0, 0), -CU_FILE_INVALID_MAPPING_RANGE);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 1, 0, 4097), -CU_FILE_INVALID_MAPPING_RANGE);
    ASSERT_EQ(cufile().BufRegister(memory.data() + 100, 4000, 0).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data() + 100, 100, 0, 3900), 100); // within the second
    EXPECT_EQ(cufile().Write(registered.handle, memory.data() + 100, 101, 0, 3900), -CU_FILE_INVALID_MAPPING_RANGE);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 97, 0, 4000), -CU_FILE_INVALID_MAPPING_RANGE);
    EXPECT_EQ(cufile().BufDeregister(memory.data()).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 97, 0, 4000), 97);
    EXPECT_EQ(cufile().BufDeregister(memory.data() + 100).err, CU_FILE_SUCCESS);
}

TEST_F(CufileFile, EveryCallThatMeetsTheEndOfAHandleIsWholeOrRefused)
{
    std::vector<std::byte> content = pattern(4096, 1);
    ASSERT_EQ(pwrite(file.descriptor(), content.data(), content.size(), 0), 4096);
    std::atomic<CUfileHandle_t> handle{nullptr};
    std::atomic<bool> over{false};
    std::atomic<unsigned> wrong{0}, whole{0};
    std::thread reader([&] {
        std::vector<std::byte> memory(4096);
        while (!over) {
            const ssize_t read = cufile().Read(handle, memory.data(), 4096, 0, 0);
            whole += read == 4096;
            wrong += read != 4096 && read != -CU_FILE_HANDLE_NOT_REGISTERED;
        }
    });
    for (int i = 0; wrong == 0 && (i < 200 || (whole < 10 && i < 1'000'000)); ++i) {
        const int descriptor = dup(file.descriptor());
        const registered_file registered(descriptor);
        handle = registered.handle;
        std::this_thread::yield();
        cufile().HandleDeregister(registered.handle);
        close(descriptor); // nobody reads it any more
    }
    over = true;
    reader.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_GE(whole, 10U);
}

TEST(CufileStrict, RefusesWhatWouldFall)
{
    constexpr auto allow = CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE;
    ASSERT_EQ(cufile().SetParameterBool(allow, false).err, CU_FILE_SUCCESS);
    alignas(4096) static std::array<std::byte, 8192> memory;
    if (cufile().DriverOpen().err == CU_FILE_SUCCESS) { // io_uring is not refused
        try {
            const scratch_file file(O_DIRECT);
            const registered_file registered(file.descriptor());
            EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 8192, 0, 0), 8192);
            EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 4096, 0), 4096);
            EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 1, 0), -CU_FILE_IO_NOT_SUPPORTED);
            EXPECT_EQ(errno, ENOTSUP);
            EXPECT_EQ(cufile().Write(registered.handle, memory.data(), 1000, 0, 0), -CU_FILE_IO_NOT_SUPPORTED);
            EXPECT_EQ(cufile().Read(registered.handle, memory.data(), 4096, 0, 1), -CU_FILE_IO_NOT_SUPPORTED);
        } catch (const std::runtime_error&) { // the file system of /tmp has no O_DIRECT
        }
        cufile().DriverClose_v2();
    }
    EXPECT_EQ(cufile().SetParameterBool(allow, true).err, CU_FILE_SUCCESS);
}

struct operation {
    bool write;
    std::size_t bytes, memory_offset;
    off_t offset;
};

/// Does the same with cuFile on one file and with pread and pwrite on another.
class CufileDifferential : public testing::TestWithParam<int> {
 protected:
    static constexpr std::size_t most_bytes = 300'000;

    operation draw()
    {
        const auto below = [&](std::size_t limit) {
            return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
        };
        const std::size_t unit = below(2) == 0 ? 4096 : 1;
        const std::size_t largest = below(4) == 0 ? most_bytes : 9000;
        return {below(2) == 0, below(largest / unit) * unit, below(8192 / unit) * unit,
                static_cast<off_t>(below(500'000 / unit) * unit)};
    }

    void compare(CUfileHandle_t handle, int other, const operation& next)
    {
        std::vector<std::byte> ours = pattern(most_bytes + 16384, random());
        auto* const aligned =
            reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(ours.data()) + 4095) / 4096 * 4096);
        std::vector<std::byte> theirs(aligned, aligned + most_bytes + 8192);
        std::byte* const there = theirs.data() + next.memory_offset;
        const auto ours_offset = static_cast<off_t>(next.memory_offset);
        const ssize_t expected =
            next.write ? pwrite(other, there, next.bytes, next.offset) : pread(other, there, next.bytes, next.offset);
        EXPECT_EQ(next.write ? cufile().Write(handle, aligned, next.bytes, next.offset, ours_offset)
                             : cufile().Read(handle, aligned, next.bytes, next.offset, ours_offset),
                  expected);
        // Between the end of the file and the end of the request O_DIRECT may leave anything.
        const auto read_to = static_cast<std::ptrdiff_t>(next.memory_offset) + expected;
        const auto asked_to = static_cast<std::ptrdiff_t>(next.memory_offset + next.bytes);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.begin() + read_to, aligned));
        EXPECT_TRUE(std::equal(theirs.begin() + asked_to, theirs.end(), aligned + asked_to));
    }

    std::mt19937 random{7};
};

TEST_P(CufileDifferential, DoesWhatPreadAndPwriteDo)
{
    const open_driver driver;
    std::unique_ptr<scratch_file> ours;
    try {
        ours = std::make_unique<scratch_file>(GetParam());
    } catch (const std::runtime_error&) {
        GTEST_SKIP() << "the file system of /tmp has no O_DIRECT";
    }
    const scratch_file theirs;
    const registered_file registered(ours->descriptor());
    ASSERT_EQ(registered.status, CU_FILE_SUCCESS);
    for (int i = 0; i < 300 && !HasFailure(); ++i) {
        const operation next = draw();
        SCOPED_TRACE(testing::Message() << (next.write ? "write " : "read ") << next.bytes << " bytes at "
                                        << next.offset << ", memory offset " << next.memory_offset);
        compare(registered.handle, theirs.descriptor(), next);
    }
    struct stat ours_is {
    }, theirs_is{};
    fstat(ours->descriptor(), &ours_is);
    fstat(theirs.descriptor(), &theirs_is);
    EXPECT_EQ(ours_is.st_size, theirs_is.st_size);
}

INSTANTIATE_TEST_SUITE_P(Flags, CufileDifferential, testing::Values(0, O_DIRECT),
                         [](const auto& info) { return info.param ? "Direct" : "Cached"; });

} // namespace

} // namespace weftio::test
