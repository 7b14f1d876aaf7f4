// Memory of a GPU. All of it is skipped where there is none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "library.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

/// The CUDA driver, looked up by name: nothing of CUDA is needed to compile this.
struct cuda_driver {
    using pointer = unsigned long long;
    void* const opened = dlopen("libcuda.so.1", RTLD_NOW);
    int (*cuInit)(unsigned) = find<int(unsigned)>("cuInit");
    int (*retain)(void**, int) = find<int(void**, int)>("cuDevicePrimaryCtxRetain");
    int (*set_current)(void*) = find<int(void*)>("cuCtxSetCurrent");
    int (*allocate)(pointer*, std::size_t) = find<int(pointer*, std::size_t)>("cuMemAlloc_v2");
    int (*release)(pointer) = find<int(pointer)>("cuMemFree_v2");
    int (*to_device)(pointer, const void*,
                     std::size_t) = find<int(pointer, const void*, std::size_t)>("cuMemcpyHtoD_v2");
    int (*to_host)(void*, pointer, std::size_t) = find<int(void*, pointer, std::size_t)>("cuMemcpyDtoH_v2");
    int (*make_stream)(CUstream*, unsigned) = find<int(CUstream*, unsigned)>("cuStreamCreate");
    int (*end_stream)(CUstream) = find<int(CUstream)>("cuStreamDestroy_v2");
    int (*synchronize)(CUstream) = find<int(CUstream)>("cuStreamSynchronize");
    int (*fill)(pointer, unsigned char, std::size_t,
                CUstream) = find<int(pointer, unsigned char, std::size_t, CUstream)>("cuMemsetD8Async");

    template <class Function>
    Function* find(const char* name) const
    {
        return opened ? reinterpret_cast<Function*>(dlsym(opened, name)) : nullptr;
    }
};

const cuda_driver& cuda()
{
    static const cuda_driver driver;
    return driver;
}

class CufileGpu : public testing::Test {
 protected:
    static constexpr std::size_t bytes = std::size_t{4} << 20;

    void SetUp() override
    {
        void* context = nullptr;
        if (!cuda().opened || cuda().cuInit(0) != 0 || cuda().retain(&context, 0) != 0)
            GTEST_SKIP() << "no GPU";
        ASSERT_EQ(cuda().set_current(context), 0);
        ASSERT_EQ(cuda().allocate(&address, bytes), 0);
        ASSERT_EQ(cuda().make_stream(&stream, 1), 0);
    }
    void TearDown() override
    {
        if (stream != nullptr)
            cuda().end_stream(stream);
        if (address != 0)
            cuda().release(address);
    }
    void* memory() const { return reinterpret_cast<void*>(address); }
    void put(const std::vector<std::byte>& content) const
    {
        ASSERT_EQ(cuda().to_device(address, content.data(), content.size()), 0);
    }
    std::vector<std::byte> get(std::size_t count) const
    {
        std::vector<std::byte> seen(count);
        EXPECT_EQ(cuda().to_host(seen.data(), address, count), 0);
        return seen;
    }

    const open_driver driver;
    const scratch_file file;
    cuda_driver::pointer address = 0;
    CUstream stream = nullptr;
};

TEST_F(CufileGpu, ItsMemoryIsWrittenAndReadAtAnyOffset)
{
    const registered_file registered(file.descriptor());
    const auto content = pattern(bytes, 1);
    std::mt19937 random(5);
    const auto below = [&](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    for (int i = 0; i < 50; ++i) {
        const std::size_t from = below(bytes / 2), count = 1 + below(bytes / 2), to = below(bytes - count);
        const auto offset = static_cast<off_t>(below(100'000));
        put(content);
        ASSERT_EQ(cufile().Write(registered.handle, memory(), count, offset, static_cast<off_t>(from)),
                  static_cast<ssize_t>(count));
        std::vector<std::byte> written(count);
        ASSERT_EQ(pread(file.descriptor(), written.data(), count, offset), static_cast<ssize_t>(count));
        EXPECT_TRUE(std::equal(written.begin(), written.end(), content.begin() + static_cast<std::ptrdiff_t>(from)));
        put(std::vector<std::byte>(bytes));
        ASSERT_EQ(cufile().Read(registered.handle, memory(), count, offset, static_cast<off_t>(to)),
                  static_cast<ssize_t>(count));
        std::vector<std::byte> expected(bytes);
        std::copy(written.begin(), written.end(), expected.begin() + static_cast<std::ptrdiff_t>(to));
        EXPECT_EQ(get(bytes), expected);
    }
}

TEST_F(CufileGpu, ItsMemoryIsRegistered)
{
    const registered_file registered(file.descriptor());
    const auto content = pattern(bytes, 2);
    put(content);
    ASSERT_EQ(cufile().BufRegister(memory(), bytes, 0).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory(), bytes, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cufile().Write(registered.handle, memory(), bytes, 0, 0), static_cast<ssize_t>(bytes));
    put(std::vector<std::byte>(bytes));
    EXPECT_EQ(cufile().Read(registered.handle, memory(), bytes, 0, 0), static_cast<ssize_t>(bytes));
    EXPECT_EQ(get(bytes), content);
    EXPECT_EQ(cufile().BufDeregister(memory()).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory(), bytes + (std::size_t{1} << 30), 0).err, CU_FILE_CUDA_POINTER_RANGE_ERROR);
}

TEST_F(CufileGpu, BatchesReadIntoItsMemory)
{
    const registered_file registered(file.descriptor());
    const auto content = pattern(bytes, 3);
    ASSERT_EQ(pwrite(file.descriptor(), content.data(), bytes, 0), static_cast<ssize_t>(bytes));
    constexpr unsigned count = 64;
    constexpr std::size_t part = bytes / count;
    std::vector<CUfileIOParams_t> entries(count);
    for (unsigned i = 0; i < count; ++i) {
        entries[i].mode = CUFILE_BATCH;
        entries[i].fh = registered.handle;
        entries[i].u.batch = {memory(), static_cast<off_t>(i * part), static_cast<off_t>(i * part), part};
    }
    CUfileBatchHandle_t batch = nullptr;
    ASSERT_EQ(cufile().BatchIOSetUp(&batch, count).err, CU_FILE_SUCCESS);
    ASSERT_EQ(cufile().BatchIOSubmit(batch, count, entries.data(), 0).err, CU_FILE_SUCCESS);
    std::vector<CUfileIOEvents_t> events(count);
    unsigned taken = count;
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, count, &taken, events.data(), nullptr).err, CU_FILE_SUCCESS);
    EXPECT_EQ(taken, count);
    cufile().BatchIODestroy(batch);
    EXPECT_EQ(get(bytes), content);
}

TEST_F(CufileGpu, StreamsOrderReadsAndWrites)
{
    const registered_file registered(file.descriptor());
    ASSERT_EQ(cufile().StreamRegister(stream, 0).err, CU_FILE_SUCCESS);
    std::size_t all = bytes, half = 0;
    off_t zero = 0, middle = bytes / 2;
    ssize_t written = -1, sized = -1, read = -1;
    ASSERT_EQ(pwrite(file.descriptor(), &middle, sizeof middle, bytes), static_cast<ssize_t>(sizeof middle));
    // Fill, write all, read the size of the last operation from the file, fill again, read one half.
    ASSERT_EQ(cuda().fill(address, 0x5a, bytes, stream), 0);
    EXPECT_EQ(cufile().WriteAsync(registered.handle, memory(), &all, &zero, &zero, &written, stream).err,
              CU_FILE_SUCCESS);
    std::size_t word = sizeof half;
    off_t behind = bytes;
    EXPECT_EQ(cufile().ReadAsync(registered.handle, &half, &word, &behind, &zero, &sized, stream).err, CU_FILE_SUCCESS);
    ASSERT_EQ(cuda().fill(address, 0, bytes, stream), 0);
    EXPECT_EQ(cufile().ReadAsync(registered.handle, memory(), &half, &zero, &middle, &read, stream).err,
              CU_FILE_SUCCESS);
    ASSERT_EQ(cuda().synchronize(stream), 0);
    EXPECT_EQ(written, static_cast<ssize_t>(bytes));
    EXPECT_EQ(sized, static_cast<ssize_t>(sizeof half));
    EXPECT_EQ(read, static_cast<ssize_t>(bytes / 2));
    std::vector<std::byte> expected(bytes);
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(bytes / 2), expected.end(), std::byte{0x5a});
    EXPECT_EQ(get(bytes), expected);
    EXPECT_EQ(cufile().StreamDeregister(stream).err, CU_FILE_SUCCESS);
}

TEST_F(CufileGpu, HasABar)
{
    std::size_t size = 0;
    EXPECT_EQ(cufile().GetBARSizeInKB(0, &size).err, CU_FILE_SUCCESS);
    EXPECT_GE(size, 64U * 1024);
}

} // namespace

} // namespace weftio::test
