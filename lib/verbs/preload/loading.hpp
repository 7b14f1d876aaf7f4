// Detects that the program is inside dlopen().
#pragma once

namespace weftio::verbs::preload {

/// Whether the calling thread holds the dynamic linker's lock, because it runs the constructor of a library that is
/// being opened. Starting the engine would then deadlock: it loads libraries in another thread, and this thread would
/// wait for it. Waits while another thread loads a library. Takes about 0.1 ms when the answer is false, and 2 s when
/// it is true for the first time.
bool is_loading() noexcept;

/// Call it in a child of fork(), which lacks the threads that is_loading() has started.
void forget_probes() noexcept;

} // namespace weftio::verbs::preload
