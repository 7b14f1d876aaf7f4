// The CUDA context of the caller's thread stays what it was, whatever Weftio does with GPUs. A stand-in is the driver.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "stand_in.hpp"
#include "unit/files/scratch_file.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

/// A thread of its own, in which the context of GPU 1, or none, is current; work is on GPU 0.
class CudaContext : public testing::TestWithParam<bool> {
 protected:
    static constexpr std::size_t bytes = 3 << 20;

    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        void *first = nullptr, *second = nullptr;
        ASSERT_EQ(driver().retain(&first, 0) + driver().retain(&second, 1), 0);
        driver().set_current(first);
        ASSERT_EQ(driver().allocate(&memory, bytes), 0);
        mine = GetParam() ? second : nullptr;
        driver().set_current(mine);
        ASSERT_EQ(current(), mine);
    }
    void TearDown() override
    {
        if (!memory)
            return;
        EXPECT_EQ(current(), mine);
        void* first = nullptr;
        driver().retain(&first, 0);
        driver().set_current(first);
        EXPECT_EQ(driver().release(memory), 0);
        driver().set_current(nullptr);
    }
    static void* current()
    {
        void* seen = nullptr;
        driver().get_current(&seen);
        return seen;
    }

    std::byte* memory = nullptr; ///< of GPU 0
    void* mine = nullptr;
};

TEST_P(CudaContext, StaysWhereADeviceIsOpenedAndHasMemory)
{
    std::vector<std::byte> content = pattern(bytes, 5), seen(bytes);
    {
        const device gpu = device::open("cuda:0");
        EXPECT_EQ(current(), mine) << "opened";
        for (const memory_kind kind : {memory_kind::device, memory_kind::cpu_device}) {
            weftio::memory made = gpu.allocate(bytes, kind);
            EXPECT_EQ(current(), mine) << "allocated";
            made.upload(content.data(), bytes);
            EXPECT_EQ(current(), mine) << "uploaded";
        }
        const weftio::memory adopted = gpu.adopt(memory, bytes);
        EXPECT_EQ(current(), mine) << "adopted";
    }
    EXPECT_EQ(current(), mine) << "closed";
}

TEST_P(CudaContext, StaysWhereFilesAreReadAndWritten)
{
    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(bytes, 6);
    ASSERT_EQ(pwrite(scratch.descriptor(), content.data(), bytes, 0), static_cast<ssize_t>(bytes));
    {
        const file_engine engine;
        const file on(engine, scratch.descriptor());
        const file_result read = on.read(memory, bytes, 0); // the first of this GPU opens it
        EXPECT_EQ(read.bytes, static_cast<std::int64_t>(bytes));
        EXPECT_EQ(read.fall, file_fall::no_direct);
        EXPECT_EQ(current(), mine) << "read";
        EXPECT_TRUE(std::equal(content.begin(), content.end(), memory));
        const file_buffer buffer(engine, memory, bytes);
        EXPECT_EQ(current(), mine) << "registered";
        EXPECT_EQ(on.write(buffer, bytes, bytes).bytes, static_cast<std::int64_t>(bytes));
        EXPECT_EQ(current(), mine) << "written";
        file_batch batch(engine, 4);
        EXPECT_EQ(current(), mine) << "a batch made";
        const file_operation half{.on = &on, .memory = buffer, .bytes = bytes / 2, .offset = bytes};
        std::fill_n(memory, bytes / 2, std::byte{0});
        ASSERT_TRUE(batch.submit({&half, 1}));
        EXPECT_EQ(current(), mine) << "submitted";
        file_event event;
        EXPECT_EQ(batch.status(1, {&event, 1}, std::chrono::minutes(1)), 1u);
        EXPECT_EQ(current(), mine) << "waited for";
        EXPECT_EQ(event.result.bytes, static_cast<std::int64_t>(bytes / 2));
        EXPECT_TRUE(std::equal(content.begin(), content.begin() + bytes / 2, memory));
    }
    EXPECT_EQ(current(), mine) << "ended";
}

INSTANTIATE_TEST_SUITE_P(OfAThread, CudaContext, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfAnotherGpu" : "None"; });

} // namespace

} // namespace weftio::test
