// The engine, as this process may use it: started when the program first looks for a device.
#pragma once

#include <cerrno>

#include <pthread.h>

#include "../seam.hpp"

namespace weftio::verbs::preload {

/// Whether the calling thread's calls are not the program's: the engine is being started or called, or the thread is
/// the engine's. They go to the C library as they are.
bool passes() noexcept;

/// From now on the calling thread is the engine's.
void become_engines() noexcept;

/// While one exists, calls of this thread pass, and it is not canceled. Keeps errno.
class engine_scope {
 public:
    engine_scope() noexcept;
    engine_scope(const engine_scope&) = delete;
    engine_scope& operator=(const engine_scope&) = delete;
    ~engine_scope();

 private:
    int error_ = errno;
    int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

/// Whether this process shares the memory of the one that made it, which vfork() does: nothing may be changed then.
bool borrows_memory() noexcept;

/// What stands in front of our paths: the engine's tree, or a path that is not there when no engine can run. Starts the
/// engine. nullptr: calls pass.
const char* tree() noexcept;

/// Like tree(), but starts nothing: nullptr when no engine has been started.
const char* tree_so_far() noexcept;

/// How many nodes there are; 0 before tree() has been called.
unsigned devices() noexcept;

/// The engine; nullptr before tree() has been called, when it cannot run, and in a child of the process that runs it.
const weftio_verbs_engine* engine_here() noexcept;

/// Whether the thread asked not to see this path: DPDK's folder of drivers.
bool is_hidden(const char* path) noexcept;

} // namespace weftio::verbs::preload
