// libcufile.so.0 as public programs call it: their order of calls, their flags, what they do with errors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "library.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t piece = 4096, pieces = 64, file_bytes = pieces * piece;

/// Memory that O_DIRECT takes as it is.
struct aligned_memory {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using aligned_bytes = std::unique_ptr<std::byte[], aligned_memory>;
aligned_bytes make_memory(std::size_t size)
{
    aligned_bytes made(static_cast<std::byte*>(std::aligned_alloc(piece, size)));
    std::fill_n(made.get(), size, std::byte{0});
    return made;
}

bool holds(const std::vector<std::byte>& content, const std::byte* memory)
{
    return std::equal(content.begin(), content.end(), memory);
}

CUfileDescr_t description_of(int descriptor)
{
    CUfileDescr_t made{};
    made.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
    made.handle.fd = descriptor;
    return made;
}

/// A file with a pattern.
class CufileCallers : public testing::Test {
 protected:
    CufileCallers()
    {
        EXPECT_EQ(pwrite(file.descriptor(), content.data(), file_bytes, 0), static_cast<ssize_t>(file_bytes));
        EXPECT_EQ(cufile().UseCount(), 0);
    }
    ~CufileCallers() override
    {
        while (cufile().UseCount() > 0)
            cufile().DriverClose_v2();
    }

    const scratch_file file;
    const std::vector<std::byte> content = pattern(file_bytes, 11);
    aligned_bytes memory = make_memory(file_bytes);
};

// KvikIO: 22 functions by dlsym, some of them only from a version on.

TEST_F(CufileCallers, KvikioFindsItsFunctionsAndTheVersionOpensNothing)
{
    void* const found = dlopen(cufile_library::path(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(found, nullptr) << dlerror();
    int count = 0;
#define WEFTIO_CUFILE_FUNCTION(name) EXPECT_TRUE(++count > 22 || dlsym(found, "cuFile" #name)) << #name;
#include "functions.def"
    int version = 0;
    EXPECT_EQ(cufile().GetVersion(&version).err, CU_FILE_SUCCESS);
    EXPECT_GE(version, 1070); // batches need 1060, streams 1070
    EXPECT_EQ(cufile().UseCount(), 0);
    EXPECT_EQ(dlclose(found), 0);
}

TEST_F(CufileCallers, KvikioSetsPropertiesOneByOneAndBack)
{
    CUfileDrvProps_t props{};
    ASSERT_EQ(cufile().DriverGetProperties(&props).err, CU_FILE_SUCCESS); // without DriverOpen
    EXPECT_EQ(props.nvfs.major_version, 0U);                              // "GDS is not available", and it goes on
    const std::size_t threshold = props.nvfs.poll_thresh_size, cache = props.max_device_cache_size,
                      pinned = props.max_device_pinned_mem_size;
    for (const bool poll : {true, false})
        EXPECT_EQ(cufile().DriverSetPollMode(poll, threshold).err, CU_FILE_SUCCESS);
    for (const std::size_t size : {std::size_t{2048}, std::size_t{1024}, std::size_t{128}, cache})
        EXPECT_EQ(cufile().DriverSetMaxCacheSize(size).err, CU_FILE_SUCCESS) << size;
    for (const std::size_t size : {std::size_t{2048}, pinned})
        EXPECT_EQ(cufile().DriverSetMaxPinnedMemSize(size).err, CU_FILE_SUCCESS) << size;
    EXPECT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 1);
}

/// What KvikIO puts into its exception for a negative result.
std::string words_of(ssize_t result)
{
    const auto error = static_cast<int>(std::abs(result));
    return error > CUFILEOP_BASE_ERR ? cufileop_status_error(static_cast<CUfileOpError>(error)) : std::strerror(error);
}

TEST_F(CufileCallers, KvikioExpectsTheWordsOfAWrongMode)
{
    const int read_only = open(file.path().c_str(), O_RDONLY), write_only = open(file.path().c_str(), O_WRONLY);
    {
        const registered_file reads(read_only), writes(write_only);
        EXPECT_EQ(words_of(cufile().Write(reads.handle, memory.get(), 80, 0, 0)), "Operation not permitted");
        EXPECT_EQ(words_of(cufile().Read(writes.handle, memory.get(), 80, 0, 0)), "Operation not permitted");
    }
    close(read_only);
    close(write_only);
}

TEST_F(CufileCallers, KvikioReadsBySeveralThreadsFromTwoDescriptors)
{
    const int direct = open(file.path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    {
        const registered_file cached(file.descriptor()), uncached(direct);
        EXPECT_EQ(uncached.status, CU_FILE_SUCCESS);
        EXPECT_EQ(cufile().BufRegister(memory.get(), file_bytes, 0).err, CU_FILE_SUCCESS);
        EXPECT_EQ(cufile().BufRegister(memory.get(), file_bytes, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED); // ignored
        constexpr std::size_t tasks = 8, share = file_bytes / tasks;
        std::atomic<std::size_t> sum{0};
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < tasks; ++i)
            threads.emplace_back([&, i] {
                const auto at = static_cast<off_t>(i * share);
                const CUfileHandle_t from = i % 2 == 0 ? cached.handle : uncached.handle;
                const ssize_t read = cufile().Read(from, memory.get(), share, at, at);
                sum += read > 0 ? static_cast<std::size_t>(read) : 0;
            });
        for (std::thread& each : threads)
            each.join();
        EXPECT_EQ(sum, file_bytes);
        EXPECT_TRUE(holds(content, memory.get()));
        EXPECT_EQ(cufile().BufDeregister(memory.get()).err, CU_FILE_SUCCESS);
    }
    close(direct);
}

/// Its ten operations, one tenth of the file each.
std::vector<CUfileIOParams_t> ten_reads(CUfileHandle_t handle, std::byte* to)
{
    std::vector<CUfileIOParams_t> made;
    constexpr std::size_t share = file_bytes / 10;
    for (std::size_t i = 0; i < 10; ++i) {
        CUfileIOParams_t each{};
        each.mode = CUFILE_BATCH;
        each.u.batch = {to, static_cast<off_t>(i * share), static_cast<off_t>(i * share), share};
        each.fh = handle;
        each.opcode = CUFILE_READ;
        made.push_back(each);
    }
    return made;
}

TEST_F(CufileCallers, KvikioHasNoEventsOfACanceledBatchAndReusesIt)
{
    const registered_file registered(file.descriptor());
    auto operations = ten_reads(registered.handle, memory.get());
    std::array<CUfileIOEvents_t, 10> events{};
    CUfileBatchHandle_t batch = nullptr;
    ASSERT_EQ(cufile().BatchIOSetUp(&batch, 10).err, CU_FILE_SUCCESS);
    for (const bool canceled : {false, true, false}) {
        ASSERT_EQ(cufile().BatchIOSubmit(batch, 10, operations.data(), 0).err, CU_FILE_SUCCESS);
        if (canceled) {
            EXPECT_EQ(cufile().BatchIOCancel(batch).err, CU_FILE_SUCCESS);
            memory = make_memory(file_bytes); // nothing writes to the old one any more
            operations = ten_reads(registered.handle, memory.get());
        }
        unsigned count = 10;
        EXPECT_EQ(cufile().BatchIOGetStatus(batch, 10, &count, events.data(), nullptr).err, CU_FILE_SUCCESS);
        EXPECT_EQ(count, canceled ? 0U : 10U);
        for (unsigned i = 0; i < count; ++i)
            EXPECT_TRUE(events[i].status == CUFILE_COMPLETE && events[i].ret == file_bytes / 10);
    }
    cufile().BatchIODestroy(batch);
}

/// The arguments of an operation on a stream, and its result.
struct stream_future {
    std::size_t size;
    off_t file_offset, memory_offset;
    ssize_t done;
};

TEST_F(CufileCallers, KvikioKeepsTheArgumentsOfAStreamUntilItIsSynchronized)
{
    if (void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        dlclose(cuda);
        GTEST_SKIP() << "the null stream is CUDA's on this machine";
    }
    const auto write = std::make_unique<stream_future>(stream_future{file_bytes, 0, 0, 0});
    const auto read = std::make_unique<stream_future>(stream_future{file_bytes, 0, 0, 0});
    std::vector<std::byte> other = pattern(file_bytes, 12);
    {
        const registered_file registered(file.descriptor());
        EXPECT_EQ(cufile()
                      .WriteAsync(registered.handle, other.data(), &write->size, &write->file_offset,
                                  &write->memory_offset, &write->done, nullptr)
                      .err,
                  CU_FILE_SUCCESS);
        EXPECT_EQ(cufile()
                      .ReadAsync(registered.handle, memory.get(), &read->size, &read->file_offset, &read->memory_offset,
                                 &read->done, nullptr)
                      .err,
                  CU_FILE_SUCCESS);
        const auto stream = reinterpret_cast<CUstream>(memory.get()); // of a GPU that is not there
        EXPECT_EQ(cufile()
                      .ReadAsync(registered.handle, memory.get(), &read->size, &read->file_offset, &read->memory_offset,
                                 &read->done, stream)
                      .err,
                  CU_FILE_INVALID_VALUE);
    }
    EXPECT_EQ(write->done, static_cast<ssize_t>(file_bytes));
    EXPECT_EQ(read->done, static_cast<ssize_t>(file_bytes));
    EXPECT_TRUE(holds(other, memory.get()));
}

// NIXL: a pool of batches that it polls, and threads over the synchronous calls.

TEST_F(CufileCallers, NixlPollsABatchOfItsPoolUntilAllHaveEnded)
{
    constexpr unsigned pool = 16, limit = 128;
    EXPECT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS); // one agent
    EXPECT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS); // another one
    CUfileHandle_t handle = nullptr;
    CUfileDescr_t description = description_of(file.descriptor());
    ASSERT_EQ(cufile().HandleRegister(&handle, &description).err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory.get(), file_bytes, 0).err, CU_FILE_SUCCESS);
    std::array<CUfileBatchHandle_t, pool> batches{};
    for (CUfileBatchHandle_t& each : batches)
        EXPECT_EQ(cufile().BatchIOSetUp(&each, limit).err, CU_FILE_SUCCESS);
    const std::unique_ptr<CUfileIOParams_t[]> params(new CUfileIOParams_t[limit]); // as it is: not cleared
    const std::unique_ptr<CUfileIOEvents_t[]> events(new CUfileIOEvents_t[limit]);
    std::memset(params.get(), 0xa5, limit * sizeof params[0]);
    for (unsigned i = 0; i < pieces; ++i) {
        params[i].mode = CUFILE_BATCH;
        params[i].fh = handle;
        params[i].u.batch = {memory.get(), static_cast<off_t>(i * piece), static_cast<off_t>(i * piece), piece};
        params[i].opcode = CUFILE_READ;
        params[i].cookie = &params[i];
    }
    ASSERT_EQ(cufile().BatchIOSubmit(batches[3], pieces, params.get(), 0).err, CU_FILE_SUCCESS);
    for (unsigned ended = 0; ended < pieces;) {
        unsigned count = limit;
        ASSERT_EQ(cufile().BatchIOGetStatus(batches[3], 0, &count, events.get(), nullptr).err, CU_FILE_SUCCESS);
        ended += count;
        std::this_thread::yield();
    }
    EXPECT_TRUE(holds(content, memory.get()));
    for (CUfileBatchHandle_t each : batches)
        cufile().BatchIODestroy(each);
    EXPECT_EQ(cufile().BufDeregister(memory.get()).err, CU_FILE_SUCCESS);
    cufile().HandleDeregister(handle);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().DriverClose_v2().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 0);
}

TEST_F(CufileCallers, NixlThreadsShareAHandle)
{
    const open_driver driver;
    const registered_file registered(file.descriptor());
    std::atomic<unsigned> whole{0};
    std::vector<std::thread> threads;
    for (std::size_t first = 0; first < 4; ++first)
        threads.emplace_back([&, first] {
            for (std::size_t i = first; i < pieces; i += 4) {
                std::byte* const to = memory.get() + i * piece;
                whole += cufile().Read(registered.handle, to, piece, static_cast<off_t>(i * piece), 0) ==
                         static_cast<ssize_t>(piece);
            }
        });
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(whole, pieces);
    EXPECT_TRUE(holds(content, memory.get()));
}

// LMCache: by ctypes, a file for each key, and the old name of cuFileDriverClose.

TEST_F(CufileCallers, LmcacheWritesAndReadsAFileForEachKey)
{
    void* const found = dlopen(cufile_library::path(), RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(found, nullptr);
    const auto close_driver = reinterpret_cast<CUfileError_t (*)()>(dlsym(found, "cuFileDriverClose"));
    ASSERT_NE(close_driver, nullptr);
    ASSERT_EQ(cufile().DriverOpen().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().BufRegister(memory.get(), file_bytes, 0).err, CU_FILE_SUCCESS); // all of its allocator
    std::copy(content.begin(), content.begin() + piece, memory.get());
    for (std::size_t key = 0; key < 20; ++key) {
        const std::string path = file.path() + "." + std::to_string(key);
        // Chunk 0 goes to the file; chunk `key` comes from it.
        for (const int flags : {O_CREAT | O_WRONLY | O_TRUNC | O_DIRECT, O_RDONLY | O_DIRECT}) {
            const int descriptor = open(path.c_str(), flags, 0644);
            CUfileHandle_t handle = nullptr;
            CUfileDescr_t description = description_of(descriptor);
            ASSERT_EQ(cufile().HandleRegister(&handle, &description).err, CU_FILE_SUCCESS);
            const ssize_t moved = flags & O_WRONLY
                                      ? cufile().Write(handle, memory.get(), piece, 0, 0)
                                      : cufile().Read(handle, memory.get(), piece, 0, static_cast<off_t>(key * piece));
            EXPECT_EQ(moved, static_cast<ssize_t>(piece)) << key;
            cufile().HandleDeregister(handle);
            close(descriptor);
        }
        unlink(path.c_str());
        EXPECT_EQ(std::memcmp(memory.get() + key * piece, content.data(), piece), 0) << key;
    }
    EXPECT_EQ(cufile().BufDeregister(memory.get()).err, CU_FILE_SUCCESS);
    EXPECT_EQ(close_driver().err, CU_FILE_SUCCESS);
    EXPECT_EQ(cufile().UseCount(), 0);
    dlclose(found);
}

// fio and PyTorch: the reason of a failed call is in errno. PyTorch opens nothing and closes nothing.

TEST_F(CufileCallers, FioFindsTheReasonInErrno)
{
    const int read_only = open(file.path().c_str(), O_RDONLY);
    {
        const open_driver driver;
        const registered_file registered(read_only);
        errno = 0;
        EXPECT_EQ(cufile().Write(registered.handle, memory.get(), piece, 0, 0), -1);
        EXPECT_EQ(errno, EBADF);
    }
    close(read_only);
}

/// Exits with 0 if all goes well; a handle, memory and a batch are still registered then.
[[noreturn]] void leave_all_open(int descriptor, std::byte* memory)
{
    CUfileHandle_t handle = nullptr;
    CUfileBatchHandle_t batch = nullptr;
    CUfileDescr_t description = description_of(descriptor);
    const bool registered = cufile().HandleRegister(&handle, &description).err == CU_FILE_SUCCESS &&
                            cufile().BufRegister(memory, file_bytes, 0).err == CU_FILE_SUCCESS &&
                            cufile().BatchIOSetUp(&batch, 10).err == CU_FILE_SUCCESS;
    auto operations = ten_reads(handle, memory);
    const bool submitted = cufile().BatchIOSubmit(batch, 10, operations.data(), 0).err == CU_FILE_SUCCESS;
    const bool read = cufile().Read(handle, memory, file_bytes, 0, 0) == static_cast<ssize_t>(file_bytes);
    std::exit(registered && submitted && read && cufile().UseCount() == 1 ? 0 : 1);
}

TEST_F(CufileCallers, TorchOpensNoDriverAndExitsWithItOpen)
{
    EXPECT_EXIT(leave_all_open(file.descriptor(), memory.get()), testing::ExitedWithCode(0), "");
}

} // namespace

} // namespace weftio::test
