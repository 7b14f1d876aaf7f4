// The device functions of DOCA GPUNetIO 2.10 on a GPU: cuda:0, or what WEFTIO_GPU names, which may be "cpu".
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "doca_dma.h"
#include "functions.kernel.h"
#include "unit/doca/rdma_ends.hpp"
#include "unit/doca/two_devices.hpp"
#include "weftio/error.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(doca_buffers, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_send_strong, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_send_weak, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_send_at, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_fill_ring, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_receive, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_wait_for_ever, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_semaphore, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_copy, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_rdma_client, "functions.kernel.h");
WEFTIO_DEFINE_KERNEL(doca_rdma_server, "functions.kernel.h");

namespace weftio::test {
namespace {

using namespace std::chrono_literals;

class DocaGpu : public DocaDevices {
 protected:
    void SetUp() override
    {
        try {
            on_.emplace(device::open(gpu_name()));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: all device functions of DOCA on a GPU; " << refused.what();
        }
        DocaDevices::SetUp();
        void *there = nullptr, *host = nullptr;
        for (report_pair* one : {&sent, &got}) {
            DOCA_OK(doca_gpu_mem_alloc(gpu, sizeof(doca_report), 4096, DOCA_GPU_MEM_TYPE_GPU_CPU, &there, &host));
            one->there = static_cast<doca_report*>(there);
            one->here = static_cast<doca_report*>(host);
            *one->here = {};
        }
    }
    void TearDown() override
    {
        if (!gpu)
            return;
        for (const report_pair& one : {sent, got})
            DOCA_OK(doca_gpu_mem_free(gpu, one.there));
        DocaDevices::TearDown();
    }
    std::string gpu_name() override
    {
        const char* named = std::getenv("WEFTIO_GPU");
        return named ? named : "cuda:0";
    }
    template <class Kernel, class... Arguments>
    running_kernel run(const Kernel& kernel, std::uint32_t lanes, Arguments... arguments)
    {
        return on_->launch(kernel, {.blocks = 1, .lanes = lanes}, arguments...);
    }
    static bool finish(running_kernel& kernel) { return kernel.wait_for(20s); }
    void expect_right()
    {
        EXPECT_EQ(sent.here->wrong, 0u);
        EXPECT_EQ(got.here->wrong, 0u);
    }

    struct report_pair {
        doca_report *here = nullptr, *there = nullptr;
    };
    report_pair sent, got;

 private:
    std::optional<device> on_;
};

/// A receive queue on the second device, a send queue on the first.
class DocaGpuPackets : public DocaGpu {
 protected:
    void make()
    {
        in.make_queue(gpu, second);
        receiving::init_flow();
        in.start_port();
        in.add_udp_pipe(true);
        out.make_queue(gpu, first);
        out.start();
    }
    void end()
    {
        in.end();
        doca_flow_destroy();
        out.end();
    }
    void expect_numbers(std::uint32_t count)
    {
        expect_right();
        EXPECT_EQ(got.here->received, count);
        std::uint64_t sum = 0; // lanes enqueue in any order
        for (std::uint32_t packet = 0; packet < count; ++packet)
            sum += got.here->numbers[packet];
        EXPECT_EQ(sum, std::uint64_t{count} * (count - 1) / 2);
    }

    receiving in;
    sending out;
};

TEST_F(DocaGpuPackets, BuffersAreThoseOfTheArray)
{
    make();
    auto kernel = run(doca_buffers_kernel, 64, out.array_handle, sending::frames,
                      reinterpret_cast<std::uint64_t>(out.memory.gpu_memory), sending::bytes, sent.there);
    ASSERT_TRUE(finish(kernel));
    expect_right();
    end();
}

TEST_F(DocaGpuPackets, GoFromStrongCallsToCallsOfThreadsWarpsAndBlocks)
{
    make();
    for (std::uint32_t scope = 0; scope < 3; ++scope) {
        auto receiver = run(doca_receive_kernel,
                            scope == 0   ? 1
                            : scope == 1 ? 32
                                         : 256,
                            in.handle, 64u, scope, got.there);
        auto sender = run(doca_send_strong_kernel, 64, out.handle, out.array_handle, 64u, sent.there);
        ASSERT_TRUE(finish(sender) && finish(receiver)) << scope;
        expect_numbers(64);
    }
    end();
}

TEST_F(DocaGpuPackets, GoFromWeakCallsRoundTheRing)
{
    make();
    for (int round = 0; round < 16; ++round) { // never more than half of the ring at once
        auto receiver = run(doca_receive_kernel, 64, in.handle, 64u, 2u, got.there);
        auto sender = run(doca_send_weak_kernel, 32, out.handle, out.array_handle, 64u, sent.there);
        ASSERT_TRUE(finish(sender) && finish(receiver)) << round;
        expect_numbers(64);
    }
    end();
}

std::uint64_t now_ns()
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

TEST_F(DocaGpuPackets, LeaveAtTheirTimesAfterTheKernelHasEnded)
{
    make();
    for (const std::uint32_t weak : {0u, 1u}) {
        const std::uint64_t start = now_ns() + 50'000'000;
        std::uint64_t values[2] = {};
        DOCA_OK(doca_eth_txq_calculate_timestamp(out.queue, start, &values[0]));
        DOCA_OK(doca_eth_txq_calculate_timestamp(out.queue, start + 30'000'000, &values[1]));
        auto sender = run(doca_send_at_kernel, 1, out.handle, out.array_handle, values[0], values[1], weak, sent.there);
        ASSERT_TRUE(finish(sender));
        auto receiver = run(doca_receive_kernel, 32, in.handle, 2u, 2u, got.there);
        ASSERT_TRUE(finish(receiver));
        expect_right();
        EXPECT_GE(got.here->arrival_ns[0], start) << weak;
        EXPECT_GE(got.here->arrival_ns[1], start + 30'000'000) << weak;
    }
    end();
}

TEST_F(DocaGpuPackets, OfAFullRingThatNobodyCommitsAreRefused)
{
    make();
    auto sender = run(doca_fill_ring_kernel, 1, out.handle, out.array_handle, 256u, sent.there);
    ASSERT_TRUE(finish(sender));
    expect_right();
    end();
}

TEST_F(DocaGpuPackets, AreNotWaitedForInAQueueThatIsDestroyedOrStopped)
{
    for (const bool is_stopped : {false, true}) {
        receiving doomed;
        doomed.make_queue(gpu, second);
        got.here->received = 0;
        auto waiting = run(doca_wait_for_ever_kernel, 64, doomed.handle, got.there);
        std::this_thread::sleep_for(50ms); // it waits, most likely
        if (is_stopped) {
            DOCA_OK(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(doomed.queue)));
        } else {
            DOCA_OK(doca_eth_rxq_destroy(doomed.queue));
        }
        ASSERT_TRUE(finish(waiting)) << is_stopped;
        EXPECT_EQ(got.here->received, 1u) << is_stopped;
        if (is_stopped) {
            DOCA_OK(doca_eth_rxq_destroy(doomed.queue));
        }
        doomed.memory.end();
    }
}

TEST_F(DocaGpu, SemaphoresHandItemsToTheCpu)
{
    doca_gpu_semaphore* semaphore = nullptr;
    doca_gpu_semaphore_gpu* handle = nullptr;
    DOCA_OK(doca_gpu_semaphore_create(gpu, &semaphore));
    DOCA_OK(doca_gpu_semaphore_set_memory_type(semaphore, DOCA_GPU_MEM_TYPE_CPU_GPU));
    DOCA_OK(doca_gpu_semaphore_set_items_num(semaphore, 16));
    DOCA_OK(doca_gpu_semaphore_set_custom_info(semaphore, sizeof(std::uint32_t), DOCA_GPU_MEM_TYPE_CPU_GPU));
    DOCA_OK(doca_gpu_semaphore_start(semaphore));
    DOCA_OK(doca_gpu_semaphore_get_gpu_handle(semaphore, &handle));
    auto kernel = run(doca_semaphore_kernel, 1, handle, 100u, sent.there);
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
    ASSERT_TRUE(finish(kernel));
    expect_right();
    DOCA_OK(doca_gpu_semaphore_destroy(semaphore));
}

TEST_F(DocaGpu, CopiesAreThereWhenTheCommitReturns)
{
    constexpr std::uint32_t count = 1000, bytes = 256;
    mapped memory[2];
    doca_buf_arr* arrays[2] = {};
    doca_gpu_buf_arr* handles[2] = {};
    doca_dma* dma = nullptr;
    doca_gpu_dma* handle = nullptr;
    DOCA_OK(doca_dma_create(first, &dma));
    for (int side = 0; side < 2; ++side) {
        memory[side].make(gpu, first, count * bytes);
        std::memset(memory[side].cpu_memory, side ? 9 : 2, count * bytes);
        DOCA_OK(doca_buf_arr_create(count, &arrays[side]));
        DOCA_OK(doca_buf_arr_set_target_gpu(arrays[side], gpu));
        DOCA_OK(doca_buf_arr_set_params(arrays[side], memory[side].mmap, bytes, 0));
        DOCA_OK(doca_buf_arr_start(arrays[side]));
        DOCA_OK(doca_buf_arr_get_gpu_handle(arrays[side], &handles[side]));
    }
    DOCA_OK(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(dma), gpu));
    DOCA_OK(doca_ctx_start(doca_dma_as_ctx(dma)));
    DOCA_OK(doca_dma_get_gpu_handle(dma, &handle));
    auto kernel = run(doca_copy_kernel, 64, handle, handles[1], handles[0], count, sent.there);
    ASSERT_TRUE(finish(kernel));
    expect_right();
    const auto* copied = static_cast<const std::uint8_t*>(memory[0].cpu_memory);
    for (std::uint32_t index = 0; index < count * bytes; ++index)
        ASSERT_EQ(copied[index], index % bytes ? 9u : 2u) << index;
    DOCA_OK(doca_dma_destroy(dma));
    for (int side = 0; side < 2; ++side) {
        DOCA_OK(doca_buf_arr_destroy(arrays[side]));
        memory[side].end();
    }
}

TEST_F(DocaGpu, RdmaWritesReadsAndMessagesArriveStronglyAndWeakly)
{
    rdma_end client, server;
    client.create(gpu, first);
    server.create(gpu, second);
    client.start();
    server.start();
    client.learn_memory_of(server);
    client.fill(100);
    std::memset(server.element(4), 44, 200);
    std::memset(server.element(5), 55, 200);
    const std::string to_server = server.exported(), to_client = client.exported();
    DOCA_OK(doca_rdma_connect(server.rdma, to_client.data(), to_client.size(), server.connections.back()));
    DOCA_OK(doca_rdma_connect(client.rdma, to_server.data(), to_server.size(), client.connections.back()));
    auto receiver = run(doca_rdma_server_kernel, 1, server.handle, server.local, got.there);
    auto sender = run(doca_rdma_client_kernel, 1, client.handle, client.local, client.remote, sent.there);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    expect_right();
    ASSERT_EQ(got.here->received, 4u);
    constexpr std::uint32_t immediates[] = {11, 13, 12, 0xffffffff};
    for (std::uint32_t receive = 0; receive < 4; ++receive)
        EXPECT_EQ(got.here->numbers[receive], immediates[receive]) << receive;
    for (std::uint32_t written = 0; written < 2; ++written) {
        EXPECT_EQ(server.element(written)[8], 100u + written);
        EXPECT_EQ(client.element(4 + written)[99], 44u + 11 * written);
        EXPECT_EQ(client.element(4 + written)[100], 104u + written);
        EXPECT_EQ(server.element(8 + written)[99], 102u + written);
    }
    client.end();
    server.end();
}

} // namespace
} // namespace weftio::test
