#include "bench/fio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace weftio::files {

namespace {

/// What a program writes, in memory. A descriptor of -1: there is no memory.
class kept_output {
 public:
    kept_output() = default;
    kept_output(const kept_output&) = delete;
    kept_output& operator=(const kept_output&) = delete;
    ~kept_output() { ::close(descriptor_); }

    int descriptor() const noexcept { return descriptor_; }
    std::string text() const
    {
        std::string all;
        char part[1 << 14];
        for (ssize_t got = 0; (got = ::pread(descriptor_, part, sizeof part, static_cast<off_t>(all.size()))) > 0;)
            all.append(part, static_cast<std::size_t>(got));
        return all;
    }

 private:
    const int descriptor_ = ::memfd_create("output", MFD_CLOEXEC);
};

/// Runs a program of the PATH to its end. Returns its exit status, or -errno.
int run(const std::vector<std::string>& words, const kept_output& output, const kept_output& errors)
{
    std::vector<char*> arguments;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors.descriptor(), STDERR_FILENO);
    pid_t child = 0;
    const int refused = ::posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (refused != 0)
        return -refused;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// As --filename takes it: a colon would end it.
std::string fio_name(const std::string& path)
{
    const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
    std::string name;
    for (const char c : std::string(whole ? whole.get() : path.c_str()))
        name += c == ':' ? "\\:" : std::string{c};
    return name;
}

std::vector<std::string> words_of(const bench_options& options, const bench_file& on, const std::string& engine,
                                  std::uint64_t size, double seconds)
{
    using load = bench_options::load;
    const std::uint64_t region = on.bytes() / options.workers / size * size;
    const char* const what = options.what == load::read ? "read" : options.what == load::write ? "write" : "rw";
    return {"fio",
            "--name=weftio-files",
            "--filename=" + fio_name(on.path()),
            "--allow_file_create=0",
            "--ioengine=" + engine,
            fmt::format("--rw={}{}", options.random ? "rand" : "", what),
            fmt::format("--bs={}", size),
            fmt::format("--size={}", region),
            fmt::format("--offset_increment={}", region),
            fmt::format("--numjobs={}", options.workers),
            fmt::format("--direct={}", options.direct ? 1 : 0),
            fmt::format("--runtime={}ms", std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds * 1000))),
            "--time_based",
            "--iodepth=1",
            "--thread",
            "--group_reporting",
            "--invalidate=0",
            "--norandommap",
            "--fallocate=none",
            "--unified_rw_reporting=1",
            "--lat_percentiles=1",
            "--clat_percentiles=0",
            "--output-format=json+"};
}

} // namespace

std::string why_no_fio(const bench_options& options)
{
    if (options.device != "cpu")
        return "it reads and writes host memory only";
    if (options.verify && options.what != bench_options::load::read)
        return "it does not write the pattern that is verified";
    const kept_output output, errors;
    return run({"fio", "--version"}, output, errors) == 0 ? "" : "it is not installed (Debian: fio)";
}

std::string add_fio_report(const std::string& said, bench_run& to)
{
    const auto report = nlohmann::json::parse(
        said.begin() + static_cast<std::ptrdiff_t>(std::min(said.find('{'), said.size())), said.end(), nullptr, false);
    try {
        const auto& job = report.at("jobs").at(0);
        if (const int error = job.at("error"); error != 0)
            return std::strerror(error);
        const auto& all = job.at("mixed");
        to.operations += all.at("total_ios").get<std::uint64_t>();
        to.bytes += all.at("io_bytes").get<std::uint64_t>();
        to.seconds += all.at("runtime").get<double>() / 1e3;
        for (const auto& [ns, count] : all.at("lat_ns").at("bins").items())
            to.latency.record(std::stoull(ns), count.get<std::uint64_t>());
        return {};
    } catch (const std::exception&) { // not what this version of fio should say
        return "unknown format of its report";
    }
}

void add_fio_round(const bench_options& options, const bench_file& on, const std::string& engine, double seconds,
                   bench_run& to)
{
    const kept_output output, errors;
    const int status = run(words_of(options, on, engine, to.size, seconds), output, errors);
    std::string why = add_fio_report(output.text(), to);
    if (why.empty() && status == 0)
        return;
    const std::string words = errors.text();
    if (!words.empty())
        why = words.substr(0, words.find('\n'));
    ++to.errors;
    to.complaint = fmt::format("fio exited with status {}: {}", status, why);
}

} // namespace weftio::files
