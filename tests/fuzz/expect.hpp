// Conditions that must hold for every input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weftio::fuzz {

/// Aborts the process if `holds` is false; libFuzzer reports this as a finding.
inline void expect(bool holds, const char* words)
{
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", words);
    std::abort();
}

} // namespace weftio::fuzz
