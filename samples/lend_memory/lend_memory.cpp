// lend_memory: a kernel lends a peer a part of its memory by a memory window. The peer writes there, returns the window
// by SEND with invalidate, and writes again, which is refused. Both ends run in this process.
//
//   ./lend_memory
//   ./lend_memory -g opencl -n wire:lending
#include "lend_memory.kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(lender, "lend_memory.kernel.h");
WEFTIO_DEFINE_KERNEL(borrower, "lend_memory.kernel.h");

namespace {

using weftio::access;

struct options {
    std::string port = "loopback", device = "cpu";
};

/// Memory that the CPU and kernels access, with zeros.
weftio::memory zeros(const weftio::device& device, std::size_t bytes)
{
    weftio::memory made = device.allocate(bytes, weftio::memory_kind::cpu_device);
    std::memset(made.cpu_address(), 0, bytes);
    return made;
}

std::size_t count_of(const weftio::memory& where, int byte)
{
    const auto* const begin = static_cast<const unsigned char*>(where.cpu_address());
    return static_cast<std::size_t>(std::count(begin, begin + where.bytes(), byte));
}

/// Prints what happened, and returns whether the bytes and the window were lent and returned.
/// @param own       the lender's memory
/// @param statuses  of both WRITEs
/// @param key       that the borrower has returned; 0: none
bool report(const weftio::memory& own, const weftio::memory& statuses, std::uint32_t key)
{
    const auto* const seen = static_cast<const weftio_s32*>(statuses.cpu_address());
    fmt::print("Borrower: the first WRITE {}, the second {}\n", seen[0] == WEFTIO_DEV_OK ? "succeeded" : "failed",
               seen[1] == WEFTIO_DEV_QUEUE_ERROR ? "was refused" : "was not refused");
    fmt::print("Lender: key {:#x} was returned; {} bytes of the first WRITE, {} of the second\n", key,
               count_of(own, 'a'), count_of(own, 'b'));
    return seen[0] == WEFTIO_DEV_OK && seen[1] == WEFTIO_DEV_QUEUE_ERROR && key != 0 &&
           count_of(own, 'a') == LENT_BYTES && count_of(own, 'b') == 0;
}

int run(const options& wanted)
{
    auto device = weftio::device::open(wanted.device);
    auto port = weftio::port::open(wanted.port);

    // 1. The lender's memory: queue pairs may bind windows to it, and peers have no right to it. And a window.
    weftio::rdma_device at(port, {.address = "10.0.0.1"});
    weftio::rdma_queue lends(at, device), borrows(at, device);
    const weftio::memory own = zeros(device, 2 * LENT_BYTES);
    const weftio::memory_region region(port, own, {.rights = access::local_write | access::bind});
    const weftio::buf_arr buffers(region, device, {.count = 1, .buffer_bytes = 2 * LENT_BYTES});
    const weftio::memory_window window(at, weftio::window_type::type_2);

    // 2. The borrower's memory: bytes to write, and a number that the lender writes, the key.
    const weftio::buf_arr from(port, device, {.count = 1, .buffer_bytes = 2 * LENT_BYTES});
    std::memset(from.cpu_address(0), 'a', LENT_BYTES);
    std::memset(static_cast<char*>(from.cpu_address(0)) + LENT_BYTES, 'b', LENT_BYTES);
    const weftio::memory note = zeros(device, sizeof(weftio_u64));
    const weftio::memory_region told(port, note, {.rights = access::local_write | access::remote_write});

    // 3. Connect both, and have failures told.
    lends.connect(borrows.address());
    borrows.connect(lends.address());
    weftio::progress_engine progress;
    progress.attach(lends, {.on_sent = {}, .on_error = [](const weftio::send_failure& failure) {
                                fmt::print("Lender: {}\n", failure.text);
                            }});

    // 4. Where the lent bytes lie is no secret; only the key gives access. It comes from the lender's kernel.
    const weftio_dev_remote lent{region.iova() + LENT_BYTES, LENT_BYTES, 0, 0};
    const weftio::memory returned = zeros(device, sizeof(weftio_u32)), statuses = zeros(device, 2 * sizeof(weftio_s32));
    auto lending = device.launch(lender_kernel, {}, lends, lends.receives(), buffers, window.rkey(),
                                 weftio::remote_region::of(told).on_device(), returned.device_address());
    auto borrowing = device.launch(borrower_kernel, {}, borrows, from, lent,
                                   static_cast<const weftio_u64*>(note.device_address()), statuses.device_address());
    while (!sample::interrupted && (lending.alive() || borrowing.alive() || !lends.failed())) {
        progress.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (weftio::running_kernel* kernel : {&lending, &borrowing}) {
        kernel->stop();
        kernel->wait_for(std::chrono::seconds(5));
    }
    progress.progress();

    return report(own, statuses, *static_cast<const weftio_u32*>(returned.cpu_address())) ? 0 : 3;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel lends a peer a part of its memory by a memory window, until the peer returns it."};
    options wanted;
    app.option_defaults()->always_capture_default();
    app.add_option("-n,--port", wanted.port, "loopback, wire:NAME, iface:NAME, a PCI address or DPDK devargs");
    app.add_option("-g,--device", wanted.device, "where the kernels run: cpu, opencl, opencl:N, cuda:N");
    app.set_version_flag("-V,--version", "lend_memory " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
