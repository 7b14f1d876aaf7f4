#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "library.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

TEST(CufileDriver, HasBothNamesOfClose)
{
    EXPECT_NE(dlsym(cufile().opened, "cuFileDriverClose"), nullptr);
    EXPECT_NE(dlsym(cufile().opened, "cuFileDriverClose_v2"), nullptr);
}

TEST(CufileDriver, CountsItsUsers)
{
    ASSERT_EQ(cufile().UseCount(), 0);
    EXPECT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 2);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 1);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 0);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_DRIVER_NOT_INITIALIZED);
}

TEST(CufileDriver, OpensForWhoeverUsesItFirst)
{
    ASSERT_EQ(cufile().UseCount(), 0);
    const scratch_file file;
    const registered_file registered(file.descriptor());
    EXPECT_EQ(registered.status, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 1);
    char byte = 'a';
    EXPECT_EQ(cufile().Write(registered.handle, &byte, 1, 0, 0), 1);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 0);
}

TEST(CufileDriver, ItsEndEndsRegistrations)
{
    const scratch_file file;
    std::byte byte{};
    cufile().DriverOpen();
    const registered_file registered(file.descriptor());
    EXPECT_EQ(cufile().BufRegister(&byte, 1, 0).err, CU_FILE_SUCCESS);
    CUfileBatchHandle_t batch = nullptr;
    EXPECT_EQ(cufile().BatchIOSetUp(&batch, 1).err, CU_FILE_SUCCESS);
    cufile().DriverClose_v2();
    const open_driver again;
    EXPECT_EQ(cufile().Read(registered.handle, &byte, 1, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED);
    EXPECT_EQ(cufile().BufDeregister(&byte).err, CU_FILE_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(cufile().BatchIOCancel(batch).err, CU_FILE_INVALID_VALUE);
}

TEST(CufileDriver, ReportsProperties)
{
    const open_driver driver;
    CUfileDrvProps_t props{};
    ASSERT_EQ(cufile().DriverGetProperties(&props).err, CU_FILE_SUCCESS);
    EXPECT_EQ(props.nvfs.major_version, 0U);
    EXPECT_EQ(props.nvfs.dcontrolflags, 1U << CU_FILE_ALLOW_COMPAT_MODE);
    EXPECT_TRUE(props.fflags & 1U << CU_FILE_BATCH_IO_SUPPORTED);
    EXPECT_TRUE(props.fflags & 1U << CU_FILE_STREAMS_SUPPORTED);
    EXPECT_EQ(props.max_device_cache_size, 131072U);
    EXPECT_EQ(props.max_batch_io_size, 128U);
    EXPECT_EQ(cufile().DriverGetProperties(nullptr).err, CU_FILE_INVALID_VALUE);
}

TEST(CufileDriver, PropertiesAreSetWhileItIsOpen)
{
    const open_driver driver;
    CUfileDrvProps_t before{};
    cufile().DriverGetProperties(&before);
    EXPECT_EQ(cufile().DriverSetPollMode(true, 16).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverSetMaxDirectIOSize(1024).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverSetMaxCacheSize(2048).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverSetMaxPinnedMemSize(4096).err, CU_FILE_SUCCESS);
    CUfileDrvProps_t props{};
    cufile().DriverGetProperties(&props);
    EXPECT_EQ(props.nvfs.poll_thresh_size, 16U);
    EXPECT_TRUE(props.nvfs.dcontrolflags & 1U << CU_FILE_USE_POLL_MODE);
    EXPECT_EQ(props.nvfs.max_direct_io_size, 1024U);
    EXPECT_EQ(props.max_device_cache_size, 2048U);
    EXPECT_EQ(props.max_device_pinned_mem_size, 4096U);
    EXPECT_EQ(cufile().DriverSetMaxCacheSize(0).err, CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
    EXPECT_EQ(cufile().DriverSetMaxCacheSize(std::size_t{1} << 32).err, CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
    cufile().DriverSetPollMode(false, before.nvfs.poll_thresh_size);
    cufile().DriverSetMaxDirectIOSize(before.nvfs.max_direct_io_size);
    cufile().DriverSetMaxCacheSize(before.max_device_cache_size);
    cufile().DriverSetMaxPinnedMemSize(before.max_device_pinned_mem_size);
}

TEST(CufileDriver, ParametersAreSetWhileItIsClosed)
{
    constexpr auto threads = CUFILE_PARAM_EXECUTION_MAX_IO_THREADS;
    std::size_t value = 0, least = 0, most = 0;
    ASSERT_EQ(cufile().GetParameterSizeT(threads, &value).err, CU_FILE_SUCCESS);
    EXPECT_EQ(value, 8U);
    EXPECT_EQ(cufile().GetParameterMinMaxValue(threads, &least, &most).err, CU_FILE_SUCCESS);
    EXPECT_EQ(least, 1U);
    EXPECT_EQ(most, 256U);
    EXPECT_EQ(cufile().SetParameterSizeT(threads, 0).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterSizeT(threads, 257).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterSizeT(threads, 2).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().SetParameterSizeT(numbered<CUFileSizeTConfigParameter_t>(99), 2).err, CU_FILE_INVALID_VALUE);
    {
        const open_driver driver;
        EXPECT_EQ(cufile().GetParameterSizeT(threads, &value).err, CU_FILE_SUCCESS);
        EXPECT_EQ(value, 2U);
        EXPECT_EQ(cufile().SetParameterSizeT(threads, 8).err, CU_FILE_DRIVER_ALREADY_OPEN);
    }
    EXPECT_EQ(cufile().SetParameterSizeT(threads, 8).err, CU_FILE_SUCCESS);
}

TEST(CufileDriver, HasParametersOfOtherTypes)
{
    constexpr auto level = CUFILE_PARAM_LOGGING_LEVEL;
    bool compatible = false;
    EXPECT_EQ(cufile().GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &compatible).err, CU_FILE_SUCCESS);
    EXPECT_TRUE(compatible);
    EXPECT_EQ(cufile().GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterString(level, "LOUD").err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterString(level, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterString(level, "DEBUG").err, CU_FILE_SUCCESS);
    std::array<char, 6> text{};
    EXPECT_EQ(cufile().GetParameterString(level, text.data(), 5).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().GetParameterString(level, text.data(), 6).err, CU_FILE_SUCCESS);
    EXPECT_STREQ(text.data(), "DEBUG");
    EXPECT_EQ(cufile().SetParameterString(level, "ERROR").err, CU_FILE_SUCCESS);
}

TEST(CufileDriver, KeepsSlabs)
{
    const std::array<std::size_t, 2> sizes{4, 1024}, counts{64, 16};
    EXPECT_EQ(cufile().SetParameterPosixPoolSlabArray(sizes.data(), counts.data(), 0).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().SetParameterPosixPoolSlabArray(sizes.data(), nullptr, 2).err, CU_FILE_INVALID_VALUE);
    ASSERT_EQ(cufile().SetParameterPosixPoolSlabArray(sizes.data(), counts.data(), 2).err, CU_FILE_SUCCESS);
    std::array<std::size_t, 2> seen_sizes{}, seen_counts{};
    EXPECT_EQ(cufile().GetParameterPosixPoolSlabArray(seen_sizes.data(), seen_counts.data(), 1).err,
              CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().GetParameterPosixPoolSlabArray(seen_sizes.data(), seen_counts.data(), 2).err, CU_FILE_SUCCESS);
    EXPECT_EQ(seen_sizes, sizes);
    EXPECT_EQ(seen_counts, counts);
}

TEST(CufileDriver, TellsItsVersion)
{
    int version = 0;
    EXPECT_EQ(cufile().GetVersion(&version).err, CU_FILE_SUCCESS);
    EXPECT_EQ(version, 1140);
    EXPECT_EQ(cufile().GetVersion(nullptr).err, CU_FILE_INVALID_VALUE);
}

TEST(CufileDriver, HasNoBarOfAGpuThatIsNotThere)
{
    std::size_t size = 0;
    EXPECT_EQ(cufile().GetBARSizeInKB(4096, &size).err, CU_FILE_DEVICE_NOT_FOUND);
    EXPECT_EQ(cufile().GetBARSizeInKB(-1, &size).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().GetBARSizeInKB(0, nullptr).err, CU_FILE_INVALID_VALUE);
}

TEST(CufileDriver, HasWordsForErrors)
{
    EXPECT_STREQ(cufileop_status_error(CU_FILE_HANDLE_NOT_REGISTERED), "the file handle is not registered");
    EXPECT_STREQ(CUFILE_ERRSTR(-5027), "the file handle is not registered");
    EXPECT_STREQ(CUFILE_ERRSTR(5), "unknown cuFile error");
    EXPECT_TRUE(IS_CUFILE_ERR(-CU_FILE_INVALID_VALUE));
    EXPECT_FALSE(IS_CUFILE_ERR(-EIO));
}

/// What a child of fork() finds; the number of the first line that differs, 0 otherwise.
int seen_by_child(CUfileHandle_t of_parent, int descriptor)
{
    std::byte byte{};
    if (cufile().UseCount() != 0)
        return 1;
    if (cufile().Read(of_parent, &byte, 1, 0, 0) != -CU_FILE_HANDLE_NOT_REGISTERED)
        return 2;
    const registered_file registered(descriptor);
    if (registered.status != CU_FILE_SUCCESS)
        return 3;
    return cufile().Read(registered.handle, &byte, 1, 0, 0) == 1 && byte == std::byte{'a'} ? 0 : 4;
}

TEST(CufileDriver, AChildOfForkHasOneOfItsOwn)
{
    const open_driver driver;
    const scratch_file file;
    ASSERT_EQ(pwrite(file.descriptor(), "a", 1, 0), 1);
    const registered_file registered(file.descriptor());
    const pid_t child = fork();
    if (child == 0)
        _exit(seen_by_child(registered.handle, file.descriptor()));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    std::byte byte{};
    EXPECT_EQ(cufile().Read(registered.handle, &byte, 1, 0, 0), 1);
}

} // namespace

} // namespace weftio::test
