// Formats numbers for people, in a unit that fits their size.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::replay {

inline constexpr std::uint64_t second_ns = 1'000'000'000;

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);
/// 1 -> "1 frame", 1234 -> "1,234 frames".
std::string frames_text(std::uint64_t number);
/// 999 -> "999 ns", 12300 -> "12.3 us", 1500000000 -> "1.500 s", 7500 s -> "2 h 5 min".
std::string duration_text(std::uint64_t ns);
/// The same with a sign: "+12.3 us", "-5 ns", "0 ns".
std::string signed_duration_text(std::int64_t ns);
/// 99.45 -> "99.4 pps", 1234567 -> "1.23 Mpps".
std::string frame_rate_text(double per_second);
/// 1234567 -> "1.23 Mbit/s".
std::string bit_rate_text(double per_second);
/// 512 -> "512 bytes", 50504 -> "50.5 kB".
std::string bytes_text(std::uint64_t bytes);
/// UTC nanoseconds as "2026-11-21T09:30:00.500000000Z".
std::string utc_text(std::int64_t utc_ns);

} // namespace weftio::replay
