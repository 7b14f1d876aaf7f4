// Which objects a process may destroy, and what stops before it exits.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace weftio::core {

/// Remembers which process made an object.
class maker {
 public:
    /// Whether the calling thread may destroy the object; otherwise the object is left alone. False in a child of
    /// fork(), where the object's threads are missing, its locks may be held for ever and DPDK's memory is the
    /// parent's. While the process exits, true only on the thread that runs exit(), and only if every `moving` object
    /// stands still.
    bool may_end() const noexcept;

 private:
    const pid_t process_ = getpid();
};

/// While one exists, exit() waits up to a second before it tears the library down. Opening and closing objects hold
/// one.
class undertaking {
 public:
    undertaking() noexcept;
    undertaking(const undertaking&) = delete;
    undertaking& operator=(const undertaking&) = delete;
    ~undertaking();
};

/// Like std::make_shared, but the object is destroyed only if maker::may_end().
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_here(Arguments&&... arguments)
{
    return {new T(std::forward<Arguments>(arguments)...), [maker = maker()](T* object) {
                undertaking undertaking;
                if (maker.may_end())
                    delete object;
            }};
}

/// An object with threads of its own, which are stopped before the process ends.
class moving {
 public:
    moving(const moving&) = delete;
    moving& operator=(const moving&) = delete;

    /// Called once, by the thread that runs exit(), when exit() begins. Stops calling into the application. Bounded in
    /// time. Returns whether the object stands still.
    virtual bool stand_still() noexcept = 0;

 protected:
    moving() = default;
    ~moving() = default;
    /// Call enter() last in the constructor and leave() first in the destructor. leave() waits for a stand_still() in
    /// progress.
    void enter();
    void leave() noexcept;
};

/// Whether exit() has begun: nothing may be opened any more.
bool process_exits() noexcept;

/// Runs `release` when the process exits, after every `moving` object has stood still; not at all if one does not. Call
/// it once.
void release_at_exit(void (*release)() noexcept);

} // namespace weftio::core
