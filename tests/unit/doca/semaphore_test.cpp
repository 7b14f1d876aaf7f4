// Semaphores between a kernel and the CPU.
#include <chrono>

#include "doca_gpunetio_dev_sem.cuh"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t items = 16;

/// Hands `rounds` items to the CPU, each once it is free, and in both spellings.
void produce(doca_gpu_semaphore_gpu* semaphore, std::uint32_t rounds, std::uint32_t* wrong)
{
    for (std::uint32_t index = 0; index < rounds; ++index) {
        doca_gpu_semaphore_status status = DOCA_GPU_SEMAPHORE_STATUS_ERROR;
        for (std::uint32_t attempt = 0; status != DOCA_GPU_SEMAPHORE_STATUS_FREE; ++attempt) {
            *wrong += doca_gpu_dev_semaphore_get_status(semaphore, index, &status) != DOCA_SUCCESS;
            weftio_relax(attempt);
        }
        void* info = nullptr;
        *wrong += doca_gpu_dev_semaphore_get_custom_info_addr(semaphore, index, &info) != DOCA_SUCCESS;
        *static_cast<std::uint32_t*>(info) = index * 3;
        *wrong += (index % 2 ? doca_gpu_dev_semaphore_set_status : doca_gpu_dev_sem_set_status)(
                      semaphore, index, DOCA_GPU_SEMAPHORE_STATUS_READY) != DOCA_SUCCESS;
    }
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    *wrong += doca_gpu_dev_sem_set_packet_info(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD, 5, 700) != DOCA_SUCCESS;
    *wrong += doca_gpu_dev_sem_get_packet_info_status(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_READY, &count, &first) !=
              DOCA_ERROR_NOT_FOUND;
    *wrong += doca_gpu_dev_sem_get_packet_info_status(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD, &count, &first) !=
                  DOCA_SUCCESS ||
              count != 5 || first != 700;
    *wrong += doca_gpu_dev_semaphore_set_status(nullptr, 0, DOCA_GPU_SEMAPHORE_STATUS_FREE) != DOCA_ERROR_INVALID_VALUE;
}

class DocaSemaphore : public DocaDevices {
 protected:
    void SetUp() override
    {
        DocaDevices::SetUp();
        DOCA_OK(doca_gpu_semaphore_create(gpu, &semaphore));
    }
    void TearDown() override
    {
        DOCA_OK(doca_gpu_semaphore_destroy(semaphore));
        DocaDevices::TearDown();
    }
    doca_gpu_semaphore* semaphore = nullptr;
};

TEST_F(DocaSemaphore, HandsItemsFromAKernelToTheCpu)
{
    doca_gpu_semaphore_gpu* handle = nullptr;
    DOCA_OK(doca_gpu_semaphore_set_memory_type(semaphore, DOCA_GPU_MEM_TYPE_CPU_GPU));
    DOCA_OK(doca_gpu_semaphore_set_items_num(semaphore, items));
    DOCA_OK(doca_gpu_semaphore_set_custom_info(semaphore, sizeof(std::uint32_t), DOCA_GPU_MEM_TYPE_CPU_GPU));
    DOCA_OK(doca_gpu_semaphore_start(semaphore));
    DOCA_OK(doca_gpu_semaphore_get_gpu_handle(semaphore, &handle));
    std::uint32_t wrong = 0;
    auto kernel = launch(produce, 1u, handle, 100u, &wrong);
    for (std::uint32_t index = 0; index < 100; ++index) {
        doca_gpu_semaphore_status status{};
        do
            DOCA_OK(doca_gpu_semaphore_get_status(semaphore, index, &status));
        while (status != DOCA_GPU_SEMAPHORE_STATUS_READY && kernel.alive());
        void* info = nullptr;
        DOCA_OK(doca_gpu_semaphore_get_custom_info_addr(semaphore, index, &info));
        EXPECT_EQ(*static_cast<std::uint32_t*>(info), index * 3);
        if (index < 99) {
            DOCA_OK(doca_gpu_semaphore_set_status(semaphore, index, DOCA_GPU_SEMAPHORE_STATUS_FREE));
        }
    }
    ASSERT_TRUE(kernel.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(wrong, 0u);
    DOCA_OK(doca_gpu_semaphore_stop(semaphore));
}

TEST_F(DocaSemaphore, IsConfiguredThenStartedAndHidesWhatOnlyKernelsUse)
{
    doca_gpu_semaphore_gpu* handle = nullptr;
    doca_gpu_semaphore_status status{};
    void* info = nullptr;
    EXPECT_EQ(doca_gpu_semaphore_start(semaphore), DOCA_ERROR_BAD_STATE); // no items
    EXPECT_EQ(doca_gpu_semaphore_get_gpu_handle(semaphore, &handle), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_gpu_semaphore_set_items_num(semaphore, 0), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_gpu_semaphore_set_memory_type(semaphore, static_cast<doca_gpu_mem_type>(3)),
              DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_gpu_semaphore_set_items_num(semaphore, items));
    DOCA_OK(doca_gpu_semaphore_set_memory_type(semaphore, DOCA_GPU_MEM_TYPE_GPU));
    DOCA_OK(doca_gpu_semaphore_start(semaphore));
    EXPECT_EQ(doca_gpu_semaphore_set_items_num(semaphore, items), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_gpu_semaphore_start(semaphore), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_gpu_semaphore_get_status(semaphore, 0, &status), DOCA_ERROR_NOT_PERMITTED);
    EXPECT_EQ(doca_gpu_semaphore_set_status(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_READY), DOCA_ERROR_NOT_PERMITTED);
    EXPECT_EQ(doca_gpu_semaphore_get_custom_info_addr(semaphore, 0, &info), DOCA_ERROR_NOT_FOUND);
    DOCA_OK(doca_gpu_semaphore_stop(semaphore));
    EXPECT_EQ(doca_gpu_semaphore_stop(semaphore), DOCA_ERROR_BAD_STATE);
}

} // namespace
} // namespace weftio::test
