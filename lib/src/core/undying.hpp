// Objects that no exit destroys.
#pragma once

#include <cstddef>
#include <new>

namespace weftio::core {

/// The only T of the process, made on first use and never destroyed, so that the application's static objects and
/// threads may use it until the process ends. Allocates nothing beyond what T does.
template <class T>
T& undying()
{
    alignas(T) static std::byte room[sizeof(T)];
    static T& only = *new (static_cast<void*>(room)) T;
    return only;
}

} // namespace weftio::core
