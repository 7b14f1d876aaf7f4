// Receive rates of kernels.
#include <fmt/format.h>

#include <memory>

#include "fake_queues.hpp"
#include "gpu_bench.kernel.h"
#include "measure.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(receive_all, "gpu_bench.kernel.h");

namespace weftio::bench {

namespace {

struct shape {
    std::uint32_t bytes, read_bytes, lanes;
    memory_kind buffers = memory_kind::cpu_device;
};

/// A net_null port, which generates packets; its engine; and a kernel of one block that receives them.
class source {
 public:
    source(const device& device, const shape& shape, std::uint32_t number)
        : port_(port::open(fmt::format("net_null_gpu{},size={}", number, shape.bytes), busy_port())),
          queue_(
              port_, device,
              {.packets = 8192, .max_packet_bytes = shape.bytes, .buffers = shape.buffers, .verify_checksums = false}),
          packets_(device), kernel_(device.launch(receive_all_kernel, {.blocks = 1, .lanes = shape.lanes}, queue_,
                                                  packets_.on_device(), shape.read_bytes, 20000u)),
          all_(port_, {}, flow_action::to(queue_))
    {}
    std::uint64_t packets() const { return packets_.value(); }

 private:
    port port_;
    eth_rxq queue_;
    shared_count packets_;
    running_kernel kernel_;
    flow all_;
};

double receive_mpps(const device& device, const settings& settings, const shape& shape, std::uint32_t engines)
{
    static std::uint32_t number = 0;
    std::vector<std::unique_ptr<source>> sources;
    while (sources.size() < engines)
        sources.push_back(std::make_unique<source>(device, shape, number++));
    return millions_a_second(settings, [&] {
        std::uint64_t sum = 0;
        for (const auto& each : sources)
            sum += each->packets();
        return sum;
    });
}

/// The same kernel with a thread that only publishes, or publishes and copies 64 bytes.
double published_mpps(const device& device, const settings& settings, std::uint32_t lanes, bool copy)
{
    static const std::array<std::byte, 64> packet{};
    fake_rxq queue(device, 8192, 64);
    shared_count packets(device);
    auto kernel =
        device.launch(receive_all_kernel, {.blocks = 1, .lanes = lanes}, queue, packets.on_device(), 64u, 20000u);
    repeating_thread nic([&queue, copy] { queue.publish(copy ? packet.data() : nullptr, 64); });
    return millions_a_second(settings, [&] { return packets.value(); });
}

/// Rate of one large copy from pinned memory to the GPU.
double copy_gbytes(const device& device)
{
    constexpr std::size_t bytes = 256u << 20;
    auto from = device.allocate(bytes, memory_kind::cpu_device), to = device.allocate(bytes, memory_kind::device);
    to.upload(from.cpu_address(), bytes);
    auto begin = clock_type::now();
    for (int i = 0; i < 4; ++i)
        to.upload(from.cpu_address(), bytes);
    return 4.0 * bytes / std::chrono::duration<double>(clock_type::now() - begin).count() / 1e9;
}

} // namespace

std::vector<sample> receive_rates(const device& device, const settings& settings)
{
    std::vector<sample> samples;
    for (std::uint32_t bytes : {64u, 1472u})
        for (std::uint32_t lanes : {1u, 32u, 256u, 1024u})
            samples.push_back({fmt::format("receive {} B, all read, {} lanes", bytes, lanes), "Mpps",
                               receive_mpps(device, settings, {bytes, bytes, lanes}, 1)});
    for (std::uint32_t lanes : {256u, 1024u})
        samples.push_back({fmt::format("receive 64 B, none read, {} lanes", lanes), "Mpps",
                           receive_mpps(device, settings, {64, 0, lanes}, 1)});
    samples.push_back({fmt::format("receive 64 B, 256 lanes, {} engines", settings.engines), "Mpps",
                       receive_mpps(device, settings, {64, 64, 256}, settings.engines)});
    for (std::uint32_t engines : {settings.engines, 2 * settings.engines})
        samples.push_back({fmt::format("receive 1472 B, all read, {} engines", engines), "GB/s",
                           receive_mpps(device, settings, {1472, 1472, 1024}, engines) * 1472 / 1000});
    if (device.name().starts_with("cuda"))
        for (shape staged : {shape{64, 64, 256, memory_kind::device}, shape{1472, 1472, 1024, memory_kind::device}})
            samples.push_back({fmt::format("receive {} B, staged, {} lanes", staged.bytes, staged.lanes), "Mpps",
                               receive_mpps(device, settings, staged, 1)});
    samples.push_back({"copy, pinned memory to GPU", "GB/s", copy_gbytes(device)});
    for (std::uint32_t lanes : {32u, 256u, 1024u})
        samples.push_back({fmt::format("published 64 B, not copied, {} lanes", lanes), "Mpps",
                           published_mpps(device, settings, lanes, false)});
    samples.push_back({"published 64 B, copied, 256 lanes", "Mpps", published_mpps(device, settings, 256, true)});
    return samples;
}

} // namespace weftio::bench
