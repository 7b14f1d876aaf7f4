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
constinit std::atomic<bool> said_loading{false}, said_inherited{false};
/// The engine's library has been loaded into this namespace of the dynamic linker, perhaps by a parent process.
constinit std::atomic<bool> is_loaded_here{false};
/// The process that started the engine was a parent of this one.
constinit bool inherits = false;
/// All calls of this copy of the library pass: it serves an engine in a namespace of its own, for this library in the
/// program's namespace.
constinit bool serves_engine = false;
constinit register_atfork_function programs_atfork = nullptr;
char own_path[PATH_MAX], library[PATH_MAX], tree_text[PATH_MAX], inherited_tree[PATH_MAX];

void say(const char* what, const char* why, const char* result = "; the program sees no devices") noexcept
{
    const char* const parts[] = {"weftio-run: ", what, why, result, "\n"};
    iovec text[5];
    for (unsigned i = 0; i < 5; ++i)
        text[i] = {const_cast<char*>(parts[i]), std::strlen(parts[i])};
    [[maybe_unused]] const ssize_t written = real().writev(STDERR_FILENO, text, 5);
}

void hide_drivers(bool on) noexcept
{
    hides = on;
}

constinit weftio_verbs_host host{.version = seam_version, .hide_drivers = &hide_drivers, .in_own_namespace = false};

/// What the copy of the library in another namespace needs of this one.
struct of_program {
    const char* library; ///< the engine's
    char** environment;
    register_atfork_function register_atfork;
};
using start_apart_function = const weftio_verbs_engine*(const of_program*);

/// A second engine in a child of fork(), with libraries of its own: the state of the parent's, such as its threads and
/// DPDK's memory, cannot be used here. nullptr: as start_engine().
const weftio_verbs_engine* start_engine_apart() noexcept
{
    void* const opened = dlmopen(LM_ID_NEWLM, own_path, RTLD_NOW);
    void* const start = opened == nullptr ? nullptr : dlsym(opened, "weftio_verbs_start_apart");
    const of_program given{library, environ, real().__register_atfork};
    if (start != nullptr)
        return reinterpret_cast<start_apart_function*>(start)(&given);
    const char* const why = dlerror();
    say("this child of fork() cannot load an engine of its own: ", why == nullptr ? own_path : why);
    return nullptr;
}

/// nullptr: it cannot run; the reason was printed to stderr.
const weftio_verbs_engine* start_engine() noexcept
{
    if (is_loaded_here.exchange(true))
        return start_engine_apart();
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

/// The engine stays with the parent. The child starts its own when it looks for devices.
void enter_child() noexcept
{
    home.store(getpid(), std::memory_order_relaxed);
    forget_probes();
    if (!is_loaded_here.load(std::memory_order_relaxed))
        return;
    inherits = true;
    if (tree_so_far() == tree_text)
        std::memcpy(inherited_tree, tree_text, sizeof tree_text);
    prefix.store(nullptr, std::memory_order_relaxed);
    engine = nullptr;
    once = PTHREAD_ONCE_INIT;
}

/// Finds the engine's library: the one that the variable names, or the one next to this library.
void find_library() noexcept
{
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&host), &self) != 0)
        join(own_path, sizeof own_path, self.dli_fname, "", "");
    if (const char* named = secure_getenv(engine_variable); named != nullptr && *named != 0) {
        join(library, sizeof library, named, "", "");
        return;
    }
    char folder[PATH_MAX] = "";
    join(folder, sizeof folder, own_path, "", "");
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
    home.store(getpid(), std::memory_order_relaxed);
    find_library();
    pthread_atfork(nullptr, nullptr, &enter_child);
}

} // namespace

bool passes() noexcept
{
    return scopes > 0 || is_engines || serves_engine;
}

register_atfork_function programs_register_atfork() noexcept
{
    return programs_atfork != nullptr ? programs_atfork : real().__register_atfork;
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

const char* tree_of_parent() noexcept
{
    return inherited_tree;
}

const weftio_verbs_engine* engine_here() noexcept
{
    return tree_so_far() != nullptr && owner == getpid() ? engine : nullptr;
}

bool hears_mapping_calls() noexcept
{
    const auto* const here = tree_so_far() == nullptr ? nullptr : engine;
    return here != nullptr && here->hears_calls->load(std::memory_order_relaxed) != 0 && !passes() && owner == getpid();
}

bool has_inherited() noexcept
{
    return inherits || borrows_memory();
}

void say_inherited() noexcept
{
    if (!borrows_memory() && !said_inherited.exchange(true))
        say("a device that a parent process opened before fork() cannot be used in this process", " (EIO)",
            ": open it again here");
}

bool is_hidden(const char* path) noexcept
{
    return hides && path != nullptr && std::strstr(path, "/dpdk/pmds-") != nullptr;
}

} // namespace weftio::verbs::preload

/// Called by another copy of this library in the same process, which has loaded this one into a new namespace of the
/// dynamic linker: starts the engine there. The C library of the namespace has the environment of the program's start,
/// and its own functions for fork().
extern "C" __attribute__((visibility("default"))) const weftio_verbs_engine*
weftio_verbs_start_apart(const weftio::verbs::preload::of_program* given)
{
    using namespace weftio::verbs::preload;
    environ = given->environment;
    programs_atfork = given->register_atfork;
    serves_engine = true;
    host.in_own_namespace = true;
    join(library, sizeof library, given->library, "", "");
    return start_engine();
}
