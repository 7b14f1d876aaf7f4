// What must hold whatever the input is.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weftio::fuzz {

/// Ends the process, which libFuzzer takes for a find, when `holds` is false.
inline void expect(bool holds, const char* words)
{
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", words);
    std::abort();
}

} // namespace weftio::fuzz
