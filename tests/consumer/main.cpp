// A program outside Weftio's tree: a kernel counts the packets of the built-in capture.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>

#include "count.kernel.h"
#include "weftio/device.hpp"
#include "weftio/eth_rxq.hpp"
#include "weftio/flow.hpp"
#include "weftio/kernel.hpp"
#include "weftio/port.hpp"

WEFTIO_DEFINE_KERNEL(count_packets, "count.kernel.h");

static int run()
{
    auto device = weftio::device::open("cpu");
    auto port = weftio::port::open("pcap:builtin");
    weftio::eth_rxq queue(port, device);
    auto total = device.allocate(sizeof(weftio_u32), weftio::memory_kind::cpu_device);
    auto kernel = device.launch(count_packets_kernel, {}, queue, static_cast<weftio_u32*>(total.device_address()));
    weftio::flow everything(port, {}, weftio::flow_action::to(queue));

    auto* counted = static_cast<weftio_u32*>(total.cpu_address());
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline &&
           !(port.exhausted() && weftio_load_acquire_sys_u32(counted) >= queue.counters().delivered))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));

    std::uint64_t received = port.counters().received;
    std::printf("the kernel counted %u packets of %llu\n", *counted, static_cast<unsigned long long>(received));
    return received > 0 && *counted == received ? 0 : 1;
}

int main()
{
    try {
        return run();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
