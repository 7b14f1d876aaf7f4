// send_wait_time: a kernel schedules 8 bursts of 32 frames of 1 kB, one burst every so many nanoseconds, and returns.
//
//   ./send_wait_time -n iface:veth0 -t 5000000            watch with "tcpdump -i veth1 -tt ether proto 0x88b5"
//   ./send_wait_time -n pcap:tx=out.pcap -t 50000 -g opencl
#include "send_wait_time.kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <thread>

#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(send_wait_time, "send_wait_time.kernel.h");

namespace {

constexpr std::uint64_t lead_ns = 50'000'000;              // from now to the first burst
constexpr std::uint64_t longest_interval_ns = 500'000'000; // the last burst must be within the queue's horizon
volatile std::sig_atomic_t interrupted = 0;

void fill(std::uint8_t* frame, const weftio::port& port, std::uint32_t number)
{
    constexpr std::array<std::uint8_t, 6> destination{0x10, 0x11, 0x12, 0x13, 0x14, 0x15};
    auto source = port.mac();
    frame = std::copy(destination.begin(), destination.end(), frame);
    frame = std::copy(source.begin(), source.end(), frame);
    *frame++ = 0x88; // local experimental EtherType
    *frame++ = 0xb5;
    fmt::format_to(frame, "Sent from Weftio: burst {}, frame {}", number / FRAMES, number % FRAMES);
}

int run(const std::string& port_spec, const std::string& device_spec, std::uint32_t lanes, std::uint64_t interval_ns)
{
    // 1. Where kernels run, and where frames go.
    auto device = weftio::device::open(device_spec);
    auto port = weftio::port::open(port_spec);
    fmt::print("Sending {} bursts of {} frames on {} ({}) with a kernel on {}\n", BURSTS, FRAMES, port.spec(), port.driver(),
               device.name());

    // 2. A queue that the kernel owns, and frames.
    weftio::eth_txq queue(port, device);
    weftio::buf_arr frames(port, device, {.count = BURSTS * FRAMES, .buffer_bytes = FRAME_BYTES});
    for (std::uint32_t number = 0; number < BURSTS * FRAMES; ++number)
        fill(static_cast<std::uint8_t*>(frames.cpu_address(number)), port, number);

    // 3. The host hears of failures, and of every frame sent.
    std::uint32_t sent = 0;
    bool failed = false;
    weftio::progress_engine progress;
    auto count = [&](const weftio::send_notification&) { ++sent; };
    auto report = [&](const weftio::send_failure& failure) {
        fmt::print(stderr, "{}\n", failure.text);
        failed = true;
    };
    progress.attach(queue, {.on_sent = count, .on_error = report});

    // 4. The kernel: it is told when to start, and has returned long before.
    auto memory = device.allocate(sizeof(schedule), weftio::memory_kind::cpu_device);
    auto* when = static_cast<schedule*>(memory.cpu_address());
    auto kernel = device.launch(send_wait_time_kernel, {.blocks = 1, .lanes = lanes}, queue, frames, memory.device_address(),
                                interval_ns);
    while (!interrupted && kernel.alive() && !weftio_load_acquire_sys_u32(&when->running))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    weftio_store_release_sys_u64(&when->start, weftio::eth_txq::timestamp(weftio::utc_now_ns() + lead_ns));
    kernel.wait_for(std::chrono::seconds(5));

    // 5. Wait for the frames.
    while (!interrupted && !failed && sent < BURSTS * FRAMES) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    auto counters = queue.counters();
    auto late = queue.schedule();
    fmt::print("sent {}, failed {}, flushed {}; handed over late by p50 {} ns, p99 {} ns, max {} ns, {} past\n", counters.sent,
               counters.failed, counters.flushed, late.p50_ns, late.p99_ns, late.max_ns, counters.tx_pp_timestamp_past_errors);
    return failed ? 1 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel schedules 8 bursts of 32 frames of 1 kB to 10:11:12:13:14:15 and returns; the NIC keeps the times."};
    std::string port = "null", device = "cpu";
    std::uint32_t lanes = FRAMES;
    std::uint64_t interval_ns = 5'000'000;
    app.add_option("-n,--port", port, "iface:NAME, tap:NAME, pcap:tx=FILE, null, a PCI address or DPDK devargs")
        ->capture_default_str();
    app.add_option("-g,--device", device, "where the kernel runs: cpu, opencl, opencl:N")->capture_default_str();
    app.add_option("-t,--interval", interval_ns, "nanoseconds from burst to burst")
        ->capture_default_str()
        ->check(CLI::Range(std::uint64_t{0}, longest_interval_ns));
    app.add_option("--lanes", lanes, "lanes of the kernel's one block")->capture_default_str();
    CLI11_PARSE(app, argc, argv);

    std::signal(SIGINT, [](int) { interrupted = 1; });
    std::signal(SIGTERM, [](int) { interrupted = 1; });
    try {
        return run(port, device, lanes, interval_ns);
    } catch (const weftio::error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
