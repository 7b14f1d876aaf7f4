// produce_send: a kernel builds UDP datagrams and sends them, every lane at its own position of the queue (weak mode).
//
//   ./produce_send -n iface:veth0 --count 1000            watch with "tcpdump -i veth1 udp port 2090"
//   ./produce_send -n pcap:tx=out.pcap -g opencl
#include "produce_send.kernel.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/ether.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(produce_send, "produce_send.kernel.h");

namespace {

struct options {
    std::string port = "null", device = "cpu", mac = "ff:ff:ff:ff:ff:ff", ip = "192.168.1.2";
    std::uint32_t lanes = 32, count = 1000;
    bool wait_for_link = false;
};

/// Writes the Ethernet, IPv4 and UDP headers of all frames, from 192.168.1.1:2090 to port 2090 of the destination.
void write_headers(std::uint8_t* to, const weftio::port& port, const options& wanted)
{
    constexpr std::uint8_t ip_bytes = FRAME_BYTES - 14, udp_bytes = ip_bytes - 20;
    // clang-format off
    constexpr std::array<std::uint8_t, 42> headers{
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00,                           // Ethernet
        0x45, 0, 0, ip_bytes, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 1, 1, 0, 0, 0, 0, // IPv4
        0x08, 0x2a, 0x08, 0x2a, 0, udp_bytes, 0, 0};                              // UDP
    // clang-format on
    std::copy(headers.begin(), headers.end(), to);
    auto source = port.mac();
    std::copy(source.begin(), source.end(), to + 6);
    ether_aton_r(wanted.mac.c_str(), reinterpret_cast<ether_addr*>(to));
    inet_pton(AF_INET, wanted.ip.c_str(), to + 30);
}

int run(const options& wanted)
{
    // 1. Open the device that runs kernels, and the port that frames leave through.
    auto device = weftio::device::open(wanted.device);
    auto port = weftio::port::open(wanted.port);
    while (wanted.wait_for_link && !sample::interrupted && !port.link_up())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fmt::print("Sending {} datagrams on {} ({}) with a kernel on {}\n", wanted.count, port.spec(), port.driver(),
               device.name());

    // 2. Make a queue for the kernel to own, a buffer for each of its entries, and the headers of all frames.
    weftio::eth_txq queue(port, device);
    weftio::buf_arr frames(port, device, {.count = queue.entries(), .buffer_bytes = FRAME_BYTES});
    auto headers = device.allocate(64, weftio::memory_kind::cpu_device);
    write_headers(static_cast<std::uint8_t*>(headers.cpu_address()), port, wanted);

    // 3. Have failures reported to the host.
    bool failed = false;
    weftio::progress_engine progress;
    progress.attach(queue, {.on_sent = {}, .on_error = [&](const weftio::send_failure& failure) {
                                fmt::print(stderr, "{}\n", failure.text);
                                failed = true;
                            }});

    // 4. Launch the kernel.
    auto kernel = device.launch(produce_send_kernel, {.lanes = wanted.lanes}, queue, frames, headers.device_address(),
                                wanted.count);

    // 5. Wait until the kernel has ended and all its frames have been sent.
    while (!sample::interrupted && !failed && (kernel.alive() || queue.counters().sent < wanted.count)) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    auto counters = queue.counters();
    fmt::print("sent {}, failed {}, flushed {}", counters.sent, counters.failed, counters.flushed);
    const std::uint64_t dropped = port.counters().tx_dropped;
    fmt::print("{}\n", dropped ? fmt::format(", then dropped by the interface {}", dropped) : "");
    return failed || dropped || counters.sent != wanted.count ? 3 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel builds UDP datagrams and sends them, each lane at its own position of the queue."};
    options wanted;
    auto is_mac = [](const std::string& text) {
        return ether_aton(text.c_str()) ? "" : text + " is not a MAC address";
    };
    app.option_defaults()->always_capture_default();
    app.add_option("-n,--port", wanted.port, "iface:NAME, tap:NAME, pcap:tx=FILE, null, a PCI address or DPDK devargs");
    app.add_option("-g,--device", wanted.device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N");
    app.add_option("--lanes", wanted.lanes, "lanes of the kernel's one block")->check(CLI::Range(1, 1024));
    app.add_option("--count", wanted.count, "number of datagrams");
    app.add_option("--dst-mac", wanted.mac, "to whom")->check(is_mac);
    app.add_option("--dst-ip", wanted.ip, "destination, an IPv4 address")->check(CLI::ValidIPV4);
    app.add_flag("--wait-for-link", wanted.wait_for_link, "start when the port's link is up");
    app.set_version_flag("-V,--version", "produce_send " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
