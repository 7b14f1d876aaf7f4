// Objects that no exit destroys.
#pragma once

#include <cstddef>
#include <new>

namespace weftio::detail {

/// The only T, made when first asked for. It is never destroyed, so that static objects of the application, and
/// threads, may use it until the end of the process. Allocates nothing beyond what T does.
template <class T>
T& undying()
{
    alignas(T) static std::byte room[sizeof(T)];
    static T& only = *new (static_cast<void*>(room)) T;
    return only;
}

} // namespace weftio::detail
