// The functions of the seam (seam.hpp).
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <exception>
#include <utility>

#include <locale.h>
#include <pthread.h>

#include <fmt/format.h>

#include "core/guarded.hpp"
#include "core/log.hpp"
#include "refusals.hpp"
#include "session.hpp"
#include "stale.hpp"

namespace {

using namespace weftio;
using namespace weftio::verbs;

/// Never destroyed: threads of the program may still use it during exit.
session* running = nullptr;

bool in_own_namespace = false;

/// The engine's C library may be another one than the program's, which has set up this thread: sets up what the thread
/// lacks there, the tables of <cctype>.
void set_up_thread()
{
    static thread_local bool done = !in_own_namespace;
    if (!std::exchange(done, true))
        uselocale(LC_GLOBAL_LOCALE);
}

int open_node(unsigned device, int flags)
{
    set_up_thread();
    return running->is_here() ? running->open(device, flags) : -EIO;
}

ssize_t write_command(int number, const void* command, std::size_t bytes)
{
    set_up_thread();
    if (!running->is_here())
        return -EIO;
    const std::shared_ptr<open_file> found = running->find(number);
    return found ? found->execute(number, command, bytes) : -ENOTTY;
}

int map_page(int number, void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address)
{
    set_up_thread();
    if (!running->is_here())
        return -EIO;
    const std::shared_ptr<open_file> found = running->find(number);
    return found ? found->map(wish, bytes, protection, flags, offset, address) : -ENOTTY;
}

int control(int number, unsigned long request, void* argument)
{
    set_up_thread();
    if (!running->is_here())
        return -EIO;
    const std::shared_ptr<open_file> found = running->find(number);
    return found ? found->control(request, argument) : -ENOTTY;
}

void refused(const char* which, bool probe)
{
    set_up_thread();
    tell_other_interface(which, probe);
}

void closed()
{
    set_up_thread();
    if (running->is_here())
        running->sweep();
}

void count()
{
    set_up_thread();
    if (running->is_here())
        running->count();
}

void called(long number, const unsigned long* arguments, std::uint64_t since_ns)
{
    set_up_thread();
    if (running->is_here())
        stale().hear(number, arguments, since_ns);
}

bool stop_watching(std::uintptr_t begin, std::size_t bytes)
{
    set_up_thread();
    return running->is_here() && stale().give_up_events({begin, begin + bytes});
}

const weftio_verbs_engine* start(const weftio_verbs_host& host)
try {
    if (!std::getenv("WEFTIO_LOG")) // otherwise the program would see no devices, without any explanation
        log_to_stderr(log_level::warning);
    core::guard_memory();
    in_own_namespace = host.in_own_namespace;
    running = new session(settings::from_environment(), host);
    pthread_atfork(nullptr, nullptr, [] { running->leave_in_child(); });
    std::atexit([] {
        if (running->is_here())
            running->end();
    });
    static const weftio_verbs_engine made{.version = seam_version,
                                          .devices = running->devices(),
                                          .tree = running->tree_path(),
                                          .open = open_node,
                                          .write = write_command,
                                          .map = map_page,
                                          .control = control,
                                          .closed = closed,
                                          .refused = refused,
                                          .count = count,
                                          .hears_calls = &stale().without_events(),
                                          .called = called,
                                          .stop_watching = stop_watching};
    return &made;
} catch (const error& why) {
    core::log_or_lose(log_level::error, [&] { return std::string(why.what()); });
    return nullptr;
} catch (const failure& why) {
    core::log_or_lose(log_level::error, [&] { return fmt::format("weftio-run: no devices: errno {}", why.number); });
    return nullptr;
} catch (const std::exception& why) {
    core::log_or_lose(log_level::error, [&] { return fmt::format("weftio-run: no devices: {}", why.what()); });
    return nullptr;
}

} // namespace

const weftio_verbs_engine* weftio_verbs_start(const weftio_verbs_host* host)
{
    static const weftio_verbs_engine* const made = start(*host);
    return made;
}
