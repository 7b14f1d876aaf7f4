// simple_receive: a kernel receives every UDP packet that arrives on a port, the CPU prints a line for each.
//
//   ./simple_receive                            replays the built-in capture, on the CPU
//   ./simple_receive -n iface:veth0 -g opencl   from an interface, through OpenCL
#include "simple_receive.kernel.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(simple_receive, "simple_receive.kernel.h");

namespace {

void print(const report_line& line)
{
    const auto* mac = line.ethernet;
    fmt::print("Lane {} received UDP packet with Eth src {:02x} - Eth dst {:02x} - {} bytes at {}.{:09}\n", line.lane,
               fmt::join(mac + 6, mac + 12, ":"), fmt::join(mac, mac + 6, ":"), line.bytes,
               line.timestamp_ns / 1'000'000'000, line.timestamp_ns % 1'000'000'000);
}

void print_conservation(const weftio::port_counters& counters)
{
    fmt::print("received {}, delivered {}, dropped {}", counters.received, counters.delivered,
               counters.dropped_total());
    for (std::size_t reason = 0; reason < counters.dropped.size(); ++reason)
        if (counters.dropped[reason])
            fmt::print(", {} {}", to_string(static_cast<weftio::drop_reason>(reason)), counters.dropped[reason]);
    fmt::print("{}\n", counters.capture_damaged ? ", capture damaged: it ends inside a record" : "");
    if (counters.dropped[static_cast<std::size_t>(weftio::drop_reason::too_long)])
        fmt::print("too_long: for shorter packets, run \"ethtool -K PEER tx off tso off gso off\" at the sender\n");
}

int run(const std::string& port_spec, const std::string& device_spec, std::uint32_t lanes, std::uint32_t count,
        double seconds)
{
    // 1. Open the device that runs kernels, and the port that packets arrive on.
    auto device = weftio::device::open(device_spec);
    auto port = weftio::port::open(port_spec);
    fmt::print("Receiving UDP on {} ({}) with a kernel on {}\n", port.spec(), port.driver(), device.name());

    // 2. Make a queue for the kernel to own, and memory for its report.
    weftio::eth_rxq queue(port, device, {.packets = REPORT_LINES});
    auto memory = device.allocate(sizeof(report), weftio::memory_kind::cpu_device);
    auto* lines = static_cast<report*>(memory.cpu_address());

    // 3. Launch the kernel.
    auto kernel = device.launch(simple_receive_kernel, {.blocks = 1, .lanes = lanes}, queue, memory.device_address());

    // 4. Send packets to the queue with a flow.
    weftio::flow udp(port, {.ip_protocol = 17}, weftio::flow_action::to(queue));

    // 5. Print until enough packets have arrived.
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds > 0 ? seconds : 1e9);
    std::uint32_t printed = 0;
    while (!sample::interrupted && kernel.alive() && !port.gone() && std::chrono::steady_clock::now() < end &&
           (count == 0 || printed < count)) {
        bool last_look = port.exhausted();
        std::uint32_t written = weftio_load_acquire_sys_u32(&lines->written);
        for (; printed != written && (count == 0 || printed < count); ++printed)
            print(lines->lines[printed % REPORT_LINES]);
        weftio_store_release_sys_u32(&lines->read, printed);
        if (last_look && printed == queue.counters().delivered)
            break;
        std::fflush(stdout);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    print_conservation(port.counters());
    if (port.gone())
        throw weftio::error(weftio::errc::closed,
                            fmt::format("simple_receive: port {} is unavailable: its device or its interface was "
                                        "removed; start again when it is back",
                                        port.spec()));
    return port.counters().capture_damaged ? 2 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel receives every UDP packet that arrives on a port and reports it."};
    std::string port = "pcap:builtin", device = "cpu";
    std::uint32_t lanes = 1, count = 0;
    double seconds = 0;
    app.add_option("-n,--port", port, "pcap:FILE, iface:NAME, tap:NAME, null, a PCI address or DPDK devargs")
        ->capture_default_str();
    app.add_option("-g,--device", device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N")
        ->capture_default_str();
    app.add_option("--lanes", lanes, "lanes of the kernel's one block")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--count", count, "stop after this many packets (0: no limit)")->capture_default_str();
    app.add_option("--seconds", seconds, "stop after this many seconds (0: no limit)")->capture_default_str();
    app.set_version_flag("-V,--version", "simple_receive " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(port, device, lanes, count, seconds); });
}
