#include "host.hpp"

#include <climits>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <dlfcn.h>
#include <unistd.h>

#include "loading.hpp"
#include "paths.hpp"
#include "real.hpp"
#include "refused.hpp"

namespace weftio::verbs::preload {

namespace {

/// No process can create a file of this name.
constexpr const char* no_tree = "/proc/self/no-weftio";

constinit thread_local int scopes = 0;
constinit thread_local bool hides = false, is_engines = false;

/// This process, as set by the constructor or after fork().
constinit std::atomic<pid_t> home{0};
constinit pthread_once_t once = PTHREAD_ONCE_INIT;
/// The engine and its process. Set before `prefix`.
constinit const weftio_verbs_engine* engine = nullptr;
constinit pid_t owner = 0;
/// The result of tree(), once known.
constinit std::atomic<const char*> prefix{nullptr};
constinit std::atomic<bool> said_loading{false};
char library[PATH_MAX], tree_text[PATH_MAX];

void say(const char* what, const char* why) noexcept
{
    const char* const parts[] = {"weftio-run: ", what, why, "; the program sees no devices\n"};
    iovec text[4];
    for (unsigned i = 0; i < 4; ++i)
        text[i] = {const_cast<char*>(parts[i]), std::strlen(parts[i])};
    [[maybe_unused]] const ssize_t written = real().writev(STDERR_FILENO, text, 4);
}

void hide_drivers(bool on) noexcept
{
    hides = on;
}

constexpr weftio_verbs_host host{.version = seam_version, .hide_drivers = &hide_drivers};

/// nullptr: it cannot run; the reason was printed to stderr.
const weftio_verbs_engine* start_engine() noexcept
{
    void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* const start = opened == nullptr ? nullptr : dlsym(opened, "weftio_verbs_start");
    if (start == nullptr) {
        const char* const why = dlerror();
        say("the engine cannot be loaded: ", why == nullptr ? library : why);
        return nullptr;
    }
    const auto* const started = reinterpret_cast<weftio_verbs_start_function*>(start)(&host);
    if (started == nullptr || started->version == seam_version)
        return started;
    say("the engine's library has another version than the preloaded one: ", library);
    return nullptr;
}

void start() noexcept
{
    const engine_scope scope;
    const auto* const started = start_engine();
    if (started != nullptr && real().realpath(started->tree, tree_text) == nullptr) {
        say("the engine's description of devices was removed: ", started->tree);
    } else if (started != nullptr) {
        engine = started;
        owner = getpid();
    }
    prefix.store(engine == nullptr ? no_tree : tree_text, std::memory_order_release);
    report_refused_earlier();
}

void enter_child() noexcept
{
    home.store(getpid(), std::memory_order_relaxed);
}

/// Finds the engine's library: the one that the variable names, or the one next to this library.
void find_library() noexcept
{
    if (const char* named = secure_getenv(engine_variable); named != nullptr && *named != 0) {
        join(library, sizeof library, named, "", "");
        return;
    }
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&host), &self) == 0)
        return;
    char folder[PATH_MAX] = "";
    join(folder, sizeof folder, self.dli_fname, "", "");
    if (char* const slash = std::strrchr(folder, '/'))
        slash[1] = 0;
    join(library, sizeof library, folder, "libweftio-verbs.so", "");
}

/// Reads the environment early, because programs may overwrite it. Constructors of libraries that the program is linked
/// to run before this one, and may already need the result.
__attribute__((constructor)) void prepare() noexcept
{
    if (home.load(std::memory_order_relaxed) != 0)
        return;
    enter_child();
    find_library();
    pthread_atfork(nullptr, nullptr, &enter_child);
}

} // namespace

bool passes() noexcept
{
    return scopes > 0 || is_engines;
}

void become_engines() noexcept
{
    is_engines = true;
}

engine_scope::engine_scope() noexcept
{
    ++scopes;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
}

engine_scope::~engine_scope()
{
    pthread_setcancelstate(cancel_state_, nullptr);
    --scopes;
    errno = error_;
}

bool borrows_memory() noexcept
{
    prepare();
    return getpid() != home.load(std::memory_order_relaxed);
}

const char* tree() noexcept
{
    if (passes())
        return nullptr;
    if (const char* known = tree_so_far(); known != nullptr || borrows_memory())
        return known;
    if (is_loading()) {
        if (!said_loading.exchange(true))
            say("a library looks for devices while it is being loaded", ": the engine cannot start during that");
        return nullptr;
    }
    pthread_once(&once, &start);
    return tree_so_far();
}

const char* tree_so_far() noexcept
{
    return prefix.load(std::memory_order_acquire);
}

unsigned devices() noexcept
{
    return tree_so_far() == nullptr || engine == nullptr ? 0 : engine->devices;
}

const weftio_verbs_engine* engine_here() noexcept
{
    return tree_so_far() != nullptr && owner == getpid() ? engine : nullptr;
}

bool is_hidden(const char* path) noexcept
{
    return hides && path != nullptr && std::strstr(path, "/dpdk/pmds-") != nullptr;
}

} // namespace weftio::verbs::preload
