// Receiving as it is done without queues that a kernel owns: the CPU takes a burst from the driver, copies it to the GPU, launches
// a kernel for it and waits, as programs on rte_gpudev do. The packets lie side by side in pinned memory already, which favors it.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstring>

#include "device/cuda/driver.hpp"
#include "gpu.kernel.h"
#include "measure.hpp"
#include "nic/soft_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(look_at_burst, "gpu.kernel.h");

namespace weftio::bench {

namespace {

using namespace weftio::detail;
constexpr std::uint32_t burst = 32, packet_bytes = 64, burst_bytes = burst * packet_bytes;

class cpu_centric_receiver {
 public:
    explicit cpu_centric_receiver(const device& device)
        : cuda_(cuda::the_driver()), port_(port::open("net_null_centric,size=64", {.mode = engine_mode::inline_worker})),
          pinned_(device.allocate(burst_bytes, memory_kind::cpu_device)), packets_(device.allocate(burst_bytes, memory_kind::device)),
          sink_(device.allocate(64, memory_kind::device))
    {
        cuda_.check(cuda_.cuStreamCreate(&stream_, cuda::stream_non_blocking), "making a stream");
        cuda_.check(cuda_.cuModuleLoadData(&module_, look_at_burst_kernel.cuda_image.data()), "loading kernels");
        cuda_.check(cuda_.cuModuleGetFunction(&function_, module_, "look_at_burst"), "finding the kernel");
    }
    ~cpu_centric_receiver()
    {
        cuda_.cuStreamDestroy_v2(stream_);
        cuda_.cuModuleUnload(module_);
    }
    cpu_centric_receiver(const cpu_centric_receiver&) = delete;
    cpu_centric_receiver& operator=(const cpu_centric_receiver&) = delete;

    /// One burst: driver, pinned memory, GPU, kernel, and back.
    void turn()
    {
        std::array<rte_mbuf*, burst> mbufs{};
        std::uint16_t count = rte_eth_rx_burst(port_.backend().device().id(), 0, mbufs.data(), burst);
        auto* to = static_cast<std::byte*>(pinned_.cpu_address());
        for (std::uint16_t at = 0; at < count; ++at)
            std::memcpy(to + at * packet_bytes, rte_pktmbuf_mtod(mbufs[at], const std::byte*), packet_bytes);
        rte_pktmbuf_free_bulk(mbufs.data(), count);
        auto device_address = reinterpret_cast<cuda::device_pointer>(packets_.device_address());
        cuda_.cuMemcpyHtoDAsync_v2(device_address, to, burst_bytes, stream_);
        void *packets = packets_.device_address(), *sink = sink_.device_address();
        std::uint32_t bytes = burst_bytes;
        std::array<void*, 3> arguments{&packets, &sink, &bytes};
        cuda_.cuLaunchKernel(function_, 1, 1, 1, 128, 1, 1, 0, stream_, arguments.data(), nullptr);
        cuda_.check(cuda_.cuStreamSynchronize(stream_), "running the kernel of a burst");
    }

 private:
    const cuda::driver& cuda_;
    port port_;
    memory pinned_, packets_, sink_;
    cuda::stream stream_ = nullptr;
    cuda::module module_ = nullptr;
    cuda::function function_ = nullptr;
};

} // namespace

std::vector<sample> cpu_centric(const device& device, const settings& settings)
{
    if (!device.name().starts_with("cuda"))
        return {};
    cpu_centric_receiver receiver(device);
    for (int warm = 0; warm < 100; ++warm)
        receiver.turn();
    std::vector<std::uint64_t> times;
    auto end = clock_type::now() + std::chrono::duration<double>(settings.seconds);
    auto start = clock_type::now(), now = start;
    while (now < end) {
        receiver.turn();
        auto after = clock_type::now();
        times.push_back(static_cast<std::uint64_t>((after - now).count()));
        now = after;
    }
    double mpps = static_cast<double>(times.size()) * burst / std::chrono::duration<double>(now - start).count() / 1e6;
    return {{"CPU-centric burst of 32 x 64 B, p50", "ns", quantile(times, 0.5)}, {"CPU-centric receive 64 B, bursts of 32", "Mpps", mpps}};
}

} // namespace weftio::bench
