// What the user sees of the counters: the live table, the summary, JSON.
#pragma once

#include <optional>
#include <string>

#include "server.hpp"

namespace weftio::packets {

/// Percentile of the answer times, in nanoseconds: the upper bound of its bucket. Nothing without answers.
std::optional<double> answer_time(const packets_counters& counters, double percent);

/// The line that says where the server is and what it answers, and below it what to type for a tap port without peer.
std::string start_text(const packet_server& server, const command& wanted);

/// A table of what happened between two moments, `seconds` apart: lines that are 0 in both are left out.
std::string to_table(const totals& now, const totals& before, double seconds);

/// Everything since the start, and whether every frame is accounted for.
std::string to_summary(const totals& all, double seconds);
std::string to_json(const totals& all, const packet_server& server, double seconds);

/// Whether each frame that the port received is accounted for: taken by a kernel with one verdict, dropped for a
/// reason, or still in a queue; and each frame that a kernel enqueued was sent or failed.
bool is_conserved(const totals& all) noexcept;

/// "weftio-packets: ping from 10.9.0.2: 64 bytes, sequence 3, 1000.2 ms behind the one before". `before_ns`: 0 for the
/// first.
std::string ping_text(const ping_info& ping, std::uint64_t before_ns);

} // namespace weftio::packets
