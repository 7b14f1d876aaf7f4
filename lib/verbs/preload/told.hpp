// Calls that change mappings, told to the engine while it wants to hear of them.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <sys/mman.h>

#include "host.hpp"

namespace weftio::verbs::preload {

inline bool has_succeeded(int result) noexcept
{
    return result == 0;
}
inline bool has_succeeded(const void* result) noexcept
{
    return result != MAP_FAILED;
}

inline std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

template <class Argument>
unsigned long as_number(Argument argument) noexcept
{
    return (unsigned long)argument; // a pointer or a number
}

/// Calls `call()`, and tells it, if it succeeds, by its SYS_ number and its arguments.
template <class Call, class... Arguments>
auto told(Call call, long number, Arguments... arguments)
{
    if (!hears_mapping_calls())
        return call();
    const std::uint64_t since = monotonic_ns();
    const auto result = call();
    if (const auto* const engine = engine_here(); engine != nullptr && has_succeeded(result)) {
        const engine_scope scope;
        const std::array<unsigned long, 6> all{as_number(arguments)...};
        engine->called(number, all.data(), since);
    }
    return result;
}

/// Calls `call()`. If it fails with this errno, and the engine has watched the bytes, calls it again.
template <class Call>
auto without_watching(Call call, int error, std::uintptr_t begin, std::size_t bytes)
{
    const auto result = call();
    if (has_succeeded(result) || errno != error || passes())
        return result;
    const auto* const engine = engine_here();
    bool watched = false;
    if (engine != nullptr) {
        const engine_scope scope;
        watched = engine->stop_watching(begin, bytes);
    }
    return watched ? call() : result;
}

} // namespace weftio::verbs::preload
