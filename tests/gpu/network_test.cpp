// Frames and items between kernels on a GPU, every byte checked by the kernel that gets them.
#include <algorithm>

#include "fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(stream_out, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(stream_in, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(scatter_out, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(gather_in, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(answer_items, "gpu.kernel.h");

namespace weftio::test {
namespace {

/// How many packets a stream has: WEFTIO_GPU_PACKETS, for the long run that one wants now and then.
std::uint32_t stream_packets()
{
    const char* wanted = std::getenv("WEFTIO_GPU_PACKETS");
    return wanted ? static_cast<std::uint32_t>(std::stoul(wanted)) : 200'000;
}

struct stream {
    std::uint32_t lanes, bytes;
    memory_kind buffers = memory_kind::cpu_device; ///< where packets arrive
    memory_kind frames = memory_kind::cpu_device;  ///< where they are sent from
};

class GpuStream : public gpu_fixture, public testing::WithParamInterface<stream> {};

TEST_P(GpuStream, ArrivesWholeInOrderAndOnce)
{
    auto [lanes, bytes, buffers, from] = GetParam();
    std::uint32_t total = lanes >= 256 ? stream_packets() : std::min(stream_packets(), 20'000 * lanes);
    port port = loopback();
    eth_rxq rx(port, gpu(), {.packets = 4096, .buffers = buffers, .verify_checksums = false});
    eth_txq tx(port, gpu(), {.entries = 4096});
    memory room = gpu().allocate(std::size_t{4096} * bytes, from);
    memory_region region(port, room);
    buf_arr frames(region, gpu(), {.count = 4096, .buffer_bytes = bytes, .stride_bytes = bytes});
    flow all(port, {}, flow_action::to(rx));
    shared_verdict sent(gpu()), received(gpu());
    running_kernel in = gpu().launch(stream_in_kernel, {1, lanes}, rx, received.on_device(), total, bytes);
    running_kernel out =
        gpu().launch(stream_out_kernel, {1, std::max(lanes, 256u)}, tx, frames, sent.on_device(), total, bytes);
    EXPECT_TRUE(in.wait_for(5 * patience)) << received.packets() << " of " << total << " have come\n"
                                           << in.dump() << out.dump();
    EXPECT_TRUE(out.wait_for(patience));
    EXPECT_EQ(received.packets(), total);
    EXPECT_EQ(received.wrong() + sent.wrong(), 0u);
    port_counters counters = port.counters();
    EXPECT_EQ(counters.received, total);
    EXPECT_EQ(counters.delivered, total);
    EXPECT_EQ(counters.dropped_total(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Lanes, GpuStream,
                         testing::Values(stream{1, 64}, stream{32, 64}, stream{256, 64}, stream{1024, 64},
                                         stream{32, 1472}, stream{1024, 1472}, stream{256, 64, memory_kind::device},
                                         stream{1024, 1472, memory_kind::device},
                                         stream{256, 64, memory_kind::cpu_device, memory_kind::device},
                                         stream{1024, 1472, memory_kind::device, memory_kind::device}),
                         [](const auto& info) {
                             return std::to_string(info.param.lanes) + "of" + std::to_string(info.param.bytes) +
                                    (info.param.buffers == memory_kind::device ? "staged" : "") +
                                    (info.param.frames == memory_kind::device ? "pulled" : "");
                         });

using GpuSend = gpu_fixture;

/// All lanes of a grid send frames on one queue: each arrives once.
void expect_each_once(const device& gpu, grid senders, std::uint32_t entries, std::uint32_t total)
{
    port port = loopback();
    eth_rxq rx(port, gpu, {.packets = 8192, .verify_checksums = false});
    eth_txq tx(port, gpu, {.entries = entries});
    buf_arr frames(port, gpu, {.count = total, .buffer_bytes = 64});
    flow all(port, {}, flow_action::to(rx));
    shared_verdict sent(gpu), received(gpu);
    std::vector<weftio_u32> times(total);
    memory seen = gpu.allocate(times.size() * sizeof(weftio_u32), memory_kind::device);
    seen.upload(times.data(), times.size() * sizeof(weftio_u32));
    running_kernel in = gpu.launch(gather_in_kernel, {1, 256}, rx, received.on_device(), seen.device_address(), total);
    running_kernel out = gpu.launch(scatter_out_kernel, senders, tx, frames, sent.on_device(), total);
    EXPECT_TRUE(out.wait_for(5 * patience)) << out.dump();
    ASSERT_TRUE(in.wait_for(patience)) << received.packets() << " of " << total << " have come\n" << in.dump();
    EXPECT_EQ(received.wrong() + sent.wrong(), 0u);
    seen.download(times.data(), times.size() * sizeof(weftio_u32));
    EXPECT_EQ(std::ranges::count(times, 1u), total);
}

TEST_F(GpuSend, StrongFromManyBlocksLosesAndDoublesNothing)
{
    expect_each_once(gpu(), {8, 96}, 1024, 50'000);
}

TEST_F(GpuSend, StrongFrom64BlocksLosesAndDoublesNothing)
{
    expect_each_once(gpu(), {64, 256}, 32768, stream_packets());
}

TEST_F(GpuSend, EntryThatCannotBeExecutedFailsItsQueueAlone)
{
    port port = port::open("null");
    eth_txq bad(port, gpu()), good(port, gpu());
    buf_arr frames(port, gpu(), {.count = 64, .buffer_bytes = 64});
    shared_verdict sent(gpu());
    weftio_dev_buf_arr unknown{.abi = WEFTIO_DEV_ABI_BUF_ARR,
                               .lkey_be = weftio_swap32(0xbad000),
                               .base = static_cast<std::uint8_t*>(frames.cpu_address(0)),
                               .stride_bytes = 64,
                               .count = 64,
                               .buffer_bytes = 64,
                               .reserved = {}};
    memory handle = gpu().allocate(sizeof unknown, memory_kind::device);
    handle.upload(&unknown, sizeof unknown);
    gpu().launch(scatter_out_kernel, {}, bad, handle.device_address(), sent.on_device(), 1u).wait_for(patience);
    EXPECT_TRUE(eventually([&] { return bad.failed(); }));
    ASSERT_TRUE(gpu().launch(scatter_out_kernel, {}, good, frames, sent.on_device(), 64u).wait_for(patience));
    EXPECT_TRUE(eventually([&] { return good.counters().sent == 64; }));
    EXPECT_FALSE(good.failed());
}

using GpuSemaphore = gpu_fixture;

TEST_F(GpuSemaphore, ItemsGoToAKernelAndBack)
{
    constexpr std::uint32_t total = 5000;
    semaphore items(gpu(), {.items = 64, .custom_info_bytes = 64});
    shared_verdict verdict(gpu());
    running_kernel kernel = gpu().launch(answer_items_kernel, {}, items, verdict.on_device(), total);
    auto info = [&](std::uint32_t item) { return static_cast<std::uint32_t*>(items.get_custom_info(item)); };
    for (std::uint32_t item = 0; item < total; ++item) {
        *info(item) = frame_word(item, 0);
        items.set_packet_info(item, semaphore_status::ready, {.count = item, .first = ~item});
        std::optional<packet_info> answer;
        while (!answer && kernel.alive())
            answer = items.get_packet_info(item, semaphore_status::done);
        ASSERT_TRUE(answer || (answer = items.get_packet_info(item, semaphore_status::done))) << item;
        EXPECT_EQ(answer->count, ~item);
        EXPECT_EQ(answer->first, item);
        ASSERT_EQ(*info(item), frame_word(item, 1));
        items.set_status(item, semaphore_status::free);
    }
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_EQ(verdict.wrong(), 0u);
}

} // namespace
} // namespace weftio::test
