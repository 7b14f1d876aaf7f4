// The command line of weftio-files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/plan.hpp"
#include "check.hpp"

namespace weftio::files {

/// What the user asked for.
struct command {
    enum class action { check, bench, stats, say } what = action::say;
    std::string text{}; ///< say: the text to print
    int exit_code = 0;  ///< say: the exit status
    bool json = false;  ///< JSON on standard output, instead of text
    check_options check{};
    bench_options bench{};
    std::uint32_t process = 0; ///< stats: whose
};

/// Parses the command line. Never prints and never ends the program: help and errors are returned as `say`.
command parse_command_line(int argc, const char* const* argv);

/// Parses "4096", "4k", "1m", "2g" (powers of 1024) to bytes; 0 for other text.
std::uint64_t parse_size(std::string_view text) noexcept;

/// The help text, which fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::files
