// RDMA contexts on the two devices, memory for them, and kernels that use their connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "doca_gpunetio_dev_rdma.cuh"
#include "doca_rdma.h"
#include "two_devices.hpp"

namespace weftio::test {

/// What the callbacks of a context have noted.
struct rdma_notes {
    std::vector<doca_rdma_connection*> requested, established, failed, ended;
    std::vector<std::uint64_t> user_data;
};

/// A context, its memory, and the peer's memory.
struct rdma_end {
    static constexpr std::size_t elements = 128, element_bytes = 256, bytes = elements * element_bytes;
    static constexpr std::uint32_t all_rights = DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE;

    void create(doca_gpu* on, doca_dev* device)
    {
        gpu = on;
        dev = device;
        DOCA_OK(doca_rdma_create(dev, &rdma));
        context = doca_rdma_as_ctx(rdma);
        DOCA_OK(doca_rdma_set_permissions(rdma, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | all_rights));
        DOCA_OK(doca_rdma_set_send_queue_size(rdma, 64));
        DOCA_OK(doca_rdma_set_recv_queue_size(rdma, 128));
        DOCA_OK(doca_rdma_set_grh_enabled(rdma, 1));
        DOCA_OK(doca_rdma_set_connection_state_callbacks(
            rdma,
            [](doca_rdma_connection* connection, doca_data data) {
                static_cast<rdma_notes*>(data.ptr)->requested.push_back(connection);
            },
            [](doca_rdma_connection* connection, doca_data of_connection, doca_data data) {
                static_cast<rdma_notes*>(data.ptr)->established.push_back(connection);
                static_cast<rdma_notes*>(data.ptr)->user_data.push_back(of_connection.u64);
            },
            [](doca_rdma_connection* connection, doca_data, doca_data data) {
                static_cast<rdma_notes*>(data.ptr)->failed.push_back(connection);
            },
            [](doca_rdma_connection* connection, doca_data, doca_data data) {
                static_cast<rdma_notes*>(data.ptr)->ended.push_back(connection);
            }));
        DOCA_OK(doca_ctx_set_user_data(context, {.ptr = &noted}));
        DOCA_OK(doca_pe_create(&pe));
        DOCA_OK(doca_pe_connect_ctx(pe, context));
    }
    void start()
    {
        DOCA_OK(doca_ctx_set_datapath_on_gpu(context, gpu));
        DOCA_OK(doca_ctx_start(context));
        DOCA_OK(doca_rdma_get_gpu_handle(rdma, &handle));
        DOCA_OK(doca_gpu_mem_alloc(gpu, bytes, 65536, DOCA_GPU_MEM_TYPE_GPU_CPU, &gpu_memory, &cpu_memory));
        DOCA_OK(doca_mmap_create(&mmap));
        DOCA_OK(doca_mmap_set_memrange(mmap, gpu_memory, bytes));
        DOCA_OK(doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | all_rights));
        DOCA_OK(doca_mmap_add_dev(mmap, dev));
        DOCA_OK(doca_mmap_start(mmap));
        local = array_of(mmap);
    }
    /// The peer's memory, described as over a socket.
    void learn_memory_of(const rdma_end& peer)
    {
        const void* descriptor = nullptr;
        std::size_t size = 0;
        DOCA_OK(doca_mmap_export_rdma(peer.mmap, peer.dev, &descriptor, &size));
        const std::string sent(static_cast<const char*>(descriptor), size);
        DOCA_OK(doca_mmap_create_from_export(nullptr, sent.data(), sent.size(), dev, &remote_mmap));
        remote = array_of(remote_mmap);
    }
    doca_gpu_buf_arr* array_of(doca_mmap* memory)
    {
        doca_gpu_buf_arr* kernels = nullptr;
        arrays.push_back(nullptr);
        EXPECT_EQ(doca_buf_arr_create(elements, &arrays.back()), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_set_target_gpu(arrays.back(), gpu), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_set_params(arrays.back(), memory, element_bytes, 0), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_start(arrays.back()), DOCA_SUCCESS);
        EXPECT_EQ(doca_buf_arr_get_gpu_handle(arrays.back(), &kernels), DOCA_SUCCESS);
        return kernels;
    }
    /// What the peer needs for the next connection.
    std::string exported()
    {
        const void* descriptor = nullptr;
        std::size_t size = 0;
        connections.push_back(nullptr);
        EXPECT_EQ(doca_rdma_export(rdma, &descriptor, &size, &connections.back()), DOCA_SUCCESS);
        text.assign(static_cast<const char*>(descriptor), size);
        return text;
    }
    void progress()
    {
        while (doca_pe_progress(pe))
            continue;
    }
    template <class Condition>
    bool progress_until(Condition&& condition)
    {
        for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
             !condition() && std::chrono::steady_clock::now() < end;)
            doca_pe_progress(pe);
        return condition();
    }
    void end()
    {
        for (auto* array : arrays)
            DOCA_OK(doca_buf_arr_destroy(array));
        if (remote_mmap) {
            DOCA_OK(doca_mmap_destroy(remote_mmap));
        }
        DOCA_OK(doca_mmap_destroy(mmap));
        DOCA_OK(doca_ctx_stop(context));
        DOCA_OK(doca_gpu_mem_free(gpu, gpu_memory));
        DOCA_OK(doca_rdma_destroy(rdma));
        DOCA_OK(doca_pe_destroy(pe));
    }
    std::uint8_t* element(std::size_t index) { return static_cast<std::uint8_t*>(cpu_memory) + index * element_bytes; }
    /// Every element gets bytes of its own.
    void fill(std::uint8_t first)
    {
        for (std::size_t index = 0; index < elements; ++index)
            std::fill_n(element(index), element_bytes, static_cast<std::uint8_t>(first + index));
    }

    doca_gpu* gpu = nullptr;
    doca_dev* dev = nullptr;
    doca_rdma* rdma = nullptr;
    doca_ctx* context = nullptr;
    doca_pe* pe = nullptr;
    doca_gpu_dev_rdma* handle = nullptr;
    void *gpu_memory = nullptr, *cpu_memory = nullptr;
    doca_mmap *mmap = nullptr, *remote_mmap = nullptr;
    std::vector<doca_buf_arr*> arrays;
    doca_gpu_buf_arr *local = nullptr, *remote = nullptr;
    std::vector<doca_rdma_connection*> connections;
    std::string text; ///< exported last
    rdma_notes noted;
};

/// What a kernel tells the test.
struct rdma_report {
    std::uint32_t wrong = 0, commits = 0, commits_again = 77, received = 0;
    doca_error_t status = DOCA_ERROR_UNKNOWN;
    std::uint32_t immediates[rdma_end::elements] = {};
};

inline doca_gpu_buf* element_of(doca_gpu_buf_arr* array, std::uint32_t index)
{
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_buf_get_buf(array, index, &buf);
    return buf;
}

class DocaRdma : public DocaDevices {
 protected:
    void SetUp() override
    {
        DocaDevices::SetUp();
        client.create(gpu, first);
        server.create(gpu, second);
    }
    void start()
    {
        client.start();
        server.start();
        client.learn_memory_of(server);
        client.fill(100);
    }
    void connect()
    {
        const std::string to_server = server.exported(), to_client = client.exported();
        DOCA_OK(doca_rdma_connect(server.rdma, to_client.data(), to_client.size(), server.connections.back()));
        DOCA_OK(doca_rdma_connect(client.rdma, to_server.data(), to_server.size(), client.connections.back()));
    }
    void end()
    {
        client.end();
        server.end();
    }
    static bool finish(running_kernel& kernel) { return kernel.wait_for(std::chrono::seconds(20)); }

    rdma_end client, server;
    rdma_report sent{}, got{};
};

} // namespace weftio::test
