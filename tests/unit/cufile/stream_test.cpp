#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "library.hpp"
#include "patience.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

/// Arguments that an operation reads when it is executed.
struct arguments {
    std::size_t bytes = 0;
    off_t file_offset = 0, memory_offset = 0;
    ssize_t result = -5555;
};

class CufileStream : public testing::Test {
 protected:
    void SetUp() override
    {
        if (void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
            dlclose(cuda);
            GTEST_SKIP() << "the null stream is CUDA's on this machine";
        }
        GTEST_SKIP() << "the engine has no streams yet";
    }
    CUfileOpError read(arguments& all, void* memory, CUfileHandle_t handle)
    {
        return cufile()
            .ReadAsync(handle, memory, &all.bytes, &all.file_offset, &all.memory_offset, &all.result, nullptr)
            .err;
    }
    CUfileOpError write(arguments& all, void* memory, CUfileHandle_t handle)
    {
        return cufile()
            .WriteAsync(handle, memory, &all.bytes, &all.file_offset, &all.memory_offset, &all.result, nullptr)
            .err;
    }

    const open_driver driver;
    const scratch_file file;
};

TEST_F(CufileStream, ArgumentsAreReadAtExecution)
{
    // The first operation reads, from the file, the arguments of the second one.
    const arguments stored{.bytes = 5, .file_offset = 1000, .memory_offset = 3};
    ASSERT_EQ(pwrite(file.descriptor(), &stored, offsetof(arguments, result), 0),
              static_cast<ssize_t>(offsetof(arguments, result)));
    ASSERT_EQ(pwrite(file.descriptor(), "hello", 5, 1000), 5);
    arguments first{.bytes = offsetof(arguments, result)}, second;
    std::array<char, 16> text{};
    {
        const registered_file registered(file.descriptor());
        ASSERT_EQ(read(first, &second, registered.handle), CU_FILE_SUCCESS);
        ASSERT_EQ(read(second, text.data(), registered.handle), CU_FILE_SUCCESS);
    } // waits for them
    EXPECT_EQ(first.result, static_cast<ssize_t>(offsetof(arguments, result)));
    EXPECT_EQ(second.result, 5);
    EXPECT_STREQ(text.data() + 3, "hello");
}

TEST_F(CufileStream, WritesInOrder)
{
    char hello[] = "hello", world[] = "world";
    arguments first{.bytes = 5}, second{.bytes = 4, .file_offset = 5, .memory_offset = 1},
        third{.bytes = 9, .memory_offset = 1};
    std::array<char, 16> text{};
    {
        const registered_file registered(file.descriptor());
        ASSERT_EQ(write(first, hello, registered.handle), CU_FILE_SUCCESS);
        ASSERT_EQ(write(second, world, registered.handle), CU_FILE_SUCCESS);
        ASSERT_EQ(read(third, text.data(), registered.handle), CU_FILE_SUCCESS);
    }
    EXPECT_EQ(first.result, 5);
    EXPECT_EQ(second.result, 4);
    EXPECT_EQ(third.result, 9);
    EXPECT_STREQ(text.data() + 1, "helloorld");
}

TEST_F(CufileStream, ErrorsComeWithTheResult)
{
    const int only_read = open(file.path().c_str(), O_RDONLY);
    arguments all{.bytes = 1};
    std::byte byte{};
    {
        const registered_file registered(only_read);
        EXPECT_EQ(write(all, &byte, registered.handle), CU_FILE_SUCCESS);
    }
    EXPECT_EQ(all.result, -EBADF);
    close(only_read);
}

TEST_F(CufileStream, RefusesWrongArguments)
{
    const registered_file registered(file.descriptor());
    arguments all;
    std::byte byte{};
    EXPECT_EQ(read(all, nullptr, registered.handle), CU_FILE_INVALID_VALUE);
    EXPECT_EQ(read(all, &byte, nullptr), CU_FILE_HANDLE_NOT_REGISTERED);
    EXPECT_EQ(
        cufile()
            .ReadAsync(registered.handle, &byte, nullptr, &all.file_offset, &all.memory_offset, &all.result, nullptr)
            .err,
        CU_FILE_INVALID_VALUE);
    EXPECT_EQ(all.result, -5555);
}

TEST_F(CufileStream, IsRegisteredAndDeregistered)
{
    EXPECT_EQ(cufile().StreamDeregister(nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().StreamRegister(nullptr, 16).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().StreamRegister(nullptr, 15).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().StreamDeregister(nullptr).err, CU_FILE_SUCCESS);
}

} // namespace

} // namespace weftio::test
