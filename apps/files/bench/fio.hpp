// The same loads by fio, which is another program.
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench.hpp"
#include "bench/bench_file.hpp"

namespace weftio::files {

/// Why fio does not take part; empty: it does. It reads and writes memory of the host, and files with other bytes than
/// those that are verified.
std::string why_no_fio(const bench_options& options);

/// A round of fio's threads, one operation in flight each: adds what they do to `to`. Blocks for `seconds` and fio's
/// start.
/// @param engine  of fio: "io_uring", "psync"
void add_fio_round(const bench_options& options, const bench_file& on, const std::string& engine, double seconds,
                   bench_run& to);

/// Adds what fio says, as `--output-format=json+` has it. @return why it says nothing; empty: it does
std::string add_fio_report(const std::string& said, bench_run& to);

} // namespace weftio::files
