#include "devices/opencl/canary.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/opencl/canary_kernels.h"
#include "devices/opencl/source.hpp"
#include "weftio/error.hpp"
#include "weftio/kernel.hpp"

extern "C" char** environ;

namespace weftio::devices::opencl {

namespace {

constexpr const char* mark_variable = "WEFTIO_SET_POCL_METHOD"; // inherited by child programs together with the method
constexpr int patience_ms = 310'000;                            // longer than the canary's own limits

class descriptor {
 public:
    explicit descriptor(int number) : number_(number) {}
    ~descriptor()
    {
        if (number_ >= 0)
            close(number_);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    int number() const { return number_; }

 private:
    int number_;
};

[[noreturn]] void refuse_start(const char* what, int reason)
{
    throw error(errc::not_supported,
                fmt::format("weftio: opencl: {} failed ({}), so the driver's barriers cannot be tested; allow files in "
                            "memory (sysctl vm.memfd_noexec=0) and /proc, or use cpu",
                            what, std::strerror(reason)));
}

/// Throws errc::not_supported, naming the call, if `result` is negative.
int worked(int result, const char* what)
{
    if (result < 0)
        refuse_start(what, errno);
    return result;
}

/// Writes the program to an executable file in memory. The descriptor is above 2, because those are the program's own.
int program_file()
{
    const descriptor file(worked(memfd_create("weftio-opencl-canary", MFD_CLOEXEC), "memfd_create"));
    for (std::string_view left = canary_program(); !left.empty();) {
        const ssize_t written = write(file.number(), left.data(), left.size());
        left.remove_prefix(static_cast<std::size_t>(worked(static_cast<int>(written), "write")));
    }
    return worked(fcntl(file.number(), F_DUPFD_CLOEXEC, 3), "fcntl");
}

/// Path of the OpenCL library that this process has loaded.
std::string opencl_library()
{
    Dl_info found{};
    const bool known = dladdr(reinterpret_cast<void*>(&clGetPlatformIDs), &found) != 0 && found.dli_fname;
    const std::string path = known ? found.dli_fname : "";
    return path.find("OpenCL") == std::string::npos ? "libOpenCL.so.1"
                                                    : path; // otherwise linked statically, or called through a stub
}

std::vector<std::string> words_for(unsigned index, build_method method)
{
    std::vector<std::string> words{"weftio-opencl-canary",
                                   opencl_library(),
                                   fmt::format("{}", index),
                                   "-cl-std=CL3.0",
                                   canary_source(method),
                                   fmt::format("{}", CANARY_LANES),
                                   fmt::format("{}", sizeof(canary_world) / 4),
                                   fmt::format("{}", canary_state)};
    for (const canary_kernel& kernel : canary_kernels()) {
        words.emplace_back(kernel.name);
        words.push_back(fmt::format("{}", kernel.digest));
    }
    return words;
}

bool sets(std::string_view variable, std::string_view name)
{
    return variable.starts_with(name) && variable.substr(name.size()).starts_with('=');
}

std::vector<char*> pointers_to(std::vector<std::string>& words)
{
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// Starts the program with `output` as its stdout, and /dev/null as stdin and stderr.
pid_t start(unsigned index, build_method method, int output)
{
    const descriptor program(program_file());
    std::vector<std::string> words = words_for(index, method), variables = canary_environment(method);
    std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
    const std::string path = fmt::format("/proc/self/fd/{}", program.number());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    const int failure = posix_spawn(&child, path.c_str(), &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0)
        refuse_start("posix_spawn", failure);
    return child;
}

/// Reads a pipe until all its writers have closed it.
std::string read_all(int from)
{
    std::string text;
    std::array<char, 64> piece{};
    for (pollfd ready{from, POLLIN, 0};;) {
        const int events = poll(&ready, 1, patience_ms);
        if (events < 0 && errno == EINTR)
            continue;
        const ssize_t got = events > 0 ? read(from, piece.data(), piece.size()) : 0;
        if (got <= 0)
            return text;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
}

[[noreturn]] void refuse_verdict(const std::string& why)
{
    throw error(errc::device_error,
                fmt::format("weftio: opencl: cannot test the driver's barriers: {}; correct that (for PoCL's cache, "
                            "POCL_CACHE_DIR names another folder) and try again, or use cpu",
                            why));
}

/// Whether something else than the driver ended the process. False, because unknown, if the application ignores
/// SIGCHLD.
bool was_ended(int status)
{
    constexpr std::array others{SIGXFSZ, SIGXCPU, SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    return WIFSIGNALED(status) && std::find(others.begin(), others.end(), WTERMSIG(status)) != others.end();
}

int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 0;
    return status;
}

} // namespace

std::string_view text_before(build_method method) noexcept
{
    return method == build_method::unoptimized ? "#pragma clang optimize off\n" : "";
}

std::string method_of_user()
{
    const char* value = std::getenv(method_variable);
    const std::string found = value ? value : "";
    return found == "cbs" && std::getenv(mark_variable) ? "" : found;
}

bool set_cbs()
{
    return setenv(mark_variable, "1", 1) == 0 && setenv(method_variable, "cbs", 1) == 0;
}

std::vector<std::string> canary_environment(build_method method)
{
    // Without PoCL's cache, which may hold kernels that another compiler has made.
    std::vector<std::string> variables{"POCL_KERNEL_CACHE=0"};
    for (char** each = environ; each && *each; ++each)
        if (!sets(*each, "POCL_KERNEL_CACHE") && !sets(*each, method_variable) && !sets(*each, mark_variable))
            variables.emplace_back(*each);
    const std::string wanted = method == build_method::cbs ? "cbs" : method_of_user();
    if (!wanted.empty())
        variables.push_back(fmt::format("{}={}", method_variable, wanted));
    return variables;
}

std::string canary_source(build_method method)
{
    return fmt::format("{}\n{}{}", device_headers().front().text, text_before(method),
                       canary_text()); // the first header is platform/opencl.h
}

std::span<const canary_kernel> canary_kernels() noexcept
{
    static constexpr std::array kernels{
        canary_kernel{"canary_continue", 973244326u}, canary_kernel{"canary_branch", 472777122u},
        canary_kernel{"canary_leave", 2553390384u},   canary_kernel{"canary_nested", 1586216131u},
        canary_kernel{"canary_calls", 2330359946u},   canary_kernel{"canary_count", 219325585u}};
    return kernels;
}

bool runs_canary(unsigned index, build_method method)
{
    if (const std::string limit = limit_of_files(); !limit.empty())
        refuse_verdict(limit);
    std::array<int, 2> ends{};
    worked(pipe2(ends.data(), O_CLOEXEC), "pipe2");
    const descriptor from(ends[0]);
    pid_t child = -1;
    {
        const descriptor to(ends[1]);
        child = start(index, method, to.number());
    }
    const std::string said = read_all(from.number());
    const int status = status_of(child);
    if (said == "right")
        return true;
    if (was_ended(status))
        refuse_verdict(fmt::format("signal {} ended the test program", WTERMSIG(status)));
    if (const std::string lack = lack_of_room(); !lack.empty())
        refuse_verdict(lack);
    return false;
}

} // namespace weftio::devices::opencl
