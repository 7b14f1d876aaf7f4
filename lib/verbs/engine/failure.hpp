// Why a command fails, as the kernel would say it.
#pragma once

#include "weftio/error.hpp"

namespace weftio::verbs {

/// Thrown by what executes a command: write() returns -1, and errno is this.
struct failure {
    int number; ///< positive errno
};

inline void require(bool holds, int number)
{
    if (!holds)
        throw failure{number};
}

/// The errno for an error of the library.
int number_of(const error& why) noexcept;

} // namespace weftio::verbs
