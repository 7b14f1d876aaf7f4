#include "core/environment.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/bpf_words.hpp"
#include "core/log.hpp"
#include "core/program.hpp"
#include "weftio/error.hpp"

namespace weftio::detail {

namespace {

constexpr std::size_t words_kept = 4;
constexpr unsigned megabytes_without_hugepages = 512;

std::mutex words_mutex;
std::deque<std::string> words;

void take_line(std::string_view line) noexcept
try {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
        line.remove_suffix(1);
    if (line.empty())
        return;
    auto level = rte_log_cur_msg_loglevel();
    bool grave = level > 0 && level <= static_cast<int>(RTE_LOG_WARNING);
    if (grave) {
        std::scoped_lock lock(words_mutex);
        words.emplace_back(line);
        if (words.size() > words_kept)
            words.pop_front();
    }
    log(grave ? log_level::warning : log_level::info, fmt::format("dpdk: {}", line));
} catch (...) { // neither want of memory nor the sink's trouble may run through DPDK's functions
}

/// DPDK logs to a FILE; this one leads to the log sink. Unbuffered, so each write is one log line.
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

bool hugepages_free()
{
    // Not a directory_iterator, which ends the program when it finds no memory (libstdc++ 12).
    std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/sys/kernel/mm/hugepages"), closedir);
    while (const dirent* entry = all ? readdir(all.get()) : nullptr) {
        unsigned long free = 0;
        if (std::ifstream(fmt::format("/sys/kernel/mm/hugepages/{}/free_hugepages", entry->d_name)) >> free && free >= 64)
            return true;
    }
    return false;
}

/// "0@(0,1,5)": one logical core that may run wherever this process may.
std::string any_core(const cpu_set_t& allowed)
{
    std::string cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed))
            cores += fmt::format("{}{}", cores.empty() ? "" : ",", core);
    return fmt::format("0@({})", cores);
}

std::vector<std::string> eal_arguments(bool pci, const std::vector<std::string>& extra, const cpu_set_t& allowed)
{
    std::vector<std::string> arguments{"weftio", "--lcores", any_core(allowed), "--file-prefix", file_prefix()};
    if (!pci) // else EAL looks whether there is an IOMMU
        arguments.insert(arguments.end(), {"--iova-mode=va", "--no-pci"});
    // Both ways leave no file behind; EAL refuses --in-memory together with --no-huge.
    std::vector<std::string> memory{"--in-memory"};
    if (!hugepages_free())
        memory = {"--no-huge", "--no-shconf", "-m", std::to_string(megabytes_without_hugepages)};
    arguments.insert(arguments.end(), memory.begin(), memory.end());
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return arguments;
}

class environment {
 public:
    environment(bool pci, const std::vector<std::string>& extra)
    {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        sched_getaffinity(0, sizeof allowed, &allowed);
        if (std::FILE* stream = log_stream())
            rte_openlog_stream(stream);
        load_drivers_beside_eal();
        arguments_ = eal_arguments(pci, extra, allowed);
        std::vector<char*> argv;
        for (auto& argument : arguments_)
            argv.push_back(argument.data());
        int result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
        sched_setaffinity(0, sizeof allowed, &allowed);
        take_bpf_words();
        ours_ = result >= 0;
        if (result < 0 && rte_errno != EALREADY)
            throw error(errc::device_error,
                        fmt::format("weftio: DPDK's EAL did not start ({}; it said: {}); see `dpdk` in docs/troubleshooting.md",
                                    rte_strerror(rte_errno), driver_words()));
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment()
    {
        if (ours_ && getpid() == process_) // a child that exits would close the devices of its parent
            rte_eal_cleanup();
    }

 private:
    std::vector<std::string> arguments_; // EAL keeps pointers into them
    bool ours_ = false;
    const pid_t process_ = getpid();
};

} // namespace

void start_environment(bool pci, const std::vector<std::string>& extra_arguments)
{
    static const environment instance(pci, extra_arguments);
}

std::string driver_words()
{
    std::scoped_lock lock(words_mutex);
    std::string joined;
    for (const auto& line : words)
        joined += (joined.empty() ? "" : "; ") + line;
    return joined.empty() ? "nothing" : joined;
}

void forget_driver_words()
{
    std::scoped_lock lock(words_mutex);
    words.clear();
}

} // namespace weftio::detail
