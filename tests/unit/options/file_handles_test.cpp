// A kernel with WEFTIO_DEV_CHECKS refuses what is no handle of a file queue; device::launch does for all kernels.
#include "checked_file_kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(tries_file_handle, "checked_file_kernels.h");

namespace weftio::test {
namespace {

using testing::Each;
using testing::HasSubstr;

class FileHandles : public testing::Test {
 protected:
    FileHandles() { unlink(name_); }
    ~FileHandles() override { close(descriptor_); }

    std::vector<weftio_u32> tried(weftio_dev_file_queue* files)
    {
        const file_handle given{files, array.handle(), one.key()};
        memory hidden = cpu.allocate(sizeof given, memory_kind::cpu_device);
        hidden.upload(&given, sizeof given);
        const shared_words said(cpu, FILE_ANSWERS);
        running_kernel kernel = cpu.launch(tries_file_handle_kernel, {.blocks = 1, .lanes = 1},
                                           static_cast<file_handle*>(hidden.device_address()), said.on_device());
        EXPECT_TRUE(kernel.wait_for(patience));
        return said.all();
    }

 private:
    char name_[32] = "/tmp/weftio-handles-XXXXXX";
    const int descriptor_ = mkstemp(name_);

 protected:
    device cpu = device::open("cpu");
    file_engine engine;
    file one{engine, descriptor_};
    file_queue queue{engine, cpu, {.entries = 64}};
    buf_arr array{engine, cpu, {.count = 1, .buffer_bytes = 64}};
};

TEST_F(FileHandles, AreTakenByAKernelThatChecks)
{
    std::vector<weftio_u32> expected(FILE_ANSWERS, 0);
    expected.back() = 1;
    EXPECT_EQ(tried(queue.handle()), expected);
}

TEST_F(FileHandles, OfAnotherKindOrVersionAreRefusedByAKernelThatChecks)
{
    dma_engine copies;
    dma_queue other(copies, cpu, {.entries = 64});
    weftio_dev_file_queue newer = *queue.handle();
    newer.queue.abi += 0x10000;
    std::vector<weftio_u32> expected(FILE_ANSWERS, static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT));
    expected[FILE_STATUSES] = 1; // an end is wanted
    expected.back() = 0;
    EXPECT_EQ(tried(&newer), expected);
    const std::vector<weftio_u32> said = tried(reinterpret_cast<weftio_dev_file_queue*>(other.handle()));
    EXPECT_EQ(said[0], static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)) << "no reads for a DMA engine";
    EXPECT_EQ(said[8], static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)) << "no results of copies";
}

/// A file queue's kernel, without checks of its own.
inline void takes_files(weftio_dev_file_queue*) {}

TEST_F(FileHandles, OfAnotherKindAreRefusedByLaunch)
{
    dma_engine copies;
    dma_queue other(copies, cpu, {.entries = 64});
    const kernel<weftio_dev_file_queue*> takes{
        .name = "takes_files", .function = takes_files, .source = {}, .cuda_image = {}};
    EXPECT_THAT(error_of([&] {
                    (void)cpu.launch(takes, {.blocks = 1, .lanes = 1},
                                     reinterpret_cast<weftio_dev_file_queue*>(other.handle()));
                }).what(),
                HasSubstr(fmt::format("it is a dma_queue of version {0} and 128 bytes, the kernel takes a "
                                      "file_queue of version {0} and 128 bytes",
                                      WEFTIO_DEV_ABI_VERSION)));
}

} // namespace
} // namespace weftio::test
