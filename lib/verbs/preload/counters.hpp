// Counters of devices are files of the tree, which the engine brings up to date before the program reads one.
#pragma once

#include <atomic>

namespace weftio::verbs::preload {

/// Whether the program has looked for counters.
extern constinit std::atomic<bool> reads_counters;

/// The program looks for counters. @pre the engine has been started. Keeps errno.
void refresh_counters() noexcept;

/// The same if an open file is in the tree's file system.
void refresh_if_in_tree(int descriptor) noexcept;

/// The program is about to read a file again. Keeps errno.
inline void refresh_if_counter(int descriptor) noexcept
{
    if (reads_counters.load(std::memory_order_relaxed))
        refresh_if_in_tree(descriptor);
}

} // namespace weftio::verbs::preload
