// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session.hpp"
#include "weftio/log.hpp"

namespace weftio::replay {

/// What the user asked for.
struct command {
    enum class action { replay, check, say } what = action::replay;
    session_options session;
    std::string text;          ///< say: what to print
    int exit_code = 0;         ///< say: then end with this
    double stats_s = 0;        ///< a line every so many seconds; 0: none
    std::string second_port{}; ///< of a split run; empty: none
    bool quiet = false, strict = false;
    std::optional<log_level> log; ///< of the library, on standard error from this level on; none: as WEFTIO_LOG says
    std::string json, plot;       ///< files to write, `-` is standard output; empty: none
};

/// Never prints and never ends the program: help and mistakes come back as `say`.
command parse_command_line(int argc, const char* const* argv);

/// Nanoseconds of "1.5", "1.5s", "20ms", "100us" or "7ns"; without a unit seconds.
std::optional<std::uint64_t> parse_duration(std::string_view text);
/// UTC nanoseconds of "1700000000.25", "2026-11-21T09:30:00.5Z", or "+5" (seconds from `now_ns`).
std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t now_ns);
/// Tag control information of "100" or "100:3" (identifier and priority).
std::optional<std::uint16_t> parse_vlan(std::string_view text);

/// The help: fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::replay
