// The command line of weftio-litmus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trial.hpp"

namespace weftio::litmus {

/// What the user asked for.
struct command {
    std::string text{}; ///< not empty: print it, and end
    int exit_code = 0;  ///< with `text`
    bool json = false;  ///< JSON on standard output, instead of the table
    trial_options trial{};
    port_options port{};
    std::string second{};          ///< name of the NIC that writes flags; empty: none
    std::string gpu{}, peer_gpu{}; ///< number or address on PCI; empty: none
    std::vector<cell> cells{};
};

/// Parses the command line. Never prints and never ends the program: help and errors are returned as `text`.
command parse_command_line(int argc, const char* const* argv);

/// The help text, which fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::litmus
