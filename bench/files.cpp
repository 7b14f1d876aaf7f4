// Compares reads of a file by batches with fio's io_uring in the same run; from the page cache, or with O_DIRECT.
//
//   ./files_bench                              5 rounds: reads of 1 MiB, and of 4 KiB at random offsets
//   ./files_bench --gpu cuda:0 --threads 16    to memory of a GPU, compared with cuFile's compatibility mode
//   ./files_bench --folder /dev/shm --depth 16 --threads 2 --json out.json
//
// Measurements alternate, so that other load of the machine affects both sides; medians of pairs are compared. Both
// sides use the same file, depth and number of threads.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"
#include "weftio/memory.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

struct options : bench::common_options {
    std::string folder = "/tmp";
    unsigned megabytes = 256, depth = 16, threads = 1;
    double seconds = 0.5; ///< for each measurement
    bool direct = false, unregistered = false;
};

/// A kind of reads: `block` bytes at a time.
struct load {
    const char* name;
    std::size_t block;
    bool random;
    const char* unit;
    double in_unit; ///< one block per second, in `unit`
};
constexpr load loads[] = {{"1 MiB", std::size_t{1} << 20, false, "GB/s", 1e-9 * (1 << 20)},
                          {"4 KiB at random", 4096, true, "k/s", 1e-3}};

/// A file in the page cache. The destructor removes it.
class cached_file {
 public:
    explicit cached_file(const options& wanted) : path_(wanted.folder + "/weftio-bench-XXXXXX")
    {
        descriptor_ = mkstemp(path_.data());
        const std::vector<char> bytes(std::size_t{1} << 20, 'w');
        for (unsigned each = 0; each < wanted.megabytes; ++each)
            if (write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
                throw std::runtime_error(
                    fmt::format("files_bench: {} cannot be written; name another --folder", path_));
        fsync(descriptor_); // so that write-back is not part of the measurement
        if (wanted.direct && fcntl(descriptor_, F_SETFL, O_DIRECT) != 0)
            throw std::runtime_error(
                fmt::format("files_bench: {} has no O_DIRECT; name another --folder", wanted.folder));
    }
    cached_file(const cached_file&) = delete;
    cached_file& operator=(const cached_file&) = delete;
    ~cached_file()
    {
        close(descriptor_);
        unlink(path_.c_str());
    }
    int descriptor() const { return descriptor_; }
    const std::string& path() const { return path_; }

 private:
    std::string path_;
    int descriptor_ = -1;
};

/// Reads in one thread with `depth` reads in flight, each with a buffer of its own. Returns the number of reads done.
std::uint64_t read_for_a_while(const options& wanted, const load& load, const file_engine& engine, const file& file,
                               unsigned thread)
{
    const std::size_t blocks = std::size_t{wanted.megabytes} * (1 << 20) / load.block;
    std::minstd_rand random(thread + 1);
    const std::unique_ptr<void, decltype(&std::free)> room(std::aligned_alloc(4096, load.block * wanted.depth),
                                                           &std::free);
    auto* const memory = static_cast<std::byte*>(room.get());
    std::optional<file_buffer> registered;
    if (wanted.direct && !wanted.unregistered)
        registered.emplace(engine, memory, load.block * wanted.depth);
    std::vector<file_event> events(wanted.depth);
    std::vector<file_operation> next;
    std::uint64_t count = 0, at = thread;
    auto add = [&](std::uintptr_t place) {
        const std::uint64_t block = (load.random ? random() : at++) % blocks;
        next.push_back({file_operation::kind::read, &file, file_memory(memory + place * load.block), load.block,
                        block * load.block, reinterpret_cast<void*>(place)});
    };
    file_batch batch(engine, wanted.depth);
    for (std::uintptr_t place = 0; place < wanted.depth; ++place)
        add(place);
    const auto end = clock::now() + std::chrono::duration<double>(wanted.seconds);
    while (clock::now() < end) {
        if (!batch.submit(next))
            throw std::logic_error("files_bench: a batch accepts fewer operations than it has completed");
        next.clear();
        const std::size_t taken = batch.status(1, events, std::chrono::seconds(10));
        for (const file_event& each : std::span(events).first(taken)) {
            if (each.result.bytes != static_cast<std::int64_t>(load.block))
                throw std::runtime_error(fmt::format("files_bench: a read failed with errno {}", each.result.error));
            add(reinterpret_cast<std::uintptr_t>(each.cookie));
        }
        count += taken;
    }
    return count;
}

/// Blocks per second that all threads read by batches.
double by_batches(const options& wanted, const load& load, const file_engine& engine, const file& file)
{
    std::vector<std::uint64_t> counts(wanted.threads);
    std::vector<std::thread> threads;
    const auto start = clock::now();
    for (unsigned each = 0; each < wanted.threads; ++each)
        threads.emplace_back([&, each] { counts[each] = read_for_a_while(wanted, load, engine, file, each); });
    for (std::thread& each : threads)
        each.join();
    std::uint64_t all = 0;
    for (const std::uint64_t each : counts)
        all += each;
    return static_cast<double>(all) / std::chrono::duration<double>(clock::now() - start).count();
}

/// Blocks per second that fio reads; invalidate=0 leaves the file in the page cache.
double by_fio(const options& wanted, const load& load, const std::string& path)
{
    const std::string command = fmt::format(
        "fio --name=bench --filename={} --ioengine=io_uring --rw={} --bs={} --iodepth={} --numjobs={} --thread "
        "--group_reporting --time_based --runtime={}ms --direct={} --invalidate=0 --norandommap --output-format=terse "
        "2>/dev/null",
        path, load.random ? "randread" : "read", load.block, wanted.depth, wanted.threads,
        static_cast<unsigned>(wanted.seconds * 1000), wanted.direct ? 1 : 0);
    FILE* output = popen(command.c_str(), "re");
    std::string said(1 << 16, '\0');
    said.resize(output ? std::fread(said.data(), 1, said.size(), output) : 0);
    const int status = output ? pclose(output) : -1;
    // Version 3 of fio's terse format: fields 6 to 8 are KiB read, KiB per second, and reads per second.
    std::vector<std::string> fields;
    for (std::size_t from = 0, to = 0; to != std::string::npos && fields.size() < 9; from = to + 1) {
        to = said.find(';', from);
        fields.push_back(said.substr(from, to - from));
    }
    if (status != 0 || fields.size() < 9)
        throw std::runtime_error("files_bench: cannot run fio; install it (Debian: fio), or measure with --no-fio");
    return std::stod(fields[6]) * 1024 / static_cast<double>(load.block);
}

/// Blocks per second that the engine reads to memory of a GPU. Each thread reads its part of the file repeatedly.
double to_gpu(const options& wanted, const device& gpu, const file_engine& engine, int descriptor)
{
    constexpr std::size_t block = std::size_t{1} << 20;
    const file file(engine, descriptor);
    std::vector<std::uint64_t> counts(wanted.threads);
    std::vector<memory> memories;
    for (unsigned each = 0; each < wanted.threads; ++each)
        memories.push_back(gpu.allocate(block, memory_kind::device));
    const auto read = [&](unsigned thread) {
        const file_buffer buffer(engine, memories[thread]);
        const auto end = clock::now() + std::chrono::duration<double>(wanted.seconds);
        for (std::uint64_t at = thread; clock::now() < end; at += wanted.threads, ++counts[thread])
            if (const file_result result = file.read(buffer, block, at % wanted.megabytes * block);
                result.bytes != static_cast<std::int64_t>(block))
                return;
    };
    std::vector<std::thread> threads;
    const auto start = clock::now();
    for (unsigned each = 0; each < wanted.threads; ++each)
        threads.emplace_back(read, each);
    std::uint64_t all = 0;
    for (unsigned each = 0; each < wanted.threads; ++each) {
        threads[each].join();
        all += counts[each];
    }
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    if (const auto& counted = engine.counters(); all == 0 || counted.of(file_way::cufile).errors() != 0)
        throw std::runtime_error("files_bench: reads to the GPU fail; run with WEFTIO_LOG=info to see why");
    return static_cast<double>(all) / seconds;
}

/// Reads from a file to memory of a GPU: by Weftio and by NVIDIA's library in its compatibility mode, alternately.
int run_gpu(const options& wanted, const std::string& name)
{
    const cached_file cached(wanted);
    const device gpu = device::open(name);
    const std::string json = cached.path() + ".json"; // configuration file for NVIDIA's library
    std::ofstream(json) << R"({"properties": {"allow_compat_mode": true, "force_compat_mode": true}})";
    setenv("CUFILE_ENV_PATH_JSON", json.c_str(), 1);
    std::ofstream(json + ".ours") << "{}";
    const file_engine vendors({.only = file_way::cufile, .configuration = json + ".ours"});
    const file_engine own({.configuration = json + ".ours"});
    std::vector<double> ours, theirs;
    for (unsigned round = 0; round < wanted.rounds; ++round) {
        ours.push_back(to_gpu(wanted, gpu, own, cached.descriptor()) * loads[0].in_unit);
        theirs.push_back(to_gpu(wanted, gpu, vendors, cached.descriptor()) * loads[0].in_unit);
    }
    unlink(json.c_str());
    unlink((json + ".ours").c_str());
    bench::table table("files_bench");
    table.add({.name = "cuFile's compatibility mode, 1 MiB to the GPU", .unit = "GB/s", .values = theirs});
    table.add({.name = "file to GPU, 1 MiB",
               .unit = "GB/s",
               .values = ours,
               .peer = "cuFile's compatibility mode, 1 MiB to the GPU"});
    fmt::print("{} MiB in {}, {} threads, {}\n", wanted.megabytes, wanted.folder, wanted.threads, name);
    table.finish(wanted.json);
    return 0;
}

int run(const options& wanted, bool with_fio)
{
    const cached_file cached(wanted);
    const file_engine engine({.only = file_way::uring, .depth = wanted.depth});
    const file file(engine, cached.descriptor());
    constexpr std::size_t count = std::size(loads);
    std::vector<std::vector<double>> ours(count), theirs(count);
    for (unsigned round = 0; round < wanted.rounds; ++round)
        for (std::size_t at = 0; at < count; ++at) {
            ours[at].push_back(by_batches(wanted, loads[at], engine, file) * loads[at].in_unit);
            if (with_fio)
                theirs[at].push_back(by_fio(wanted, loads[at], cached.path()) * loads[at].in_unit);
        }
    bench::table table("files_bench");
    for (std::size_t at = 0; at < count; ++at) {
        const std::string peer = with_fio ? fmt::format("fio reads {}", loads[at].name) : "";
        if (with_fio)
            table.add({.name = peer, .unit = loads[at].unit, .values = theirs[at]});
        table.add({.name = fmt::format("uring reads {}", loads[at].name),
                   .unit = loads[at].unit,
                   .values = ours[at],
                   .peer = peer});
    }
    fmt::print("{} MiB in {}, {} in flight, {} thread{}\n", wanted.megabytes, wanted.folder, wanted.depth,
               wanted.threads, wanted.threads == 1 ? "" : "s");
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    bool without_fio = false;
    std::string gpu;
    CLI::App app{"Speed of reads in batches, from the page cache or with O_DIRECT, compared with fio's io_uring."};
    app.add_option("--folder", wanted.folder, "folder for the file")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    app.add_option("--size", wanted.megabytes, "size of the file, in MiB")
        ->check(CLI::Range(1u, 65536u))
        ->capture_default_str();
    app.add_option("--depth", wanted.depth, "reads in flight per thread")
        ->check(CLI::Range(1u, 4096u))
        ->capture_default_str();
    app.add_option("--threads", wanted.threads, "that read")->check(CLI::Range(1u, 256u))->capture_default_str();
    app.add_option("--seconds", wanted.seconds, "length of each measurement")
        ->check(CLI::Range(0.01, 60.0))
        ->capture_default_str();
    app.add_flag("--direct", wanted.direct, "use O_DIRECT, past the page cache, and registered memory");
    app.add_flag("--unregistered", wanted.unregistered, "with --direct: memory without a file_buffer");
    app.add_flag("--no-fio", without_fio, "measure only Weftio");
    app.add_option("--gpu", gpu,
                   "instead, measure reads to memory of this GPU, cuda:N, compared with cuFile's compatibility mode");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return gpu.empty() ? run(wanted, !without_fio) : run_gpu(wanted, gpu); });
}
