// Files read into memory of a GPU and written from it; kernels there that have it done.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "fixture.hpp"
#include "storage/context.hpp"
#include "storage/recognition.hpp"
#include "unit/files/scratch_file.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"
#include "weftio/file_queue.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(read_shares, "gpu.kernel.h");

namespace weftio::test {
namespace {

class GpuFiles : public gpu_fixture {
 protected:
    static constexpr std::size_t bytes = std::size_t{8} << 20;

    GpuFiles()
    {
        for (std::size_t at = 0; at < bytes;)
            at += static_cast<std::size_t>(
                std::max<ssize_t>(0, pwrite(scratch.descriptor(), &content[at], bytes - at, static_cast<off_t>(at))));
    }
    /// What a memory of the GPU holds.
    std::vector<std::byte> seen(const memory& memory)
    {
        const dma_engine copies;
        const weftio::memory here = cpu.allocate(memory.bytes(), memory_kind::cpu_device);
        const memory_region from(copies, memory), to(copies, here);
        dma_queue queue_of_copies(copies, cpu, {.entries = 64});
        EXPECT_TRUE(queue_of_copies.submit(
            dma_copy{.source = from.buffer(), .destination = to.buffer(), .bytes = memory.bytes()}));
        EXPECT_EQ(weftio_dev_dma_commit_wait(queue_of_copies.handle(), patience_ns), WEFTIO_DEV_OK);
        const auto* const first = static_cast<const std::byte*>(here.cpu_address());
        return {first, first + memory.bytes()};
    }

    const scratch_file scratch;
    std::vector<std::byte> content = pattern(bytes, 17);
    file_engine engine;
    file one{engine, scratch.descriptor()};
    device cpu = device::open("cpu");
    file_queue queue{engine, cpu, {.entries = 64}};
};

} // namespace

/// Any place and length, device memory and pinned memory, both directions.
TEST_F(GpuFiles, AreReadAndWrittenAsAModelIs)
{
    const memory there = gpu().allocate(bytes, memory_kind::device),
                 pinned = gpu().allocate(bytes, memory_kind::cpu_device);
    const memory_region regions[] = {{engine, there}, {engine, pinned}};
    std::vector<std::byte> models[] = {std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
    std::minstd_rand random(5);
    for (unsigned step = 0; step < 600; ++step) {
        const std::size_t which = random() % 2;
        const std::size_t count = 1 + random() % (random() % 8 ? 5000 : bytes / 2);
        const std::size_t offset = random() % (bytes - count), at = random() % (bytes - count);
        const file_transfer wanted{.file = one.key(),
                                   .file_offset = offset,
                                   .buffer = regions[which].buffer(),
                                   .buffer_offset = at,
                                   .bytes = count};
        const bool reads = random() % 2;
        ASSERT_TRUE(reads ? queue.submit_read(wanted, WEFTIO_DEV_FILE_FENCE)
                          : queue.submit_write(wanted, WEFTIO_DEV_FILE_FENCE));
        std::memcpy(reads ? &models[which][at] : &content[offset], reads ? &content[offset] : &models[which][at],
                    count);
        if (step % 32 == 31) {
            ASSERT_EQ(weftio_dev_file_commit_wait(queue.handle(), patience_ns), WEFTIO_DEV_OK);
        }
    }
    ASSERT_EQ(weftio_dev_file_commit_wait(queue.handle(), patience_ns), WEFTIO_DEV_OK);
    EXPECT_TRUE(seen(there) == models[0]);
    EXPECT_EQ(std::memcmp(pinned.cpu_address(), models[1].data(), bytes), 0);
    std::vector<std::byte> in_file(bytes);
    ASSERT_EQ(pread(scratch.descriptor(), in_file.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(in_file == content);
}

/// Each lane of some blocks reads its share, waits, and finds the bytes: in the GPU's memory, and in pinned memory.
TEST_F(GpuFiles, AreReadByKernels)
{
    constexpr std::uint32_t blocks = 4, lanes = 64, share = 4096, all = blocks * lanes * share;
    file_queue of_kernel(engine, gpu(), {.entries = 256});
    for (const memory_kind kind : {memory_kind::device, memory_kind::cpu_device}) {
        const memory into = gpu().allocate(all, kind), expected = gpu().allocate(all, memory_kind::cpu_device);
        std::memcpy(expected.cpu_address(), content.data(), all);
        const memory_region region(engine, into);
        const shared_words results(gpu(), 2);
        running_kernel running =
            gpu().launch(read_shares_kernel, {blocks, lanes}, of_kernel, one.key(), region.buffer(),
                         static_cast<const weftio_u8*>(expected.device_address()), share, results.on_device());
        ASSERT_TRUE(running.wait_for(patience)) << running.dump();
        EXPECT_EQ(results.all(), (std::vector<std::uint32_t>{0, blocks * lanes}));
    }
    EXPECT_EQ(of_kernel.counters().read, 2 * blocks * lanes);
}

/// By the number of the GPU, host's transfers and kernels' entries alike.
TEST_F(GpuFiles, AreCountedByGpu)
{
    const scratch_file configuration;
    const std::string_view wanted = R"({"profile": {"cufile_stats": 3}})";
    ASSERT_EQ(pwrite(configuration.descriptor(), wanted.data(), wanted.size(), 0), static_cast<ssize_t>(wanted.size()));
    const file_engine counting({.configuration = configuration.path()});
    const file counted(counting, scratch.descriptor());
    const memory there = gpu().allocate(8192, memory_kind::device);
    ASSERT_EQ(counted.read(there, 5000, 0).bytes, 5000);
    const auto number = static_cast<std::size_t>(detail::internals::backend(gpu()).cuda_number());
    const storage::live_statistics& page = detail::internals::share(counting)->counts.page();
    std::uint64_t operations = 0, moved = 0;
    for (const auto& way : page.gpus[number]) {
        operations += way.operations;
        moved += way.bytes;
    }
    EXPECT_EQ(operations, 1u);
    EXPECT_EQ(moved, 5000u);
}

/// NVIDIA's own library, where the CUDA toolkit has it, beside the way that stages.
TEST_F(GpuFiles, GoByNvidiasLibrary)
{
    const std::string library = storage::find_vendor_library("/");
    if (library.empty())
        GTEST_SKIP() << "no libcufile.so.0 of NVIDIA's";
    std::optional<file_engine> vendors;
    try {
        vendors.emplace(file_engine_options{.only = file_way::cufile});
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    const file by_library(*vendors, scratch.descriptor());
    const memory there = gpu().allocate(bytes, memory_kind::device);
    const file_buffer buffer(*vendors, there);
    if (by_library.read(there, 100, 0).error == EOPNOTSUPP)
        GTEST_SKIP() << library << " refuses the file (docs/troubleshooting.md, \"NVIDIA's library\")";
    std::vector<std::byte> model(bytes);
    std::memcpy(model.data(), content.data(), 100);
    std::minstd_rand random(7);
    for (unsigned step = 0; step < 60; ++step) {
        const std::size_t count = 1 + random() % (random() % 4 ? 5000 : bytes / 2);
        const std::size_t offset = random() % (bytes - count), at = random() % (bytes - count);
        const bool reads = random() % 2;
        const file_memory where = step % 2 ? file_memory(buffer, at) : file_memory(there, at);
        const file_result result =
            reads ? by_library.read(where, count, offset) : by_library.write(where, count, offset);
        ASSERT_EQ(result.error, 0) << step;
        ASSERT_EQ(result.bytes, static_cast<std::int64_t>(count));
        ASSERT_EQ(result.way, file_way::cufile);
        std::memcpy(reads ? &model[at] : &content[offset], reads ? &content[offset] : &model[at], count);
    }
    EXPECT_TRUE(seen(there) == model);
    const file_result end = by_library.read(buffer, 4096, bytes - 100);
    EXPECT_EQ(end.bytes, 100);
    EXPECT_EQ(end.error, 0);
    EXPECT_EQ(vendors->counters().of(file_way::cufile).operations(), 62U);
}

} // namespace weftio::test
