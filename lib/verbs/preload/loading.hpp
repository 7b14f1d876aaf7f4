// Whether the program is within dlopen().
#pragma once

namespace weftio::verbs::preload {

/// Whether the calling thread holds the dynamic linker's lock: it runs the constructor of a library that is being
/// opened. An engine that loads libraries in a thread of its own would wait for this thread, which waits for it. Waits
/// while another thread loads a library. Takes some 0.1 ms when the answer is false, and 2 s when it is true for the first time.
bool is_loading() noexcept;

} // namespace weftio::verbs::preload
