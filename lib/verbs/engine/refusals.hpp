// Refusals: what a program requests and the devices lack. docs/verbs.md has a table of them, with the same words.
#pragma once

#include <cerrno>
#include <string_view>

#include "call.hpp"
#include "weftio/log.hpp"

namespace weftio::verbs {

/// Thrown while a command is executed: the command fails with `number`, and the log gets a line.
struct unsupported {
    const char* reason; ///< static storage
    log_level level = log_level::warning;
    int number = EOPNOTSUPP;
};

/// A request that libraries make only to find out whether the device has a feature, and that they do without.
constexpr unsupported probe_of(const char* reason, int number = EOPNOTSUPP) noexcept
{
    return {.reason = reason, .level = log_level::info, .number = number};
}

inline void require_feature(bool there, const char* reason)
{
    if (!there)
        throw unsupported{reason};
}

/// Why a command is refused that is not in the table of find_command().
unsupported refusal_of(const call& what) noexcept;

/// Logs a refusal: once a process for each pair of command and reason, further ones at level debug. Any thread.
/// @param command  static storage is not required
void tell_refused(std::string_view command, const unsupported& why) noexcept;

/// A program wants another interface of the kernel than a node, and the preloaded library refuses it (seam.hpp).
void tell_other_interface(std::string_view which, bool probe) noexcept;

} // namespace weftio::verbs
