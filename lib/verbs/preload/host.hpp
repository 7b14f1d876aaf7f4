// The engine as this process uses it: started when the program first looks for a device.
#pragma once

#include <cerrno>

#include <pthread.h>

#include "../seam.hpp"

namespace weftio::verbs::preload {

/// Whether calls of the calling thread go to the C library unchanged, because they are not the program's: the engine is
/// being started or called, or the thread belongs to the engine.
bool passes() noexcept;

/// From now on the calling thread belongs to the engine.
void become_engines() noexcept;

/// __register_atfork() of the program's C library: that of another namespace of the dynamic linker, if this copy of the
/// library only serves an engine.
using register_atfork_function = int (*)(void (*)(), void (*)(), void (*)(), void*);
register_atfork_function programs_register_atfork() noexcept;

/// While one exists, calls of this thread go to the C library unchanged, and it is not canceled. Keeps errno.
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

/// Whether this process shares the memory of its parent, as after vfork(): nothing may be changed then.
bool borrows_memory() noexcept;

/// Prefix for our paths: the engine's tree, or a path that does not exist when no engine can run. Starts the engine.
/// nullptr: calls go to the C library unchanged.
const char* tree() noexcept;

/// As tree(), but starts nothing: nullptr when no engine has been started.
const char* tree_so_far() noexcept;

/// The tree of the parent process that started the engine before fork(); empty: there is none.
const char* tree_of_parent() noexcept;

/// Number of nodes; 0 before tree() has been called.
unsigned devices() noexcept;

/// The engine of this process; nullptr before tree() has been called, and when it cannot run.
const weftio_verbs_engine* engine_here() noexcept;

/// Whether this engine wants to hear of calls that change mappings.
bool hears_mapping_calls() noexcept;

/// Whether nodes may have been opened by a parent process.
bool has_inherited() noexcept;

/// Says once that such a node cannot be used.
void say_inherited() noexcept;

/// Whether the path is DPDK's folder of drivers, and the thread has hidden it by hide_drivers().
bool is_hidden(const char* path) noexcept;

} // namespace weftio::verbs::preload
