// Copies by tasks of the CPU and by kernels: bytes arrive, wrong ranges are refused, stops wait for what is in
// progress.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "doca_buf_inventory.h"
#include "doca_dma.h"
#include "doca_gpunetio_dev_dma.cuh"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

constexpr std::size_t megabyte = 1 << 20;

/// An mmap of bytes of the host.
struct host_bytes {
    void make(doca_dev* dev, std::size_t size, std::uint8_t fill)
    {
        bytes.assign(size + 16, fill);
        DOCA_OK(doca_mmap_create(&mmap));
        DOCA_OK(doca_mmap_add_dev(mmap, dev));
        DOCA_OK(doca_mmap_set_memrange(mmap, begin(), size));
        DOCA_OK(doca_mmap_start(mmap));
    }
    void end() { DOCA_OK(doca_mmap_destroy(mmap)); }
    std::uint8_t* begin() { return bytes.data() + 16; } // not aligned, as malloc() returns it
    std::vector<std::uint8_t> bytes;
    doca_mmap* mmap = nullptr;
};

/// What the callbacks of tasks have noted.
struct notes {
    std::vector<std::uint64_t> good, bad;
    std::vector<doca_error_t> errors;
};

void note_good(doca_dma_task_memcpy* task, doca_data task_data, doca_data context_data)
{
    static_cast<notes*>(context_data.ptr)->good.push_back(task_data.u64);
    EXPECT_EQ(doca_task_get_status(doca_dma_task_memcpy_as_task(task)), DOCA_SUCCESS);
}
void note_bad(doca_dma_task_memcpy* task, doca_data task_data, doca_data context_data)
{
    auto& to = *static_cast<notes*>(context_data.ptr);
    to.bad.push_back(task_data.u64);
    to.errors.push_back(doca_task_get_status(doca_dma_task_memcpy_as_task(task)));
}

class DocaDma : public DocaDevices {
 protected:
    void SetUp() override
    {
        DocaDevices::SetUp();
        DOCA_OK(doca_dma_create(first, &dma));
        context = doca_dma_as_ctx(dma);
        from.make(first, megabyte, 1);
        to.make(first, megabyte, 2);
    }
    void TearDown() override
    {
        from.end();
        to.end();
        DOCA_OK(doca_dma_destroy(dma));
        DocaDevices::TearDown();
    }
    void start_tasks(std::uint32_t tasks)
    {
        DOCA_OK(doca_dma_task_memcpy_set_conf(dma, note_good, note_bad, tasks));
        DOCA_OK(doca_ctx_set_user_data(context, {.ptr = &noted}));
        DOCA_OK(doca_pe_create(&pe));
        DOCA_OK(doca_pe_connect_ctx(pe, context));
        DOCA_OK(doca_ctx_start(context));
        DOCA_OK(doca_buf_inventory_create(tasks * 2, &inventory));
        DOCA_OK(doca_buf_inventory_start(inventory));
    }
    void end_tasks()
    {
        DOCA_OK(doca_buf_inventory_destroy(inventory));
        DOCA_OK(doca_pe_destroy(pe));
    }
    /// Submits the copy of `bytes` bytes at `offset` of one mmap to the same place of the other.
    doca_task* submit(doca_mmap* source, doca_mmap* target, std::size_t offset, std::size_t bytes, std::uint64_t number)
    {
        doca_buf *data = nullptr, *room = nullptr;
        doca_dma_task_memcpy* task = nullptr;
        EXPECT_EQ(doca_buf_inventory_buf_get_by_data(inventory, source, from.begin() + offset, bytes, &data),
                  DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory, target, to.begin() + offset, bytes, &room),
                  DOCA_SUCCESS);
        EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma, data, room, {.u64 = number}, &task), DOCA_SUCCESS);
        EXPECT_EQ(doca_task_submit(doca_dma_task_memcpy_as_task(task)), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_dec_refcount(data, nullptr), DOCA_SUCCESS); // tasks keep them
        EXPECT_EQ(doca_buf_dec_refcount(room, nullptr), DOCA_SUCCESS);
        return doca_dma_task_memcpy_as_task(task);
    }
    void progress_until_ended(std::size_t tasks)
    {
        for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
             noted.good.size() + noted.bad.size() < tasks && std::chrono::steady_clock::now() < end;)
            doca_pe_progress(pe);
    }
    doca_ctx_states state()
    {
        doca_ctx_states now = DOCA_CTX_STATE_STARTING;
        EXPECT_EQ(doca_ctx_get_state(context, &now), DOCA_SUCCESS);
        return now;
    }

    doca_dma* dma = nullptr;
    doca_ctx* context = nullptr;
    doca_pe* pe = nullptr;
    doca_buf_inventory* inventory = nullptr;
    host_bytes from, to;
    notes noted;
};

TEST_F(DocaDma, TasksCopyInOrderAndCallBack)
{
    start_tasks(16);
    std::vector<doca_task*> tasks;
    for (std::uint32_t task = 0; task < 16; ++task)
        tasks.push_back(submit(from.mmap, to.mmap, task * 65536, 65536, task));
    EXPECT_EQ(doca_task_get_status(tasks[15]), DOCA_ERROR_IN_PROGRESS);
    progress_until_ended(16);
    ASSERT_EQ(noted.good.size(), 16u);
    for (std::uint32_t task = 0; task < 16; ++task)
        EXPECT_EQ(noted.good[task], task);
    EXPECT_TRUE(std::equal(from.begin(), from.begin() + megabyte, to.begin()));
    EXPECT_EQ(to.bytes[15], 2u);
    for (auto* task : tasks)
        doca_task_free(task);
    DOCA_OK(doca_ctx_stop(context));
    EXPECT_EQ(state(), DOCA_CTX_STATE_IDLE);
    end_tasks();
}

TEST_F(DocaDma, TasksThatFailChangeNothingForThoseBehindThem)
{
    start_tasks(5);
    host_bytes foreign; // of an mmap that does not have the device
    foreign.make(second, megabyte, 3);
    doca_buf *data = nullptr, *room = nullptr;
    doca_dma_task_memcpy* wrong = nullptr;
    DOCA_OK(doca_buf_inventory_buf_get_by_data(inventory, foreign.mmap, foreign.begin(), 100, &data));
    DOCA_OK(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, to.begin() + 3000, 100, &room));
    DOCA_OK(doca_dma_task_memcpy_alloc_init(dma, data, room, {.u64 = 2}, &wrong));
    std::vector<doca_task*> tasks{submit(from.mmap, to.mmap, 0, 1000, 0), submit(from.mmap, to.mmap, 1000, 1000, 1),
                                  doca_dma_task_memcpy_as_task(wrong)};
    DOCA_OK(doca_task_submit(tasks[2]));
    tasks.push_back(submit(from.mmap, to.mmap, 4000, 1000, 3));
    tasks.push_back(submit(from.mmap, to.mmap, 5000, 1000, 4));
    progress_until_ended(5);
    EXPECT_EQ(noted.good, (std::vector<std::uint64_t>{0, 1, 3, 4}));
    EXPECT_EQ(noted.bad, std::vector<std::uint64_t>{2});
    EXPECT_EQ(noted.errors, std::vector<doca_error_t>{DOCA_ERROR_IO_FAILED});
    EXPECT_EQ(to.begin()[3000], 2u);
    EXPECT_EQ(to.begin()[5999], 1u);
    for (auto* task : tasks)
        doca_task_free(task);
    foreign.end();
    end_tasks();
}

TEST_F(DocaDma, StopsOnlyWhenTheLastTaskHasEnded)
{
    start_tasks(2);
    auto* task = submit(from.mmap, to.mmap, 0, megabyte, 7);
    EXPECT_EQ(doca_ctx_stop(context), DOCA_ERROR_IN_PROGRESS);
    EXPECT_EQ(state(), DOCA_CTX_STATE_STOPPING);
    EXPECT_EQ(doca_ctx_start(context), DOCA_ERROR_BAD_STATE);
    doca_task_free(task); // refused: it is in progress
    progress_until_ended(1);
    EXPECT_EQ(noted.good, std::vector<std::uint64_t>{7});
    EXPECT_EQ(state(), DOCA_CTX_STATE_IDLE);
    EXPECT_EQ(doca_task_submit(task), DOCA_ERROR_INVALID_VALUE); // its destination is full
    doca_task_free(task);
    DOCA_OK(doca_ctx_start(context));
    DOCA_OK(doca_ctx_stop(context));
    end_tasks();
}

TEST_F(DocaDma, TasksEndWithTheirContext)
{
    start_tasks(2);
    auto* task = submit(from.mmap, to.mmap, 0, megabyte, 7);
    doca_dma* other = nullptr;
    DOCA_OK(doca_dma_create(first, &other));
    std::swap(dma, other);
    DOCA_OK(doca_dma_destroy(other));
    EXPECT_EQ(doca_task_get_status(task), DOCA_ERROR_SHUTDOWN);
    EXPECT_EQ(doca_task_submit(task), DOCA_ERROR_BAD_STATE);
    doca_task_free(task);
    EXPECT_TRUE(noted.good.empty() && noted.bad.empty());
    end_tasks();
}

TEST_F(DocaDma, RefusesBuffersAndTasksThatDoNotFit)
{
    start_tasks(1);
    doca_buf *data = nullptr, *room = nullptr, *third = nullptr;
    doca_dma_task_memcpy *task = nullptr, *second_task = nullptr;
    auto* beyond = to.begin() + megabyte - 99;
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, beyond, 100, &room), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, to.begin() - 1, 9, &room),
              DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_buf_inventory_buf_get_by_data(inventory, from.mmap, from.begin(), 100, &data));
    DOCA_OK(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, beyond, 99, &room));
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, to.begin(), 1, &third), DOCA_ERROR_NO_MEMORY);
    EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma, data, room, {}, &task), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma, room, data, {}, &task), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_buf_dec_refcount(room, nullptr));
    DOCA_OK(doca_buf_inventory_buf_get_by_addr(inventory, to.mmap, beyond - 1, 100, &room));
    DOCA_OK(doca_dma_task_memcpy_alloc_init(dma, data, room, {}, &task));
    EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma, data, room, {}, &second_task), DOCA_ERROR_NO_MEMORY);
    doca_task_free(doca_dma_task_memcpy_as_task(task));
    EXPECT_EQ(doca_dma_task_memcpy_as_task(task), nullptr);
    std::uint16_t before = 0;
    DOCA_OK(doca_buf_dec_refcount(data, &before));
    EXPECT_EQ(before, 1u);
    EXPECT_EQ(doca_buf_dec_refcount(data, nullptr), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_buf_dec_refcount(room, nullptr));
    end_tasks();
}

/// What a kernel tells the test.
struct copied {
    doca_error_t status[3] = {};
    std::uint32_t wrong = 0;
};

/// Copies element by element, a block's lanes at once, and looks at the last byte as soon as the commit has returned.
void copy(doca_gpu_dma* dma, doca_gpu_buf_arr* source, doca_gpu_buf_arr* target, std::uint32_t count, copied* out)
{
    doca_gpu_buf *one = nullptr, *other = nullptr;
    for (std::uint32_t element = weftio_lane(); element < count; element += weftio_block_lanes()) {
        doca_gpu_dev_buf_get_buf(source, element, &one);
        doca_gpu_dev_buf_get_buf(target, element, &other);
        out->wrong += doca_gpu_dev_dma_memcpy(dma, one, 1, other, 1, one->bytes - 1) != DOCA_SUCCESS;
    }
    weftio_block_barrier();
    if (weftio_lane())
        return;
    out->status[0] = doca_gpu_dev_dma_commit(dma);
    doca_gpu_dev_buf_get_buf(source, count - 1, &one);
    doca_gpu_dev_buf_get_buf(target, count - 1, &other);
    out->wrong += *reinterpret_cast<std::uint8_t*>(other->address + other->bytes - 1) !=
                  *reinterpret_cast<std::uint8_t*>(one->address + one->bytes - 1);
    out->status[1] = doca_gpu_dev_dma_commit(dma); // of nothing
}

/// Arguments that are refused, and then a copy that only the engine refuses.
void copy_wrongly(doca_gpu_dma* dma, doca_gpu_buf_arr* source, doca_gpu_buf_arr* target, copied* out)
{
    doca_gpu_buf *one = nullptr, *other = nullptr;
    doca_gpu_dev_buf_get_buf(source, 0, &one);
    doca_gpu_dev_buf_get_buf(target, 0, &other);
    for (const doca_error_t status :
         {doca_gpu_dev_dma_memcpy(nullptr, one, 0, other, 0, 1), doca_gpu_dev_dma_memcpy(dma, nullptr, 0, other, 0, 1),
          doca_gpu_dev_dma_memcpy(dma, one, 0, nullptr, 0, 1), doca_gpu_dev_dma_memcpy(dma, one, 0, other, 0, 0),
          doca_gpu_dev_dma_memcpy(dma, one, 1, other, 0, one->bytes),
          doca_gpu_dev_dma_memcpy(dma, one, 0, other, 1, other->bytes),
          doca_gpu_dev_dma_memcpy(dma, one, ~0ull, other, 0, 2), doca_gpu_dev_dma_commit(nullptr)})
        out->wrong += status != DOCA_ERROR_INVALID_VALUE;
    out->status[0] = doca_gpu_dev_dma_memcpy(dma, one, 0, other, 0, 8);
    out->status[1] = doca_gpu_dev_dma_commit(dma);
    out->status[2] = doca_gpu_dev_dma_commit(dma);
}

class DocaKernelDma : public DocaDma {
 protected:
    /// `count` elements of an mmap, for kernels.
    doca_gpu_buf_arr* elements(doca_mmap* mmap, std::size_t count, std::size_t bytes)
    {
        doca_gpu_buf_arr* handle = nullptr;
        arrays.push_back(nullptr);
        EXPECT_EQ(doca_buf_arr_create(count, &arrays.back()), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_set_target_gpu(arrays.back(), gpu), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_set_params(arrays.back(), mmap, bytes, 0), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_start(arrays.back()), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_get_gpu_handle(arrays.back(), &handle), DOCA_SUCCESS);
        return handle;
    }
    void start()
    {
        EXPECT_EQ(doca_dma_get_gpu_handle(dma, &handle), DOCA_ERROR_BAD_STATE);
        DOCA_OK(doca_ctx_set_datapath_on_gpu(context, gpu));
        DOCA_OK(doca_ctx_start(context));
        DOCA_OK(doca_dma_get_gpu_handle(dma, &handle));
    }
    void end()
    {
        DOCA_OK(doca_ctx_stop(context));
        for (auto* array : arrays)
            DOCA_OK(doca_buf_arr_destroy(array));
    }
    doca_gpu_dma* handle = nullptr;
    std::vector<doca_buf_arr*> arrays;
    copied out;
};

TEST_F(DocaKernelDma, CopiesAreThereWhenTheCommitReturns)
{
    mapped on_gpu;
    on_gpu.make(gpu, first, megabyte);
    std::fill_n(static_cast<std::uint8_t*>(on_gpu.cpu_memory), megabyte, 9);
    start();
    auto* host = elements(to.mmap, 4096, 256);
    auto* device = elements(on_gpu.mmap, 4096, 256);
    auto one_way = launch(copy, 1u, handle, device, host, 1000u, &out);
    ASSERT_TRUE(one_way.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(out.wrong, 0u);
    EXPECT_EQ(out.status[0], DOCA_SUCCESS);
    EXPECT_EQ(out.status[1], DOCA_SUCCESS);
    EXPECT_EQ(to.begin()[256 * 999], 2u); // the first byte of each element is left out
    EXPECT_EQ(to.begin()[256 * 999 + 1], 9u);
    EXPECT_EQ(to.begin()[256 * 1000 + 1], 2u);
    to.begin()[256 * 7 + 5] = 77;
    auto other_way = launch(copy, 8u, handle, host, device, 64u, &out);
    ASSERT_TRUE(other_way.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(out.wrong, 0u);
    EXPECT_EQ(static_cast<std::uint8_t*>(on_gpu.cpu_memory)[256 * 7 + 5], 77u);
    end();
    on_gpu.end();
}

TEST_F(DocaKernelDma, WrongRangesAreRefusedAndFailuresReported)
{
    start();
    host_bytes foreign;
    foreign.make(second, 4096, 3);
    auto* wrong = elements(foreign.mmap, 1, 4096);
    auto kernel = launch(copy_wrongly, 1u, handle, elements(from.mmap, 1, 4096), wrong, &out);
    ASSERT_TRUE(kernel.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(out.wrong, 0u);
    EXPECT_EQ(out.status[0], DOCA_SUCCESS);
    EXPECT_EQ(out.status[1], DOCA_ERROR_IO_FAILED);
    EXPECT_EQ(out.status[2], DOCA_ERROR_IO_FAILED);
    EXPECT_EQ(foreign.begin()[0], 3u);
    end();
    foreign.end();
}

TEST_F(DocaKernelDma, UncommittedCopiesFillTheQueue)
{
    start();
    auto* host = elements(to.mmap, 2, 16);
    auto fill = [](doca_gpu_dma* dma, doca_gpu_buf_arr* array, copied* result) {
        doca_gpu_buf *one = nullptr, *other = nullptr;
        doca_gpu_dev_buf_get_buf(array, 0, &one);
        doca_gpu_dev_buf_get_buf(array, 1, &other);
        for (std::uint32_t entry = 0; entry <= 1024; ++entry)
            result->wrong += doca_gpu_dev_dma_memcpy(dma, one, 0, other, 0, 16) == DOCA_ERROR_FULL;
        result->status[0] = doca_gpu_dev_dma_commit(dma);
    };
    void (*function)(doca_gpu_dma*, doca_gpu_buf_arr*, copied*) = fill;
    auto kernel = launch(function, 1u, handle, host, &out);
    ASSERT_TRUE(kernel.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(out.wrong, 1u);
    EXPECT_EQ(out.status[0], DOCA_SUCCESS);
    end();
}

} // namespace
} // namespace weftio::test
