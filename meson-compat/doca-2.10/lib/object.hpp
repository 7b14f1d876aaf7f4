// What all objects have in common that programs hold by pointer: which pointers are alive, and how calls end.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "doca_error.h"

namespace weftio::doca {

/// Why a call of the program fails: what it returns, and a sentence for the log.
struct failure {
    doca_error_t code;
    std::string text;
};
template <class... Arguments>
[[noreturn]] void fail(doca_error_t code, fmt::format_string<Arguments...> text, Arguments&&... arguments)
{
    throw failure{code, fmt::format(text, std::forward<Arguments>(arguments)...)};
}
template <class... Arguments>
void require(bool holds, doca_error_t code, fmt::format_string<Arguments...> text, Arguments&&... arguments)
{
    if (!holds)
        fail(code, text, std::forward<Arguments>(arguments)...);
}

/// Logs the exception that is being handled as the failure of `function`, and returns what the function returns for it.
doca_error_t current_failure(const char* function) noexcept;

/// From now on the process has devices or memory of GPUs, which no child of fork() has: its calls fail. Any thread.
void note_use() noexcept;
/// Whether the process is such a child. Any thread; never blocks.
bool is_child_of_user() noexcept;
/// @throws failure DOCA_ERROR_BAD_STATE it is
void require_no_child();

/// Runs `body` as the C function `function`, which works in every process. Exceptions end here.
template <class Body>
doca_error_t call_in_any_process(const char* function, Body&& body) noexcept
{
    try {
        body();
        return DOCA_SUCCESS;
    } catch (...) {
        return current_failure(function);
    }
}

/// The same for a function that needs devices. In a child of fork() that lacks them, `body` does not run.
template <class Body>
doca_error_t call(const char* function, Body&& body) noexcept
{
    return call_in_any_process(function, [&] {
        require_no_child();
        body();
    });
}

/// Guards the objects of all types. Held while the process forks, so that a child finds it free. Never destroyed:
/// programs call from their own destructors, after the library's.
std::mutex& objects_mutex();

/// The objects of type T that the program holds. Each stays until the program destroys it and no other object uses it,
/// so programs may destroy objects in any order. T has `noun`, its name in messages. Any thread.
template <class T>
class living {
 public:
    /// @throws failure DOCA_ERROR_INVALID_VALUE `pointer` is null, or no such object is alive
    static std::shared_ptr<T> find(const T* pointer)
    {
        require(pointer, DOCA_ERROR_INVALID_VALUE, "the {} is a null pointer", T::noun);
        std::lock_guard lock(objects_mutex());
        auto found = all().find(pointer);
        require(found != all().end(), DOCA_ERROR_INVALID_VALUE,
                "the {} at {} does not exist: it was destroyed, or never made", T::noun, fmt::ptr(pointer));
        return found->second;
    }
    static void add(std::shared_ptr<T> object)
    {
        std::lock_guard lock(objects_mutex());
        all().emplace(object.get(), std::move(object));
    }
    /// The program's hold on the object ends. @throws failure as find()
    static std::shared_ptr<T> remove(const T* pointer)
    {
        auto object = find(pointer);
        std::lock_guard lock(objects_mutex());
        all().erase(pointer);
        return object;
    }
    /// Calls `visit` with each object until it returns true.
    template <class Visitor>
    static bool any(Visitor&& visit)
    {
        std::unordered_map<const T*, std::shared_ptr<T>> copy;
        {
            std::lock_guard lock(objects_mutex());
            copy = all();
        }
        for (auto& [pointer, object] : copy)
            if (visit(object))
                return true;
        return false;
    }

 private:
    // Never destroyed, as objects_mutex().
    static std::unordered_map<const T*, std::shared_ptr<T>>& all()
    {
        static auto* map = new std::unordered_map<const T*, std::shared_ptr<T>>;
        return *map;
    }
};

/// The object that the program names. @throws failure as living::find
template <class T>
std::shared_ptr<T> known(const T* pointer)
{
    return living<T>::find(pointer);
}

/// Where a result goes. @throws failure DOCA_ERROR_INVALID_VALUE it is null
template <class T>
T& result(T* pointer, const char* name)
{
    require(pointer, DOCA_ERROR_INVALID_VALUE, "\"{}\", where the result goes, is a null pointer", name);
    return *pointer;
}

/// Makes an object and gives it to the program.
template <class T, class... Arguments>
void make(T** out, Arguments&&... arguments)
{
    T*& where = result(out, T::noun);
    auto object = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    where = object.get();
    living<T>::add(std::move(object));
}

} // namespace weftio::doca
