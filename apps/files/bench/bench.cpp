#include "bench/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "bench/bench_file.hpp"
#include "bench/pattern.hpp"
#include "devices/backend.hpp"
#include "weftio/weftio.hpp"

namespace weftio::files {

namespace {

using load = bench_options::load;
using clock = std::chrono::steady_clock;

/// What workers have in common.
struct shared {
    const bench_options& options;
    const bench_file& on;
    device owner;
    std::uint64_t size;
    clock::time_point end;
    std::atomic<bool> stop{false};
};

/// How a worker moves bytes: the result as pread(2) has it, or -errno.
class mover {
 public:
    virtual ~mover() = default;
    virtual std::int64_t read(std::uint64_t offset) = 0;
    virtual std::int64_t write(std::uint64_t offset) = 0;
};

/// One load of one worker: its part of the file, its memory, its account.
class worker {
 public:
    worker(shared& with, unsigned number)
        : with_(with), memory_(with.owner.allocate(with.size, kind_of(with.options))), host_(with.size),
          slots_(with.on.bytes() / with.options.workers / with.size), first_(number * slots_), random_(number + 1)
    {}

    const memory& target() const noexcept { return memory_; }
    std::size_t size() const noexcept { return host_.size(); }

    void run(mover& by)
    {
        for (std::uint64_t number = 0; !with_.stop.load(std::memory_order_relaxed); ++number) {
            const std::uint64_t slot = with_.options.random ? random_() % slots_ : number % slots_;
            const bool write =
                with_.options.what == load::write || (with_.options.what == load::mixed && number % 2 != 0);
            const clock::time_point end = once(by, write, (first_ + slot) * with_.size);
            if (!account.complaint.empty() || end >= with_.end)
                return;
        }
    }

    bench_run account{};

 private:
    static memory_kind kind_of(const bench_options& options)
    {
        return options.device.compare(0, 4, "cuda") == 0 ? memory_kind::device : memory_kind::cpu_device;
    }

    clock::time_point once(mover& by, bool write, std::uint64_t offset)
    {
        if (write && with_.options.verify) {
            fill_pattern(host_, offset);
            memory_.upload(host_.data(), host_.size());
        }
        const clock::time_point begin = clock::now();
        const std::int64_t moved = write ? by.write(offset) : by.read(offset);
        const clock::time_point end = clock::now();
        account.latency.add(static_cast<std::uint64_t>((end - begin).count()));
        ++account.operations;
        if (moved != static_cast<std::int64_t>(host_.size()))
            complain(write, offset, moved);
        else if (!write && with_.options.verify)
            compare(offset);
        account.bytes += moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
        return end;
    }

    void complain(bool write, std::uint64_t offset, std::int64_t moved)
    {
        ++account.errors;
        account.complaint =
            fmt::format("{} of {} bytes at {}: {}", write ? "write" : "read", host_.size(), offset,
                        moved < 0 ? std::strerror(static_cast<int>(-moved)) : fmt::format("{} bytes only", moved));
    }

    void compare(std::uint64_t offset)
    {
        if (memory_.cpu_address())
            std::memcpy(host_.data(), memory_.cpu_address(), host_.size());
        else
            detail::internals::backend(with_.owner).download(host_.data(), memory_.device_address(), host_.size());
        if (const auto wrong = first_wrong(host_, offset)) {
            ++account.wrong;
            account.complaint = fmt::format("byte {} of the file was read wrong", offset + *wrong);
        }
    }

    shared& with_;
    memory memory_;
    std::vector<std::byte> host_; ///< for the pattern
    std::uint64_t slots_, first_;
    std::mt19937_64 random_;
};

class weftio_mover final : public mover {
 public:
    weftio_mover(const file& on, const file_engine& engine, const worker& of)
        : on_(on), buffer_(engine, of.target()), bytes_(of.size())
    {}

    std::int64_t read(std::uint64_t offset) override { return value(on_.read(buffer_, bytes_, offset)); }
    std::int64_t write(std::uint64_t offset) override { return value(on_.write(buffer_, bytes_, offset)); }

 private:
    static std::int64_t value(const file_result& result) { return result.ok() ? result.bytes : -result.error; }

    const file& on_;
    file_buffer buffer_;
    std::size_t bytes_;
};

/// What a program without Weftio does: pread(2) to a buffer of its own, and a copy from there.
class posix_mover final : public mover {
 public:
    posix_mover(shared& with, worker& of)
        : with_(with), target_(const_cast<memory&>(of.target())),
          bounce_(with.owner.allocate(of.size(), memory_kind::cpu_device))
    {}

    std::int64_t read(std::uint64_t offset) override
    {
        const ssize_t got = ::pread(with_.on.descriptor(), host(), bounce_.bytes(), static_cast<off_t>(offset));
        if (got > 0)
            target_.upload(host(), static_cast<std::size_t>(got));
        return got < 0 ? -errno : got;
    }
    std::int64_t write(std::uint64_t offset) override
    {
        if (target_.cpu_address())
            std::memcpy(host(), target_.cpu_address(), bounce_.bytes());
        else
            detail::internals::backend(with_.owner).download(host(), target_.device_address(), bounce_.bytes());
        const ssize_t put = ::pwrite(with_.on.descriptor(), host(), bounce_.bytes(), static_cast<off_t>(offset));
        return put < 0 ? -errno : put;
    }

 private:
    void* host() const noexcept { return bounce_.cpu_address(); }

    shared& with_;
    memory& target_;
    memory bounce_;
};

/// Runs one load in all workers, each with the mover that `make` gives it.
template <class Make>
bench_run run_workers(shared& with, std::string how, Make&& make)
{
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<std::unique_ptr<mover>> movers;
    for (unsigned number = 0; number < with.options.workers; ++number) {
        workers.push_back(std::make_unique<worker>(with, number));
        movers.push_back(make(*workers.back()));
    }
    const clock::time_point begin = clock::now();
    with.end = begin + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(with.options.seconds));
    std::vector<std::thread> threads;
    try {
        for (std::size_t number = 0; number < workers.size(); ++number)
            threads.emplace_back([&, number] { workers[number]->run(*movers[number]); });
    } catch (...) {
        with.stop = true;
        for (std::thread& each : threads)
            each.join();
        throw;
    }
    for (std::thread& each : threads)
        each.join();
    bench_run made{.how = std::move(how), .size = with.size};
    made.seconds = std::chrono::duration<double>(clock::now() - begin).count();
    for (const auto& each : workers) {
        made.operations += each->account.operations;
        made.bytes += each->account.bytes;
        made.errors += each->account.errors;
        made.wrong += each->account.wrong;
        made.latency.add(each->account.latency);
        if (made.complaint.empty())
            made.complaint = each->account.complaint;
    }
    return made;
}

} // namespace

std::vector<bench_run> run_bench(const bench_options& options, const std::function<void(const std::string&)>& step)
{
    const bench_file on(options);
    std::vector<bench_run> runs;
    for (std::uint64_t size : options.sizes) {
        if (size > on.bytes() / options.workers)
            throw error(errc::invalid_argument,
                        fmt::format("weftio-files: {} workers with {} bytes each do not fit the {} bytes of the file",
                                    options.workers, size, on.bytes()));
        shared with{.options = options, .on = on, .owner = device::open(options.device), .size = size, .end = {}};
        step(fmt::format("weftio, {} bytes", size));
        const file_engine engine({.only = options.only});
        const file opened(engine, on.descriptor());
        runs.push_back(run_workers(with, "weftio", [&](worker& of) {
            return std::unique_ptr<mover>(std::make_unique<weftio_mover>(opened, engine, of));
        }));
        runs.back().counters = engine.counters();
        step(fmt::format("posix + copy, {} bytes", size));
        runs.push_back(run_workers(with, "posix + copy", [&](worker& of) {
            return std::unique_ptr<mover>(std::make_unique<posix_mover>(with, of));
        }));
    }
    if (const std::string wrong = options.verify ? on.verify() : ""; !wrong.empty() && is_clean(runs)) {
        ++runs.back().wrong;
        runs.back().complaint = wrong;
    }
    return runs;
}

bool is_clean(const std::vector<bench_run>& runs) noexcept
{
    for (const bench_run& run : runs)
        if (run.errors + run.wrong != 0)
            return false;
    return true;
}

} // namespace weftio::files
