// dma_memcpy: a kernel copies memory by a DMA engine and continues meanwhile. No port, no NIC.
//
//   ./dma_memcpy --bytes 65536 --count 1000
//   ./dma_memcpy -g opencl --lanes 64
#include "dma_memcpy.kernel.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(dma_memcpy, "dma_memcpy.kernel.h");

namespace {

struct options {
    std::string device = "cpu";
    std::uint32_t lanes = 32, bytes = 4096, count = 1000;
};

/// Number of pieces that were copied correctly.
std::uint32_t whole_pieces(const weftio::buf_arr& from, const weftio::buf_arr& to, std::uint32_t bytes)
{
    std::uint32_t whole = 0;
    for (std::uint32_t piece = 0; piece < from.count(); ++piece)
        whole += std::memcmp(from.cpu_address(piece), to.cpu_address(piece), bytes) == 0;
    return whole;
}

int run(const options& wanted)
{
    // 1. Open the device that runs the kernel, and start the engine that copies.
    auto device = weftio::device::open(wanted.device);
    weftio::dma_engine engine;
    fmt::print("Copying {} pieces of {} bytes for a kernel on {}\n", wanted.count, wanted.bytes, device.name());

    // 2. Make a queue for the kernel to own, source buffers with content, and destination buffers.
    weftio::dma_queue queue(engine, device);
    weftio::buf_arr from(engine, device, {.count = wanted.count, .buffer_bytes = wanted.bytes});
    weftio::buf_arr to(engine, device, {.count = wanted.count, .buffer_bytes = wanted.bytes});
    for (std::uint32_t piece = 0; piece < wanted.count; ++piece)
        std::memset(from.cpu_address(piece), static_cast<int>(piece % 255 + 1), wanted.bytes);
    auto status = device.allocate(sizeof(std::uint32_t), weftio::memory_kind::cpu_device);

    // 3. Have failures reported to the host.
    weftio::progress_engine progress;
    progress.attach(queue, {.on_sent = {}, .on_error = [](const weftio::send_failure& failure) {
                                fmt::print(stderr, "{}\n", failure.text);
                            }});

    // 4. Launch the kernel, and wait until its copies are done.
    const auto begin = std::chrono::steady_clock::now();
    auto kernel = device.launch(dma_memcpy_kernel, {.lanes = wanted.lanes}, queue, from, to, status.device_address());
    while (!sample::interrupted && kernel.alive()) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));

    const auto counters = queue.counters();
    const std::uint32_t whole = whole_pieces(from, to, wanted.bytes);
    fmt::print("copied {}, failed {}, flushed {}; {} of {} pieces verified, {:.2f} GB/s with launch\n", counters.copied,
               counters.failed, counters.flushed, whole, wanted.count,
               static_cast<double>(counters.copied_bytes) / seconds.count() / 1e9);
    return whole == wanted.count ? 0 : 3;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel copies memory by a DMA engine and waits for the copies."};
    options wanted;
    app.option_defaults()->always_capture_default();
    app.add_option("-g,--device", wanted.device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N");
    app.add_option("--lanes", wanted.lanes, "lanes of the kernel's one block")->check(CLI::Range(1, 1024));
    app.add_option("--bytes", wanted.bytes, "length of a piece")->check(CLI::Range(1u, 1u << 30));
    app.add_option("--count", wanted.count, "number of pieces")->check(CLI::PositiveNumber);
    app.set_version_flag("-V,--version", "dma_memcpy " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
