// The C functions as the library exports them, and how they turn exceptions into codes.
#pragma once

#pragma GCC visibility push(default)
#include "cufile.h"
#pragma GCC visibility pop
#undef cuFileDriverClose

namespace weftio::cufile {

/// Thrown where a code is known.
struct failure {
    CUfileOpError code;
};

inline CUfileError_t status(CUfileOpError code) noexcept
{
    return {code, static_cast<CUresult>(0)};
}

/// The code of the exception that is being handled. Logs the sentence of an exception that has one.
CUfileOpError code_of_exception(const char* function) noexcept;

/// Calls `body`, and returns success or the code of what it throws.
template <class Body>
CUfileError_t guarded(const char* function, Body&& body) noexcept
try {
    body();
    return status(CU_FILE_SUCCESS);
} catch (...) {
    return status(code_of_exception(function));
}

inline void require(bool holds, CUfileOpError otherwise)
{
    if (!holds)
        throw failure{otherwise};
}

} // namespace weftio::cufile
