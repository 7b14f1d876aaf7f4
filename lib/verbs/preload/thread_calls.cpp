// Threads that the engine starts belong to the engine: those started while it is started or called, or by one of its
// threads. Its functions for children of fork() are called by the program's fork().
#include <cerrno>
#include <cstdlib>

#include "host.hpp"
#include "real.hpp"

using namespace weftio::verbs::preload;

namespace {

struct work {
    void* (*function)(void*);
    void* argument;
};

void* run_as_engines(void* given) noexcept(false)
{
    const work wanted = *static_cast<work*>(given);
    std::free(given);
    become_engines();
    return wanted.function(wanted.argument);
}

} // namespace

WEFTIO_INTERCEPT(int, pthread_create, pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                 void* argument)
{
    if (!passes())
        return real().pthread_create(thread, attributes, function, argument);
    auto* const wanted = static_cast<work*>(std::malloc(sizeof(work)));
    if (wanted == nullptr)
        return EAGAIN;
    *wanted = {function, argument};
    const int error = real().pthread_create(thread, attributes, run_as_engines, wanted);
    if (error != 0)
        std::free(wanted);
    return error;
}

/// pthread_atfork() calls this.
WEFTIO_INTERCEPT(int, __register_atfork, void (*before)(), void (*in_parent)(), void (*in_child)(), void* library)
{
    return programs_register_atfork()(before, in_parent, in_child, library);
}
