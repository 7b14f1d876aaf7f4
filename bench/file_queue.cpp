// Latency of a read by a kernel, compared with pread() of the host for the same bytes in the same run; and the latency
// of small reads while another queue at the same engine reads 1 MiB at a time. The file is in the page cache.
//
//   ./file_queue_bench                              7 rounds
//   ./file_queue_bench --cores 2,4,6 --reads 100000 --json out.json
//
// The reading thread runs on one core, the engine on another, the other queue's thread on a third if there is one. One
// read is in flight at a time; its duration is measured.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/arguments.hpp"
#include "common/on_core.hpp"
#include "common/table.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::size_t file_bytes = std::size_t{64} << 20;
constexpr std::uint32_t small_bytes = 4096, long_bytes = 1 << 20;

struct options : bench::common_options {
    std::uint32_t reads = 20'000; ///< in each round
    std::vector<int> cores{0, 1}; ///< core of the reading thread, core of the engine
    std::string folder = "/tmp";
};

/// An unnamed file that is completely in the page cache.
class cached_file {
 public:
    explicit cached_file(const std::string& folder)
        : number(open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR))
    {
        const std::vector<char> zeros(long_bytes, 1);
        for (std::size_t at = 0; at < file_bytes; at += zeros.size())
            if (number < 0 || pwrite(number, zeros.data(), zeros.size(), static_cast<off_t>(at)) != long_bytes)
                throw std::runtime_error(
                    fmt::format("file_queue_bench: cannot create a file of {} bytes in {}; name another --folder",
                                file_bytes, folder));
    }
    cached_file(const cached_file&) = delete;
    cached_file& operator=(const cached_file&) = delete;
    ~cached_file() { close(number); }
    const int number;
};

struct setting {
    explicit setting(const options& wanted)
        : made(wanted.folder), engine({.idle = idle_policy::busy, .core = wanted.cores[1]}), file(engine, made.number)
    {}

    cached_file made;
    file_engine engine;
    device cpu = device::open("cpu");
    weftio::file file;
    file_queue queue{engine, cpu, {.entries = 64}}, neighbor{engine, cpu, {.entries = 64}};
    memory room = cpu.allocate(long_bytes, memory_kind::cpu_device),
           beside = cpu.allocate(long_bytes, memory_kind::cpu_device);
    memory_region region{engine, room}, beside_region{engine, beside};
};

void require(std::int32_t status, const char* what)
{
    if (status != WEFTIO_DEV_OK)
        throw std::runtime_error(fmt::format("file_queue_bench: {} returned status {}", what, status));
}

std::uint64_t offset_of(std::uint32_t read)
{
    return std::uint64_t{read} * 7919 % (file_bytes / small_bytes) * small_bytes;
}

double microseconds_each(clock::time_point start, std::uint32_t reads)
{
    return std::chrono::duration<double, std::micro>(clock::now() - start).count() / reads;
}

double by_pread(const options& wanted, setting& where)
{
    const auto start = clock::now();
    for (std::uint32_t read = 0; read < wanted.reads; ++read)
        if (pread(where.made.number, where.room.cpu_address(), small_bytes, static_cast<off_t>(offset_of(read))) !=
            small_bytes)
            throw std::runtime_error("file_queue_bench: pread() failed");
    return microseconds_each(start, wanted.reads);
}

double by_queue(const options& wanted, setting& where)
{
    weftio_dev_file_queue* const files = where.queue.handle();
    const weftio_dev_buf to = where.region.buffer();
    weftio_u32 position = 0, mask = 0;
    weftio_dev_file_get_info(files, &position, &mask);
    const auto start = clock::now();
    for (std::uint32_t read = 0; read < wanted.reads; ++read) {
        require(weftio_dev_file_read_weak(files, where.file.key(), offset_of(read), to, 0, small_bytes, position, 0),
                "a read");
        weftio_dev_file_commit_weak(files, 1);
        require(weftio_dev_file_wait(files, position++, 0), "the wait for a read");
    }
    return microseconds_each(start, wanted.reads);
}

/// Another file queue that has 1 MiB reads in flight from the end of construction to destruction.
class long_reads {
 public:
    explicit long_reads(setting& where) : before_(where.neighbor.counters().read), thread_([&] { run(where); })
    {
        while (where.neighbor.counters().read < before_ + 4)
            std::this_thread::yield();
    }
    long_reads(const long_reads&) = delete;
    long_reads& operator=(const long_reads&) = delete;
    ~long_reads()
    {
        ending_ = true;
        thread_.join();
    }

 private:
    void run(setting& where)
    {
        weftio_dev_file_queue* const files = where.neighbor.handle();
        for (std::uint64_t at = 0; !ending_; at = (at + long_bytes) % file_bytes) {
            require(weftio_dev_file_wait_room(files, 48, 0), "the neighbor's wait");
            require(weftio_dev_file_read(files, where.file.key(), at, where.beside_region.buffer(), 0, long_bytes, 0),
                    "the neighbor's read");
            weftio_dev_file_commit(files);
        }
        require(weftio_dev_file_commit_wait(files, 0), "the neighbor's last wait");
    }

    const std::uint64_t before_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

int run(const options& wanted)
{
    setting where(wanted);
    std::vector<double> alone, queued, over, beside;
    options fewer = wanted;
    fewer.reads = wanted.reads / 10;
    const bench::on_core here(wanted.cores[0]);
    by_queue(wanted, where); // warms up
    for (std::uint32_t round = 0; round < wanted.rounds; ++round) {
        alone.push_back(by_pread(wanted, where));
        queued.push_back(by_queue(wanted, where));
        over.push_back(queued.back() - alone.back());
        const long_reads neighbor(where);
        beside.push_back(by_queue(fewer, where));
    }
    bench::table table("file_queue_bench");
    table.add({.name = "pread 4 KiB", .unit = "us", .values = alone});
    table.add({.name = "read of a kernel 4 KiB", .unit = "us", .values = queued, .peer = "pread 4 KiB"});
    table.add({.name = "read of a kernel 4 KiB, over pread", .unit = "us", .values = over});
    table.add({.name = "read of a kernel 4 KiB, beside 1 MiB reads", .unit = "us", .values = beside});
    fmt::print("{} reads a round by {}, cores {}\n", wanted.reads,
               where.engine.has(file_way::uring) ? "io_uring" : "pread", fmt::join(wanted.cores, " to "));
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 7;
    CLI::App app{"Cost of a read that a kernel requests, compared with pread(), alone and next to long reads."};
    app.add_option("--reads", wanted.reads, "reads of 4 KiB per round")
        ->check(CLI::Range(10u, 1u << 30))
        ->capture_default_str();
    app.add_option("--folder", wanted.folder, "folder for the file")->capture_default_str();
    bench::add_cores(app, wanted.cores, "cores of the reader and of the engine");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
