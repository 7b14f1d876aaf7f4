// Reports to the engine, for its log, what this library refuses by itself.
#pragma once

namespace weftio::verbs::preload {

/// A file of /dev/infiniband that does not exist was opened. Keeps errno.
void report_refused_file(const char* name) noexcept;

/// A socket of NETLINK_RDMA was requested. For a program with libibverbs, which tries this first and then reads /sys,
/// starts no engine: the report waits for that. For others, starts the engine. Keeps errno.
void report_refused_netlink() noexcept;

/// Makes the report that waits for the engine. @pre the engine runs, and the thread is in an engine_scope
void report_refused_earlier() noexcept;

} // namespace weftio::verbs::preload
