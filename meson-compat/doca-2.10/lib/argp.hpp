// Options as programs declare them, and a command line read with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "doca_argp.h"

struct doca_argp_param {
    static constexpr const char* noun = "parameter";
    std::string short_name;
    std::string long_name;
    std::string arguments;
    std::string description;
    doca_argp_param_cb_t callback = nullptr;
    doca_argp_type type = DOCA_ARGP_TYPE_UNKNOWN;
    bool mandatory = false;
};

namespace weftio::doca {

/// "-g, --gpu <PCI address>"
std::string shown(const doca_argp_param& parameter);
/// What --help prints: one line for each option.
std::string help_of(std::string_view program, const std::vector<const doca_argp_param*>& parameters);

/// An option of the command line with its value.
struct given_option {
    const doca_argp_param* parameter;
    std::variant<char*, int, bool> value;
};

/// Reads the command line. The first of two options with one name counts.
/// @throws failure DOCA_ERROR_INVALID_VALUE unknown option, value missing or wrong
std::vector<given_option> options_in(int argc, char** argv, const std::vector<const doca_argp_param*>& parameters);

} // namespace weftio::doca
