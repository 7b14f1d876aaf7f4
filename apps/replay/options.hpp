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
    std::string text;          ///< say: the text to print
    int exit_code = 0;         ///< say: the exit status
    double stats_s = 0;        ///< seconds between two lines; 0: no lines
    std::string second_port{}; ///< second port of a split run; empty: none
    bool quiet = false, strict = false;
    std::optional<log_level> log; ///< least level of library lines on stderr; none: as WEFTIO_LOG says
    std::string json, plot;       ///< files to write; `-`: standard output; empty: none
};

/// Parses the command line. Never prints and never ends the program: help and errors are returned as `say`.
command parse_command_line(int argc, const char* const* argv);

/// Parses "1.5", "1.5s", "20ms", "100us" or "7ns" to nanoseconds; without a unit the number counts seconds.
std::optional<std::uint64_t> parse_duration(std::string_view text);
/// Parses "1700000000.25", "2026-11-21T09:30:00.5Z", or "+5" (seconds from `now_ns`) to UTC nanoseconds.
std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t now_ns);
/// Parses "100" or "100:3" (identifier and priority) to tag control information.
std::optional<std::uint16_t> parse_vlan(std::string_view text);

/// The help text, which fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::replay
