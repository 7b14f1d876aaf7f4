// file_checksum: a kernel reads a file and computes its checksum, as zlib's adler32 does. No port, no NIC.
//
//   ./file_checksum big.bin
//   ./file_checksum -g opencl --reads 16 --bytes 262144 big.bin
#include "file_checksum.kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "../sample.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(file_checksum, "file_checksum.kernel.h");

namespace {

struct options {
    std::string path, device = "cpu";
    std::uint32_t lanes = 32, reads = 8, bytes = 128 * 1024;
};

struct descriptor {
    explicit descriptor(const std::string& path) : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC))
    {
        if (number < 0)
            throw std::runtime_error(
                fmt::format("file_checksum: {}: {}; name a readable file", path, std::strerror(errno)));
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() { ::close(number); }
    const int number;
};

/// The checksum from the sums of all lanes.
std::uint32_t adler32(const lane_sums* sums, std::uint32_t lanes, std::uint64_t bytes)
{
    std::uint64_t plain = 0, weighted = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        plain += sums[lane].bytes;
        weighted += sums[lane].weighted;
    }
    const std::uint64_t length = bytes % ADLER_MODULUS;
    const std::uint64_t low = (1 + plain) % ADLER_MODULUS;
    const std::uint64_t high =
        (length + length * (plain % ADLER_MODULUS) + ADLER_MODULUS - weighted % ADLER_MODULUS) % ADLER_MODULUS;
    return static_cast<std::uint32_t>(high << 16 | low);
}

int run(const options& wanted)
{
    // 1. Open the file, the device that runs the kernel, and the engine that reads files.
    const descriptor opened(wanted.path);
    auto device = weftio::device::open(wanted.device);
    const weftio::file_engine engine;
    const weftio::file file(engine, opened.number);

    // 2. Make a queue for the kernel to own, a buffer for each read in flight, and memory for the kernel's results.
    weftio::file_queue queue(engine, device);
    weftio::buf_arr buffers(engine, device, {.count = wanted.reads, .buffer_bytes = wanted.bytes});
    auto state = device.allocate(sizeof(checksum_state), weftio::memory_kind::cpu_device);
    auto sums = device.allocate(sizeof(lane_sums) * wanted.lanes, weftio::memory_kind::cpu_device);

    // 3. Have failures reported to the host.
    weftio::progress_engine progress;
    progress.attach(queue, {.on_sent = {}, .on_error = [](const weftio::send_failure& failure) {
                                fmt::print(stderr, "{}\n", failure.text);
                            }});

    // 4. Launch the kernel, and wait until it has reached the end of the file.
    const auto begin = std::chrono::steady_clock::now();
    auto kernel = device.launch(file_checksum_kernel, {.lanes = wanted.lanes}, queue, file.key(), buffers,
                                state.device_address(), sums.device_address());
    while (!sample::interrupted && kernel.alive())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    progress.progress();

    // 5. Combine the sums of all lanes.
    const auto& result = *static_cast<const checksum_state*>(state.cpu_address());
    if (result.status != 0)
        return 3; // a read has failed; the failure was reported to the host
    const auto* const lanes = static_cast<const lane_sums*>(sums.cpu_address());
    fmt::print("{:08x}  {}\n", adler32(lanes, wanted.lanes, result.file_bytes), wanted.path);
    fmt::print(stderr, "{} bytes by a kernel on {}, {:.2f} GB/s with launch\n", result.file_bytes, device.name(),
               static_cast<double>(result.file_bytes) / seconds.count() / 1e9);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel streams a file, several reads in flight, and prints its Adler-32 checksum."};
    options wanted;
    app.option_defaults()->always_capture_default();
    app.add_option("file", wanted.path, "file to read")->required();
    app.add_option("-g,--device", wanted.device, "where the kernel runs: cpu, opencl, opencl:N, cuda:N");
    app.add_option("--lanes", wanted.lanes, "lanes of the kernel's one block")->check(CLI::Range(1, 1024));
    app.add_option("--reads", wanted.reads, "reads in flight")->check(CLI::Range(1, 1024));
    app.add_option("--bytes", wanted.bytes, "length of a read")->check(CLI::Range(1u, 1u << 24));
    app.set_version_flag("-V,--version", "file_checksum " WEFTIO_VERSION);
    return sample::main_of(app, argc, argv, [&] { return run(wanted); });
}
