// Two devices on one wire, and what a program makes on them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "doca_buf_array.h"
#include "doca_eth_rxq.h"
#include "doca_eth_txq.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_flow.h"
#include "doca_gpunetio.h"
#include "weftio/device.hpp"

#define DOCA_OK(CALL) ASSERT_EQ(CALL, DOCA_SUCCESS)

namespace weftio::test {

/// Opens a device of WEFTIO_DOCA_DEVICES by its PCI address.
inline doca_dev* open_device(const char* pci)
{
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    doca_dev* dev = nullptr;
    EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
    for (std::uint32_t index = 0; index < count; ++index) {
        std::uint8_t is_equal = 0;
        EXPECT_EQ(doca_devinfo_is_equal_pci_addr(list[index], pci, &is_equal), DOCA_SUCCESS);
        if (is_equal) {
            EXPECT_EQ(doca_dev_open(list[index], &dev), DOCA_SUCCESS);
        }
    }
    EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
    return dev;
}

class DocaDevices : public testing::Test {
 protected:
    static constexpr const char *first_pci = "0000:01:00.0", *second_pci = "0000:02:00.0";

    void SetUp() override
    {
        setenv("WEFTIO_DOCA_DEVICES", devices("wire:doca" + std::to_string(::getpid())).c_str(), 1);
        first = open_device("01:00.0");
        second = open_device(second_pci);
        ASSERT_TRUE(first && second);
        DOCA_OK(doca_gpu_create(gpu_name().c_str(), &gpu));
    }
    void TearDown() override
    {
        EXPECT_EQ(doca_gpu_destroy(gpu), DOCA_SUCCESS);
        EXPECT_EQ(doca_dev_close(first), DOCA_SUCCESS);
        EXPECT_EQ(doca_dev_close(second), DOCA_SUCCESS);
        unsetenv("WEFTIO_DOCA_DEVICES");
    }

    /// Where the kernels run: "cpu", or a GPU.
    virtual std::string gpu_name() { return "cpu"; }
    virtual std::string devices(const std::string& wire)
    {
        return std::string(first_pci) + ",mlx5_0=" + wire + ";" + second_pci + ",mlx5_1=" + wire;
    }
    /// A kernel of these programs, which runs on the CPU.
    template <class... Parameters, class... Arguments>
    running_kernel launch(void (*function)(Parameters...), std::uint32_t lanes, Arguments... arguments)
    {
        return device::open("cpu").launch(kernel<Parameters...>{"kernel", function, {}, {}},
                                          {.blocks = 1, .lanes = lanes}, arguments...);
    }

    doca_dev *first = nullptr, *second = nullptr;
    doca_gpu* gpu = nullptr;
};

/// Memory that a GPU and a device use.
struct mapped {
    void make(doca_gpu* on, doca_dev* dev, std::size_t size)
    {
        gpu = on;
        DOCA_OK(doca_gpu_mem_alloc(gpu, size, 65536, DOCA_GPU_MEM_TYPE_GPU_CPU, &gpu_memory, &cpu_memory));
        DOCA_OK(doca_mmap_create(&mmap));
        DOCA_OK(doca_mmap_add_dev(mmap, dev));
        DOCA_OK(doca_mmap_set_memrange(mmap, gpu_memory, size));
        DOCA_OK(
            doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING));
        DOCA_OK(doca_mmap_start(mmap));
    }
    void end()
    {
        DOCA_OK(doca_gpu_mem_free(gpu, gpu_memory)); // in this order, as programs do
        DOCA_OK(doca_mmap_destroy(mmap));
    }
    doca_gpu* gpu = nullptr;
    void *gpu_memory = nullptr, *cpu_memory = nullptr;
    doca_mmap* mmap = nullptr;
};

/// A receive queue, and pipes that send it what is UDP.
struct receiving {
    static constexpr std::uint32_t packets = 256, bytes = 2048;

    void make_queue(doca_gpu* gpu, doca_dev* on)
    {
        dev = on;
        std::uint32_t size = 0;
        DOCA_OK(doca_eth_rxq_create(dev, packets, bytes, &queue));
        DOCA_OK(doca_eth_rxq_set_type(queue, DOCA_ETH_RXQ_TYPE_CYCLIC));
        DOCA_OK(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, bytes, packets, 0, &size));
        ASSERT_EQ(size, packets * bytes);
        memory.make(gpu, dev, size);
        DOCA_OK(doca_eth_rxq_set_pkt_buf(queue, memory.mmap, 0, size));
        DOCA_OK(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(queue), gpu));
        DOCA_OK(doca_ctx_start(doca_eth_rxq_as_doca_ctx(queue)));
        DOCA_OK(doca_eth_rxq_get_gpu_handle(queue, &handle));
        DOCA_OK(doca_eth_rxq_get_flow_queue_id(queue, &number));
    }
    static void init_flow()
    {
        doca_flow_cfg* cfg = nullptr;
        DOCA_OK(doca_flow_cfg_create(&cfg));
        DOCA_OK(doca_flow_cfg_set_pipe_queues(cfg, 1));
        DOCA_OK(doca_flow_cfg_set_mode_args(cfg, "vnf,hws,isolated,use_doca_eth"));
        DOCA_OK(doca_flow_cfg_set_nr_counters(cfg, 524228));
        DOCA_OK(doca_flow_init(cfg));
        DOCA_OK(doca_flow_cfg_destroy(cfg));
    }
    void start_port()
    {
        doca_flow_port_cfg* port_cfg = nullptr;
        DOCA_OK(doca_flow_port_cfg_create(&port_cfg));
        DOCA_OK(doca_flow_port_cfg_set_dev(port_cfg, dev));
        DOCA_OK(doca_flow_port_start(port_cfg, &port));
        DOCA_OK(doca_flow_port_cfg_destroy(port_cfg));
    }
    doca_flow_fwd to_queue()
    {
        doca_flow_fwd fwd{};
        fwd.type = DOCA_FLOW_FWD_RSS;
        fwd.rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
        fwd.rss.outer_flags = DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP;
        fwd.rss.queues_array = &number;
        fwd.rss.nr_queues = 1;
        return fwd;
    }
    /// A basic pipe of all UDP.
    void add_udp_pipe(bool is_root)
    {
        doca_flow_match match{};
        match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
        match.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_UDP;
        const doca_flow_fwd fwd = to_queue();
        doca_flow_fwd miss{};
        miss.type = DOCA_FLOW_FWD_DROP;
        doca_flow_monitor monitor{};
        monitor.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
        doca_flow_pipe_cfg* cfg = nullptr;
        DOCA_OK(doca_flow_pipe_cfg_create(&cfg, port));
        DOCA_OK(doca_flow_pipe_cfg_set_name(cfg, "UDP"));
        DOCA_OK(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_BASIC));
        DOCA_OK(doca_flow_pipe_cfg_set_is_root(cfg, is_root));
        DOCA_OK(doca_flow_pipe_cfg_set_match(cfg, &match, nullptr));
        DOCA_OK(doca_flow_pipe_cfg_set_monitor(cfg, &monitor));
        DOCA_OK(doca_flow_pipe_create(cfg, &fwd, &miss, &udp));
        DOCA_OK(doca_flow_pipe_cfg_destroy(cfg));
        doca_flow_pipe_entry* entry = nullptr;
        DOCA_OK(
            doca_flow_pipe_add_entry(0, udp, nullptr, nullptr, nullptr, nullptr, DOCA_FLOW_NO_WAIT, nullptr, &entry));
        DOCA_OK(doca_flow_entries_process(port, 0, 10000, 4));
    }
    /// In the order of the vendor's sample: the memory goes before the queue.
    void end()
    {
        DOCA_OK(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(queue)));
        DOCA_OK(doca_gpu_mem_free(memory.gpu, memory.gpu_memory));
        DOCA_OK(doca_eth_rxq_destroy(queue));
        DOCA_OK(doca_flow_port_stop(port));
        DOCA_OK(doca_mmap_destroy(memory.mmap));
    }

    doca_dev* dev = nullptr;
    mapped memory;
    doca_eth_rxq* queue = nullptr;
    doca_gpu_eth_rxq* handle = nullptr;
    std::uint16_t number = 0;
    doca_flow_port* port = nullptr;
    doca_flow_pipe* udp = nullptr;
};

/// A send queue and frames for it.
struct sending {
    static constexpr std::uint32_t frames = 64, bytes = 1024;

    void make_queue(doca_gpu* gpu, doca_dev* dev, std::uint32_t entries = 256)
    {
        DOCA_OK(doca_eth_txq_create(dev, entries, &queue));
        DOCA_OK(doca_eth_txq_set_l3_chksum_offload(queue, 1));
        DOCA_OK(doca_eth_txq_set_wait_on_time_offload(queue));
        DOCA_OK(doca_ctx_set_datapath_on_gpu(doca_eth_txq_as_doca_ctx(queue), gpu));
        memory.make(gpu, dev, frames * bytes);
        DOCA_OK(doca_buf_arr_create(frames, &array));
        DOCA_OK(doca_buf_arr_set_target_gpu(array, gpu));
        DOCA_OK(doca_buf_arr_set_params(array, memory.mmap, bytes, 0));
        DOCA_OK(doca_buf_arr_start(array));
        DOCA_OK(doca_buf_arr_get_gpu_handle(array, &array_handle));
        for (std::uint32_t frame = 0; frame < frames; ++frame)
            fill(frame, frame);
    }
    void start()
    {
        DOCA_OK(doca_ctx_start(doca_eth_txq_as_doca_ctx(queue)));
        DOCA_OK(doca_eth_txq_get_gpu_handle(queue, &handle));
    }
    void end()
    {
        DOCA_OK(doca_mmap_destroy(memory.mmap));
        DOCA_OK(doca_gpu_mem_free(memory.gpu, memory.gpu_memory));
        DOCA_OK(doca_buf_arr_stop(array));
        DOCA_OK(doca_buf_arr_destroy(array));
        DOCA_OK(doca_ctx_stop(doca_eth_txq_as_doca_ctx(queue)));
        DOCA_OK(doca_eth_txq_destroy(queue));
    }
    std::uint8_t* frame(std::uint32_t number) { return static_cast<std::uint8_t*>(memory.cpu_memory) + number * bytes; }
    /// A UDP broadcast with a number in the payload.
    void fill(std::uint32_t place, std::uint32_t number)
    {
        static constexpr std::uint8_t headers[] = {
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0,  0,  0, 1, 8,  0,                    // Ethernet
            0x45, 0,    0,    46,   0,    0,    0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
            0,    7,    0,    9,    0,    26,   0, 0};                                        // UDP
        std::memcpy(frame(place), headers, sizeof headers);
        std::memcpy(frame(place) + sizeof headers, &number, sizeof number);
    }
    static std::uint32_t number_of(const std::uint8_t* packet)
    {
        std::uint32_t number;
        std::memcpy(&number, packet + 42, sizeof number);
        return number;
    }

    mapped memory;
    doca_eth_txq* queue = nullptr;
    doca_gpu_eth_txq* handle = nullptr;
    doca_buf_arr* array = nullptr;
    doca_gpu_buf_arr* array_handle = nullptr;
};

} // namespace weftio::test
