#include "bench/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "bench/bench_file.hpp"
#include "bench/fio.hpp"
#include "bench/pattern.hpp"
#include "devices/backend.hpp"
#include "weftio/weftio.hpp"

namespace weftio::files {

namespace {

using load = bench_options::load;
using clock = std::chrono::steady_clock;

constexpr std::size_t parts_of_a_round = 20; ///< of bench_run::progress

/// What workers have in common.
struct shared {
    const bench_options& options;
    const bench_file& on;
    device owner;
    std::uint64_t size;
    unsigned round = 0;
    clock::time_point begin{}, end{};
    std::atomic<bool> stop{false};

    double seconds_of_a_round() const noexcept { return options.seconds / options.rounds; }
    std::size_t part_of(clock::time_point at) const noexcept
    {
        const double share = std::chrono::duration<double>(at - begin) / std::chrono::duration<double>(end - begin);
        return round * parts_of_a_round +
               std::min(static_cast<std::size_t>(share * parts_of_a_round), parts_of_a_round - 1);
    }
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
        : with_(with), memory_(with.owner.allocate(with.size, kind_of(with.options))),
          host_(with.options.verify ? with.size : 0), slots_(with.on.bytes() / with.options.workers / with.size),
          first_(number * slots_), random_(number + 1)
    {
        account.progress.resize(with.options.rounds * parts_of_a_round);
    }

    const memory& target() const noexcept { return memory_; }
    std::size_t size() const noexcept { return with_.size; }

    /// Until the round ends, or something is wrong.
    void run(mover& by)
    {
        while (account.complaint.empty() && !with_.stop.load(std::memory_order_relaxed)) {
            const std::uint64_t slot = with_.options.random ? random_() % slots_ : number_ % slots_;
            const bool write =
                with_.options.what == load::write || (with_.options.what == load::mixed && number_ % 2 != 0);
            ++number_;
            if (once(by, write, (first_ + slot) * with_.size) >= with_.end)
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
        account.latency.record(static_cast<std::uint64_t>((end - begin).count()));
        ++account.operations;
        if (moved != static_cast<std::int64_t>(size()))
            complain(write, offset, moved);
        else if (!write && with_.options.verify)
            compare(offset);
        const std::uint64_t bytes = moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
        account.bytes += bytes;
        account.progress[with_.part_of(end)] += bytes;
        return end;
    }

    void complain(bool write, std::uint64_t offset, std::int64_t moved)
    {
        ++account.errors;
        account.complaint =
            fmt::format("{} of {} bytes at {}: {}", write ? "write" : "read", size(), offset,
                        moved < 0 ? std::strerror(static_cast<int>(-moved)) : fmt::format("only {} bytes", moved));
    }

    void compare(std::uint64_t offset)
    {
        if (memory_.cpu_address())
            std::memcpy(host_.data(), memory_.cpu_address(), host_.size());
        else
            detail::internals::backend(with_.owner).download(host_.data(), memory_.device_address(), host_.size());
        if (const auto wrong = first_wrong(host_, offset)) {
            ++account.wrong;
            account.complaint = fmt::format("byte {} of the file was read incorrectly", offset + *wrong);
        }
    }

    shared& with_;
    memory memory_;
    std::vector<std::byte> host_;              ///< for the pattern, if it is verified
    std::uint64_t slots_, first_, number_ = 0; ///< number of the next operation
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

/// The workers of one way, each with its mover, over all rounds.
class crew {
 public:
    /// @param make  gives each worker its mover
    template <class Make>
    crew(shared& with, std::string how, Make&& make)
        : with_(with), sum_{.how = std::move(how), .file_bytes = with.on.bytes(), .size = with.size}
    {
        for (unsigned number = 0; number < with.options.workers; ++number) {
            workers_.push_back(std::make_unique<worker>(with, number));
            movers_.push_back(make(*workers_.back()));
        }
    }

    void round()
    {
        with_.begin = clock::now();
        with_.end = with_.begin + std::chrono::duration_cast<clock::duration>(
                                      std::chrono::duration<double>(with_.seconds_of_a_round()));
        std::vector<std::jthread> threads; // joined, also when one cannot be started
        try {
            for (std::size_t number = 0; number < workers_.size(); ++number)
                threads.emplace_back([&, number] { workers_[number]->run(*movers_[number]); });
        } catch (...) {
            with_.stop = true;
            throw;
        }
        threads.clear();
        sum_.seconds += std::chrono::duration<double>(clock::now() - with_.begin).count();
    }

    bench_run total() const
    {
        bench_run made = sum_;
        made.progress.resize(with_.options.rounds * parts_of_a_round);
        for (const auto& each : workers_) {
            const bench_run& account = each->account;
            made.operations += account.operations;
            made.bytes += account.bytes;
            made.errors += account.errors;
            made.wrong += account.wrong;
            made.latency.add(account.latency);
            for (std::size_t at = 0; at < made.progress.size(); ++at)
                made.progress[at] += account.progress[at];
            if (made.complaint.empty())
                made.complaint = account.complaint;
        }
        return made;
    }

 private:
    shared& with_;
    bench_run sum_; ///< name and time
    std::vector<std::unique_ptr<worker>> workers_;
    std::vector<std::unique_ptr<mover>> movers_;
};

/// A round of fio, by io_uring where Weftio may use it.
void round_of_fio(const shared& with, const file_engine& engine, bench_run& to)
{
    const std::uint64_t before = to.bytes;
    add_fio_round(with.options, with.on, engine.has(file_way::uring) ? "io_uring" : "psync", with.seconds_of_a_round(),
                  to);
    to.progress.push_back(to.bytes - before);
}

/// Runs one size each way, a round of each in turn: what else the machine does is spread over all of them.
void run_size(shared& with, bool with_fio, const std::function<void(const std::string&)>& step,
              std::vector<bench_run>& runs)
{
    const bench_options& options = with.options;
    const file_engine engine({.only = options.only});
    const file opened(engine, with.on.descriptor());
    crew ours(with, "weftio",
              [&](worker& of) { return std::unique_ptr<mover>(std::make_unique<weftio_mover>(opened, engine, of)); });
    crew theirs(with, "posix + copy",
                [&](worker& of) { return std::unique_ptr<mover>(std::make_unique<posix_mover>(with, of)); });
    bench_run fio{.how = "fio", .file_bytes = with.on.bytes(), .size = with.size};
    for (; with.round < options.rounds; ++with.round) {
        const std::string what = fmt::format("{} bytes, round {} of {}", with.size, with.round + 1, options.rounds);
        step("weftio, " + what);
        ours.round();
        step("posix + copy, " + what);
        theirs.round();
        if (!with_fio)
            continue;
        step("fio, " + what);
        round_of_fio(with, engine, fio);
    }
    runs.push_back(ours.total());
    runs.back().counters = engine.counters();
    runs.push_back(theirs.total());
    if (with_fio)
        runs.push_back(std::move(fio));
}

} // namespace

std::vector<bench_run> run_bench(const bench_options& options, const std::function<void(const std::string&)>& step)
{
    const bench_file on(options);
    const std::string why_not = options.fio ? why_no_fio(options) : "";
    if (!why_not.empty())
        step("without fio: " + why_not);
    std::vector<bench_run> runs;
    for (std::uint64_t size : options.sizes) {
        shared with{.options = options, .on = on, .owner = device::open(options.device), .size = size};
        run_size(with, options.fio && why_not.empty(), step, runs);
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
        if ((run.how != "fio" && run.errors != 0) || run.wrong != 0)
            return false;
    return true;
}

} // namespace weftio::files
