#include "refused.hpp"

#include <atomic>
#include <dlfcn.h>

#include "host.hpp"

namespace weftio::verbs::preload {

namespace {

constexpr const char* netlink = "netlink";

/// A report of netlink waits for the engine.
constinit std::atomic<bool> waits{false};

/// Whether the process has loaded a library. @param name  its DT_SONAME
bool is_loaded(const char* name) noexcept
{
    void* const found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (found != nullptr)
        dlclose(found);
    return found != nullptr;
}

void report(const char* which, bool probe) noexcept
{
    const auto* const engine = engine_here();
    if (engine == nullptr)
        return;
    const engine_scope scope;
    engine->refused(which, probe);
}

} // namespace

void report_refused_file(const char* name) noexcept
{
    const int error = errno;
    if (!borrows_memory())
        report(name, false);
    errno = error;
}

/// libibverbs asks before it opens a device: its report waits until there is an engine. For another caller's report the
/// engine is started.
void report_refused_netlink() noexcept
{
    const int error = errno;
    const bool lives_alone = !borrows_memory(), probes = lives_alone && is_loaded("libibverbs.so.1");
    if (probes && engine_here() == nullptr)
        waits.store(true, std::memory_order_relaxed);
    else if (probes || (lives_alone && tree() != nullptr))
        report(netlink, probes);
    errno = error;
}

void report_refused_earlier() noexcept
{
    if (waits.exchange(false, std::memory_order_relaxed))
        report(netlink, true);
}

} // namespace weftio::verbs::preload
