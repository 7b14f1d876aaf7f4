#include "dpdk/environment.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/bpf_logs.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/program.hpp"
#include "core/undying.hpp"
#include "dpdk/close_on_exec.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::size_t lines_kept = 4;

struct last_lines {
    std::mutex mutex;
    std::deque<std::string> lines;
};

void take_line(std::string_view line) noexcept
try {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
        line.remove_suffix(1);
    if (line.empty())
        return;
    auto level = rte_log_cur_msg_loglevel();
    bool grave = level > 0 && level <= static_cast<int>(RTE_LOG_WARNING);
    if (grave) {
        last_lines& last = core::undying<last_lines>();
        std::scoped_lock lock(last.mutex);
        last.lines.emplace_back(line);
        if (last.lines.size() > lines_kept)
            last.lines.pop_front();
    }
    core::log(grave ? log_level::warning : log_level::info, fmt::format("dpdk: {}", line));
} catch (...) { // no memory, or an exception of the sink: neither may unwind through DPDK
}

/// A FILE for DPDK's log that writes to the log sink. Line-buffered, so each write is one log line.
std::FILE* log_stream()
{
    cookie_io_functions_t functions{};
    functions.write = [](void*, const char* text, std::size_t bytes) {
        take_line({text, bytes});
        return static_cast<ssize_t>(bytes);
    };
    std::FILE* stream = fopencookie(nullptr, "w", functions);
    if (stream)
        std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
    return stream;
}

/// Whether EAL can get hugepages: 64 are free, and RLIMIT_FSIZE allows a file as long as one, since each is a file.
bool hugepages_free()
{
    rlimit file{};
    if (getrlimit(RLIMIT_FSIZE, &file) != 0)
        file.rlim_cur = RLIM_INFINITY;
    // Not a directory_iterator, which terminates the program when out of memory (libstdc++ 12).
    std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/sys/kernel/mm/hugepages"), closedir);
    while (const dirent* entry = all ? readdir(all.get()) : nullptr) {
        unsigned long free = 0, kilobytes = 0;
        if (std::sscanf(entry->d_name, "hugepages-%lukB", &kilobytes) == 1 && file.rlim_cur / 1024 < kilobytes)
            continue;
        if (std::ifstream(fmt::format("/sys/kernel/mm/hugepages/{}/free_hugepages", entry->d_name)) >> free &&
            free >= 64)
            return true;
    }
    return false;
}

/// "0@(0,1,5)": one logical core that may run on every core that this process may use.
std::string any_core(const cpu_set_t& allowed)
{
    std::string cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed))
            cores += fmt::format("{}{}", cores.empty() ? "" : ",", core);
    return fmt::format("0@({})", cores);
}

/// Whether the caller says which cores EAL has threads on.
bool names_cores(const std::vector<std::string>& extra)
{
    return std::any_of(extra.begin(), extra.end(), [](std::string_view word) {
        return word.starts_with("-l") || word.starts_with("-c") || word == "--lcores" || word.starts_with("--lcores=");
    });
}

/// Memory for EAL without hugepages. EAL reserves it at its start and cannot grow it; 2 GB take a second.
unsigned megabytes_for(unsigned queues)
{
    constexpr unsigned least = 512, of_a_queue = 48; // two pools of packets
    return std::max(least, of_a_queue * queues);
}

std::vector<std::string> eal_arguments(bool pci, const std::vector<std::string>& extra, unsigned queues,
                                       const cpu_set_t& allowed)
{
    std::vector<std::string> arguments{"weftio", "--file-prefix", core::file_prefix()};
    if (!names_cores(extra)) // EAL refuses two such options
        arguments.insert(arguments.end(), {"--lcores", any_core(allowed)});
    if (!pci) // with PCI, EAL checks for an IOMMU
        arguments.insert(arguments.end(), {"--iova-mode=va", "--no-pci"});
    // Neither option leaves a file behind. EAL refuses --in-memory together with --no-huge.
    std::vector<std::string> memory{"--in-memory"};
    if (!hugepages_free())
        memory = {"--no-huge", "--no-shconf", "-m", std::to_string(megabytes_for(queues))};
    arguments.insert(arguments.end(), memory.begin(), memory.end());
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return arguments;
}

/// Keeps this library's code loaded after dlclose() of a plug-in that contains it: DPDK calls it for logs and
/// telemetry, and DPDK's own threads never end.
void stay_loaded()
{
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&stay_loaded), &self) != 0 && self.dli_fname)
        dlopen(self.dli_fname,
               RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE); // fails for a program, which stays loaded anyway
}

/// Refuses arguments with which EAL would end the process.
void refuse_help(const std::vector<std::string>& extra)
{
    for (const std::string& word : extra)
        if (word.starts_with("-h") || (word.size() > 3 && std::string_view("--help").starts_with(word)))
            throw error(
                errc::invalid_argument,
                fmt::format("weftio: eal_arguments: {} makes EAL print its usage and end the process; leave it out",
                            word));
}

/// Sends what one thread prints to the log, and what others print to `real`. Never destroyed, because a thread may be
/// inside.
struct printed_to_log {
    pthread_t thread;
    std::FILE* real;

    ssize_t write(std::string_view text) const noexcept
    {
        if (pthread_equal(pthread_self(), thread) == 0)
            std::fwrite(text.data(), 1, text.size(), real);
        else
            core::log_or_lose(log_level::debug,
                              [&] { return fmt::format("dpdk: {}", text.substr(0, text.find('\n'))); });
        return static_cast<ssize_t>(text.size());
    }
};

struct printed_streams {
    printed_to_log out, errors;
};

/// A stream that replaces `real` and sends what the calling thread prints to the log; `real` itself if there can be
/// none.
std::FILE* stream_to_log(printed_to_log& printed, std::FILE* real)
{
    printed = {pthread_self(), real};
    cookie_io_functions_t functions{};
    functions.write = [](void* to, const char* text, std::size_t bytes) {
        return static_cast<printed_to_log*>(to)->write({text, bytes});
    };
    std::FILE* stream = fopencookie(&printed, "w", functions);
    if (!stream)
        return real;
    std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
    return stream;
}

/// rte_eal_init() with its prints redirected to the log: it prints its usage for arguments that it refuses, and some
/// errors besides its log.
int init_without_printing(int count, char** words)
{
    auto& printed = core::undying<printed_streams>();
    std::FILE* const out = std::exchange(stdout, stream_to_log(printed.out, stdout));
    std::FILE* const errors = std::exchange(stderr, stream_to_log(printed.errors, stderr));
    const int errors_printed = std::exchange(opterr, 0);
    const int result = rte_eal_init(count, words);
    opterr = errors_printed;
    std::fflush(stdout);
    std::fflush(stderr);
    stdout = out;
    stderr = errors;
    return result;
}

/// Throws if file descriptors are short: EAL would end the process, or could not be started again.
void require_descriptors()
{
    constexpr std::size_t wanted = 12; // EAL takes about 5
    std::array<int, wanted> tried{};
    std::size_t got = 0;
    int why = 0;
    for (; got != wanted && why == 0; got += why == 0)
        why = (tried[got] = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0 ? errno : 0;
    for (std::size_t each = 0; each != got; ++each)
        close(tried[each]);
    if (why == EMFILE || why == ENFILE)
        throw error(errc::device_error,
                    fmt::format("weftio: DPDK's EAL needs up to {} file descriptors, but only {} can be opened ({}); "
                                "{}",
                                wanted, got, std::strerror(why),
                                why == EMFILE ? "raise the limit with \"ulimit -n 1024\", or close some"
                                              : "raise the system's limit with \"sysctl fs.file-max\", or end some "
                                                "programs"));
}

/// Whether EAL runs already, started by the application or by another copy of this library. Only a started EAL has
/// lists of memory segments.
bool eal_runs()
{
    bool any = false;
    rte_memseg_list_walk(
        [](const rte_memseg_list*, void* any) {
            *static_cast<bool*>(any) = true;
            return 1;
        },
        &any);
    return any;
}

/// Owns EAL, from its start to its cleanup.
class environment {
 public:
    environment() = default;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    /// Our ports are closed. Those that are left belong to others, such as another copy of this library, whose engines
    /// may run until the process ends.
    ~environment()
    {
        if (runs_ && maker_.may_end() && rte_eth_dev_count_total() == 0)
            rte_eal_cleanup();
    }

    void start(bool pci, const std::vector<std::string>& extra, unsigned queues)
    {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        sched_getaffinity(0, sizeof allowed, &allowed);
        if (rte_log_get_stream() == stderr) // another stream is the application's
            if (std::FILE* stream = log_stream())
                rte_openlog_stream(stream);
        core::load_drivers_beside_eal();
        arguments_ = eal_arguments(pci, extra, queues, allowed);
        std::vector<char*> argv;
        for (auto& argument : arguments_)
            argv.push_back(argument.data());
        const close_on_exec descriptors;
        const int result = init_without_printing(static_cast<int>(argv.size()), argv.data());
        sched_setaffinity(0, sizeof allowed, &allowed);
        runs_ = result >= 0;
        if (!runs_)
            throw error(
                errc::device_error,
                fmt::format("weftio: DPDK's EAL did not start ({}; it said: {}); see `dpdk` in docs/troubleshooting.md",
                            rte_strerror(rte_errno), driver_log()));
    }

 private:
    std::vector<std::string> arguments_; // EAL keeps pointers into these strings
    bool runs_ = false;
    const core::maker maker_{};
};

struct environment_state {
    std::mutex mutex;
    std::shared_ptr<environment> kept; ///< released at exit; empty: EAL has not started
    std::string failure;               ///< why the start failed; EAL cannot be started twice
    std::atomic<bool> adopted{false};
    std::atomic<pid_t> process{0}; ///< process in which EAL has started
};

/// Gives up the process's share of EAL; the last port, if one is left, cleans EAL up.
void release_environment() noexcept
{
    environment_state& state = core::undying<environment_state>();
    std::unique_lock lock(state.mutex);
    auto kept = std::move(state.kept);
    lock.unlock();
}

/// @pre the state's mutex is held
void start(environment_state& state, bool pci, const std::vector<std::string>& extra, unsigned queues)
{
    refuse_help(extra);
    auto made = std::make_shared<environment>();
    state.adopted = eal_runs();
    if (!state.adopted) {
        require_descriptors();
        try {
            made->start(pci, extra, queues);
        } catch (const error&) {
            if (rte_lcore_count() != 0) // 0: EAL has not begun, so a later start may succeed
                state.failure = driver_log();
            throw;
        }
    }
    state.kept = std::move(made);
    state.process = getpid();
    core::release_at_exit(release_environment);
    core::redirect_bpf_logs();
    stay_loaded();
}

} // namespace

std::shared_ptr<const void> start_environment(bool pci, const std::vector<std::string>& extra_arguments,
                                              unsigned queues)
{
    environment_state& state = core::undying<environment_state>();
    if (const pid_t process = state.process; process != 0 && process != getpid())
        throw error(errc::not_supported,
                    fmt::format("weftio: DPDK's EAL runs in process {}, the parent of this one; open ports in only one "
                                "of the two, or start another program with exec()",
                                process));
    std::scoped_lock lock(state.mutex);
    if (core::process_exits())
        throw error(errc::closed, "weftio: no port can be opened while the process exits");
    if (!state.failure.empty())
        throw error(errc::device_error,
                    fmt::format("weftio: DPDK's EAL failed to start in this process and cannot start again (it said: "
                                "{}); restart the program, with other eal_arguments if they caused the failure",
                                state.failure));
    if (!state.kept)
        start(state, pci, extra_arguments, queues);
    return state.kept;
}

std::string driver_log()
{
    if (core::undying<environment_state>().adopted)
        return "see the application's own log of DPDK";
    last_lines& last = core::undying<last_lines>();
    std::scoped_lock lock(last.mutex);
    std::string joined;
    for (const auto& line : last.lines)
        joined += (joined.empty() ? "" : "; ") + line;
    return joined.empty() ? "nothing" : joined;
}

void forget_driver_log()
{
    last_lines& last = core::undying<last_lines>();
    std::scoped_lock lock(last.mutex);
    last.lines.clear();
}

} // namespace weftio::dpdk
