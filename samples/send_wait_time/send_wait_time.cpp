// send_wait_time: a kernel schedules 8 bursts of 32 frames of 1 kB, at an interval in nanoseconds, and returns.
//
//   ./send_wait_time -n iface:veth0 -t 5000000            watch with "tcpdump -i veth1 -tt ether proto 0x88b5"
//   ./send_wait_time -n pcap:tx=out.pcap -t 50000 -g opencl
#include "send_wait_time.kernel.h"

#include <fmt/format.h>
#include <netinet/ether.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(send_wait_time, "send_wait_time.kernel.h");

namespace {

constexpr std::uint64_t lead_ns = 50'000'000;              // from now to the first burst
constexpr std::uint64_t longest_interval_ns = 500'000'000; // the last burst must be within the queue's horizon
struct options {
    std::string port = "null", device = "cpu", mac = "10:11:12:13:14:15";
    std::uint32_t lanes = FRAMES;
    std::uint64_t interval_ns = 5'000'000;
    bool wait_for_link = false;
};

void fill(std::uint8_t* frame, const weftio::port& port, const std::string& destination, std::uint32_t number)
{
    auto source = port.mac();
    ether_aton_r(destination.c_str(), reinterpret_cast<ether_addr*>(frame));
    frame = std::copy(source.begin(), source.end(), frame + 6);
    *frame++ = 0x88; // local experimental EtherType
    *frame++ = 0xb5;
    fmt::format_to(frame, "Sent from Weftio: burst {}, frame {}", number / FRAMES, number % FRAMES);
}

int run(const options& wanted)
{
    // 1. Open the device that runs kernels, and the port that frames leave through.
    auto device = weftio::device::open(wanted.device);
    auto port = weftio::port::open(wanted.port);
    while (wanted.wait_for_link && !sample::interrupted && !port.link_up())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fmt::print("Sending {} bursts of {} frames on {} ({}) with a kernel on {}\n", BURSTS, FRAMES, port.spec(),
               port.driver(), device.name());

    // 2. Make a queue for the kernel to own, and the frames.
    weftio::eth_txq queue(port, device);
    weftio::buf_arr frames(port, device, {.count = BURSTS * FRAMES, .buffer_bytes = FRAME_BYTES});
    for (std::uint32_t number = 0; number < BURSTS * FRAMES; ++number)
        fill(static_cast<std::uint8_t*>(frames.cpu_address(number)), port, wanted.mac, number);

    // 3. Have failures and sent frames reported to the host.
    std::uint32_t sent = 0;
    bool failed = false;
    weftio::progress_engine progress;
    auto report = [&](const weftio::send_failure& failure) {
        fmt::print(stderr, "{}\n", failure.text);
        failed = true;
    };
    progress.attach(queue, {.on_sent = [&](auto&&) { ++sent; }, .on_error = report});

    // 4. Launch the kernel and set the start time; the kernel returns long before it.
    auto memory = device.allocate(sizeof(schedule), weftio::memory_kind::cpu_device);
    auto* when = static_cast<schedule*>(memory.cpu_address());
    auto kernel = device.launch(send_wait_time_kernel, {.lanes = wanted.lanes}, queue, frames, memory.device_address(),
                                wanted.interval_ns);
    while (!sample::interrupted && kernel.alive() && !weftio_load_acquire_sys_u32(&when->running))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    weftio_store_release_sys_u64(&when->start, weftio::eth_txq::timestamp(weftio::utc_now_ns() + lead_ns));
    kernel.wait_for(std::chrono::seconds(5));

    // 5. Wait until all frames have been sent.
    while (!sample::interrupted && !failed && sent < BURSTS * FRAMES) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    auto counters = queue.counters();
    auto late = queue.schedule();
    fmt::print("sent {}, failed {}, flushed {}; handed over late by p50 {} ns, p99 {} ns, max {} ns, {} past\n",
               counters.sent, counters.failed, counters.flushed, late.p50_ns, late.p99_ns, late.max_ns,
               counters.tx_pp_timestamp_past_errors);
    const std::uint64_t dropped = port.counters().tx_dropped;
    fmt::print("{}", dropped ? fmt::format("then dropped by the interface: {}\n", dropped) : "");
    return failed || dropped || counters.sent != BURSTS * FRAMES ? 3 : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel schedules 8 bursts of 32 frames of 1 kB and returns; the NIC sends them on time."};
    options wanted;
    auto is_mac = [](const std::string& text) {
        return ether_aton(text.c_str()) ? "" : text + " is not a MAC address";
    };
    app.option_defaults()->always_capture_default();
    app.add_option("-n,--port", wanted.port, "iface:NAME, tap:NAME, pcap:tx=FILE, null, a PCI address or DPDK devargs");
    app.add_option("-g,--device", wanted.device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N");
    app.add_option("-t,--interval", wanted.interval_ns, "nanoseconds between bursts")
        ->check(CLI::Range(std::uint64_t{0}, longest_interval_ns));
    app.add_option("--lanes", wanted.lanes, "lanes of the kernel's one block")->check(CLI::Range(1, 1024));
    app.add_option("--dst-mac", wanted.mac, "to whom")->check(is_mac);
    app.add_flag("--wait-for-link", wanted.wait_for_link, "start when the port's link is up");
    app.set_version_flag("-V,--version", "send_wait_time " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
