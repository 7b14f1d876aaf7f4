// Why a command fails, as the kernel reports it.
#pragma once

#include <cerrno>

#include "weftio/error.hpp"

namespace weftio::verbs {

/// Thrown while a command is executed: write() returns -1 with this errno.
struct failure {
    int number; ///< positive errno
};

inline void require(bool holds, int number)
{
    if (!holds)
        throw failure{number};
}

/// The result of a system call, which fails with its errno.
inline void require_call(bool succeeded)
{
    require(succeeded, errno);
}

/// The errno for the exception that is being handled. Logs what a program would not know by the errno alone.
/// @pre called in a handler, of a failure or any std::exception
int number_of_exception() noexcept;

/// The errno for an error of the Weftio library.
int number_of(const error& why) noexcept;

} // namespace weftio::verbs
