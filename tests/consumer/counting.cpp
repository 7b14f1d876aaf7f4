// A library outside Weftio's tree: a kernel counts the packets of the built-in capture.
#include "counting.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "count.kernel.h"
#include "weftio/device.hpp"
#include "weftio/eth_rxq.hpp"
#include "weftio/flow.hpp"
#include "weftio/kernel.hpp"
#include "weftio/port.hpp"

WEFTIO_DEFINE_KERNEL(count_packets, "count.kernel.h");

bool count_builtin(const char* where)
{
    auto device = weftio::device::open(where);
    auto port = weftio::port::open("pcap:builtin");
    weftio::eth_rxq queue(port, device);
    auto memory = device.allocate(sizeof(tally), weftio::memory_kind::cpu_device);
    auto kernel = device.launch(count_packets_kernel, {}, queue, memory.device_address());
    weftio::flow everything(port, {}, weftio::flow_action::to(queue));

    auto* counted = static_cast<tally*>(memory.cpu_address());
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline &&
           !(port.exhausted() && weftio_load_acquire_sys_u32(&counted->packets) >= queue.counters().delivered))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));

    std::uint64_t received = port.counters().received;
    std::printf("the kernel counted %u packets of %llu\n", counted->packets, static_cast<unsigned long long>(received));
    std::printf("compiled for CUDA: %zu bytes\n", count_packets_kernel.cuda_image.size());
    return received > 0 && counted->packets == received;
}
