// produce_send: a kernel builds UDP datagrams and sends them, every lane at its own position of the queue (weak mode).
//
//   ./produce_send -n iface:veth0 --count 1000            watch with "tcpdump -i veth1 udp port 2090"
//   ./produce_send -n pcap:tx=out.pcap -g opencl
#include "produce_send.kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <thread>

#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(produce_send, "produce_send.kernel.h");

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// Ethernet, IPv4 and UDP headers of every frame: to everybody, from 192.168.1.1:2090 to 192.168.1.2:2090.
void write_headers(std::uint8_t* to, const weftio::port& port)
{
    constexpr std::uint8_t ip_bytes = FRAME_BYTES - 14, udp_bytes = ip_bytes - 20;
    // clang-format off
    constexpr std::array<std::uint8_t, 42> headers{
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x08, 0x00,               // Ethernet
        0x45, 0, 0, ip_bytes, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 1, 1, 192, 168, 1, 2, // IPv4
        0x08, 0x2a, 0x08, 0x2a, 0, udp_bytes, 0, 0};                                    // UDP
    // clang-format on
    std::copy(headers.begin(), headers.end(), to);
    auto source = port.mac();
    std::copy(source.begin(), source.end(), to + 6);
}

int run(const std::string& port_spec, const std::string& device_spec, std::uint32_t lanes, std::uint32_t count)
{
    // 1. Where kernels run, and where frames go.
    auto device = weftio::device::open(device_spec);
    auto port = weftio::port::open(port_spec);
    fmt::print("Sending {} datagrams on {} ({}) with a kernel on {}\n", count, port.spec(), port.driver(), device.name());

    // 2. A queue that the kernel owns, a buffer for every entry of it, and what all frames have in common.
    weftio::eth_txq queue(port, device);
    weftio::buf_arr frames(port, device, {.count = queue.entries(), .buffer_bytes = FRAME_BYTES});
    auto headers = device.allocate(64, weftio::memory_kind::cpu_device);
    write_headers(static_cast<std::uint8_t*>(headers.cpu_address()), port);

    // 3. The host hears of failures.
    bool failed = false;
    weftio::progress_engine progress;
    progress.attach(queue, {.on_sent = {}, .on_error = [&](const weftio::send_failure& failure) {
                                fmt::print(stderr, "{}\n", failure.text);
                                failed = true;
                            }});

    // 4. The kernel.
    auto kernel =
        device.launch(produce_send_kernel, {.blocks = 1, .lanes = lanes}, queue, frames, headers.device_address(), count);

    // 5. Wait for it, and for what it has pushed.
    while (!interrupted && !failed && (kernel.alive() || queue.counters().sent < count)) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    auto counters = queue.counters();
    fmt::print("sent {}, failed {}, flushed {}\n", counters.sent, counters.failed, counters.flushed);
    return failed ? 1 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel builds UDP datagrams and sends them, every lane at its own position of the queue."};
    std::string port = "null", device = "cpu";
    std::uint32_t lanes = 32, count = 1000;
    app.add_option("-n,--port", port, "iface:NAME, tap:NAME, pcap:tx=FILE, null, a PCI address or DPDK devargs")
        ->capture_default_str();
    app.add_option("-g,--device", device, "where the kernel runs: cpu, opencl, opencl:N")->capture_default_str();
    app.add_option("--lanes", lanes, "lanes of the kernel's one block")->capture_default_str()->check(CLI::Range(1, 1024));
    app.add_option("--count", count, "how many datagrams")->capture_default_str();
    CLI11_PARSE(app, argc, argv);

    std::signal(SIGINT, [](int) { interrupted = 1; });
    std::signal(SIGTERM, [](int) { interrupted = 1; });
    try {
        return run(port, device, lanes, count);
    } catch (const weftio::error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
