// What a plug-in with a copy of Weftio of its own offers to its program.
#pragma once

#define PLUGIN_API extern "C" __attribute__((visibility("default")))

/// Opens a port of the spec, and starts kernels that receive and send there. Returns whether they did. Like the
/// functions below, prints an error instead of throwing it.
PLUGIN_API bool plugin_open(const char* spec) noexcept;
/// Whether the kernels still send.
PLUGIN_API bool plugin_sends() noexcept;
PLUGIN_API void plugin_close() noexcept;
/// Copies from memory that was unmapped after it was registered. Returns whether the queue reports that.
PLUGIN_API bool plugin_survives_unmapped_memory() noexcept;
