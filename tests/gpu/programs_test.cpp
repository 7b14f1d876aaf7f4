// The kernels of receive_process and weftio-replay do on a GPU what they do on the CPU.
#include "receive_process.kernel.h"

#include "fixture.hpp"
#include "session.hpp"
#include "unit/replay/capture_bytes.hpp"
#include "unit/replay/scratch.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(receive, "receive_process.kernel.h");
WEFTIO_DEFINE_KERNEL(process, "receive_process.kernel.h");

namespace weftio::test {
namespace {

using GpuPrograms = gpu_fixture;

std::vector<std::uint64_t> protocols_of_the_builtin_capture(const device& where, std::uint32_t lanes)
{
    auto port = port::open("pcap:builtin");
    eth_rxq queue(port, where, {.packets = PACKETS});
    semaphore to_process(where, {.items = PACKETS, .kind = memory_kind::device});
    semaphore to_cpu(where, {.items = PACKETS, .custom_info_bytes = sizeof(statistics)});
    auto receiving = where.launch(receive_kernel, {1, lanes}, queue, to_process);
    auto processing = where.launch(process_kernel, {1, lanes}, queue, to_process, to_cpu);
    flow everything(port, {}, flow_action::to(queue));
    std::vector<std::uint64_t> frames(PROTOCOLS);
    auto collect = [&] {
        to_cpu.for_each_ready([&](auto, auto, auto, void* info) {
            auto& batch = *static_cast<statistics*>(info);
            for (std::size_t protocol = 0; protocol < PROTOCOLS; ++protocol)
                frames[protocol] += batch.frames[protocol];
            batch = {};
        });
        return port.exhausted() && frames[ETH] == queue.counters().delivered;
    };
    EXPECT_TRUE(eventually(collect));
    return frames;
}

TEST_F(GpuPrograms, ReceiveProcessCountsAsTheCpuDoes)
{
    auto expected = protocols_of_the_builtin_capture(device::open("cpu"), 1);
    EXPECT_GT(expected[ETH], 0u);
    for (std::uint32_t lanes : {1u, 32u, 256u})
        EXPECT_EQ(protocols_of_the_builtin_capture(gpu(), lanes), expected) << lanes;
}

std::vector<std::string> bytes_of(const replay::test::read_capture& capture)
{
    std::vector<std::string> frames;
    for (const auto& frame : capture.frames)
        frames.push_back(frame.bytes);
    return frames;
}

TEST_F(GpuPrograms, ReplayWritesTheCaptureThatItRead)
{
    using namespace replay::test;
    scratch files;
    std::string capture = pcap_header();
    for (std::uint32_t number = 0; number < 5000; ++number)
        capture += pcap_record(false, 0, number * 20, frame_of(60 + number % 100, static_cast<char>(number)));
    std::atomic<bool> stop{false};
    for (std::uint32_t lanes : {1u, 64u}) {
        stop = false;
        auto made = replay::replay_files({.files = {files.write("in.pcap", capture)},
                                          .port = "pcap:tx=" + files.path("out.pcap"),
                                          .device = gpu_spec(),
                                          .lanes = lanes},
                                         stop, [](const replay::progress&) {});
        EXPECT_EQ(made.failure, "");
        EXPECT_EQ(made.total.frames.sent, 5000u);
        EXPECT_EQ(made.total.times.early, 0u);
        EXPECT_TRUE(bytes_of(read_all(files.read("out.pcap"))) == bytes_of(read_all(capture))) << lanes;
    }
}

} // namespace
} // namespace weftio::test
