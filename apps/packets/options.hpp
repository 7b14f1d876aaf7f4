// The command line of weftio-packets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "address.hpp"
#include "weftio/log.hpp"

namespace weftio::packets {

/// Exit statuses.
inline constexpr int ended = 0, usage = 1, failed = 2;

struct server_options {
    std::string port, device = "cpu";
    std::vector<address> addresses;
    unsigned queues = 1;
    std::uint16_t echo_port = 0, http_port = 80; ///< 0: none
    std::string root{};                          ///< folder of the files to serve; empty: none
    std::uint32_t connections = 65'536;
    double interval_s = 1; ///< between two reports of a kernel
    bool busy = false;     ///< kernels and engines never sleep
    bool ping_report = false;
};

/// What the user asked for.
struct command {
    enum class action { serve, say } what = action::serve;
    std::string text{}; ///< say: the text to print
    int exit_code = ended;
    server_options server{};
    std::optional<address> peer{}; ///< address for the kernel's side of a tap port
    double seconds = 0;            ///< ends after so many; 0: at Ctrl-C
    std::string json{};            ///< file for the summary; `-`: standard output; empty: none
    bool quiet = false;
    std::optional<log_level> log{};
};

/// Parses the command line. Never prints and never ends the program: help and errors are returned as `say`.
command parse_command_line(int argc, const char* const* argv);

/// The help text, which fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::packets
