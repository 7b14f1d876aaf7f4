// receive_process: one kernel receives packets, a second one parses them, and the CPU prints the number of packets of
// each protocol.
//
//   ./receive_process                            replays the built-in capture, on the CPU
//   ./receive_process -n iface:veth0 -g opencl   from an interface, through OpenCL
#include "receive_process.kernel.h"

#include <fmt/format.h>
#include <thread>
#include <unistd.h>

#include "../sample.hpp"
#include "totals.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(receive, "receive_process.kernel.h");
WEFTIO_DEFINE_KERNEL(process, "receive_process.kernel.h");

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct options {
    std::string port = "pcap:builtin", device = "cpu";
    std::uint32_t lanes = 1, count = 0;
    double seconds = 0;
};

/// Waits until enough packets have arrived, and shows the totals every second on a terminal.
void watch(const options& wanted, weftio::port& port, weftio::eth_rxq& queue, weftio::semaphore& to_cpu, totals& sum)
{
    weftio::flow everything(port, {}, weftio::flow_action::to(queue));
    const auto end = clock::now() + std::chrono::duration<double>(wanted.seconds > 0 ? wanted.seconds : 1e9);
    auto enough = [&] {
        return sample::interrupted || port.gone() || port.exhausted() || clock::now() > end ||
               (wanted.count && sum.frames[ETH] >= wanted.count);
    };
    for (auto next_print = clock::now() + 1s; !enough(); collect(to_cpu, sum)) {
        if (isatty(STDOUT_FILENO) && clock::now() >= next_print) {
            print(sum);
            fmt::print("\033[{}A", PROTOCOLS + 1); // the next table overwrites this one
            next_print += 1s;
        }
        std::this_thread::sleep_for(1ms);
    }
}

int run(const options& wanted)
{
    // 1. Open the device that runs kernels, and the port that packets arrive on.
    auto device = weftio::device::open(wanted.device);
    auto port = weftio::port::open(wanted.port);

    // 2. Make a queue for the kernels to own; a semaphore between them in device memory, and one that the CPU can
    //    access.
    weftio::eth_rxq queue(port, device, {.packets = PACKETS});
    weftio::semaphore to_process(device, {.items = PACKETS, .kind = weftio::memory_kind::device});
    weftio::semaphore to_cpu(device, {.items = PACKETS, .custom_info_bytes = sizeof(statistics)});

    // 3. Launch the kernels.
    auto receiving = device.launch(receive_kernel, {.lanes = wanted.lanes}, queue, to_process);
    auto processing = device.launch(process_kernel, {.lanes = wanted.lanes}, queue, to_process, to_cpu);

    // 4. Send packets to the queue: they arrive while the flow exists.
    fmt::print("Receiving on {} ({}) with two kernels on {}\n", port.spec(), port.driver(), device.name());
    totals sum;
    watch(wanted, port, queue, to_cpu, sum);

    // 5. Wait for delivered packets to be counted; the destructors stop the kernels.
    for (auto end = clock::now() + 5s; sum.frames[ETH] < queue.counters().delivered && clock::now() < end;
         collect(to_cpu, sum))
        std::this_thread::sleep_for(1ms);
    print(sum);
    auto all = port.counters();
    fmt::print("received {}, delivered {}, dropped {} ({} found no free slot, {} were too long)\n", all.received,
               all.delivered, all.dropped_total(), queue.counters().out_of_buffer, queue.counters().too_long);
    if (port.gone())
        throw weftio::error(weftio::errc::closed,
                            fmt::format("receive_process: port {} is unavailable: its device or its interface was "
                                        "removed; start again when it is back",
                                        port.spec()));
    return all.capture_damaged ? 2 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app{
        "One kernel receives packets, a second one inspects them, the CPU prints the number of each protocol."};
    app.option_defaults()->always_capture_default();
    app.add_option("-n,--port", wanted.port, "pcap:FILE, iface:NAME, tap:NAME, null, a PCI address or DPDK devargs");
    app.add_option("-g,--device", wanted.device, "where the kernels run: cpu, opencl, opencl:N, cuda:N");
    app.add_option("--lanes", wanted.lanes, "lanes of each kernel's one block")->check(CLI::Range(1, 1024));
    app.add_option("--count", wanted.count, "stop after this many packets (0: no limit)");
    app.add_option("--seconds", wanted.seconds, "stop after this many seconds (0: no limit)");
    app.set_version_flag("-V,--version", "receive_process " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
