// Why a command fails, as the kernel reports it.
#pragma once

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

/// The errno for an error of the Weftio library.
int number_of(const error& why) noexcept;

} // namespace weftio::verbs
