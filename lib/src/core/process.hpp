// What ends with the process, and what a process must leave alone.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace weftio::detail {

/// Remembers which process made an object.
class maker {
 public:
    /// Whether the calling thread may end the object. Not in a child of fork(): threads of the object are missing
    /// there, locks are held for ever, and DPDK's memory is the parent's. While the process exits only the thread that
    /// runs exit() may, and not if something of the library's does not stand still. Such an object is left as it is.
    bool may_end() const noexcept;

 private:
    const pid_t process_ = getpid();
};

/// While one exists, exit() waits before it takes the ground away, for a second. Opening and closing are such.
class undertaking {
 public:
    undertaking() noexcept;
    undertaking(const undertaking&) = delete;
    undertaking& operator=(const undertaking&) = delete;
    ~undertaking();
};

/// As std::make_shared; the object ends only where maker::may_end().
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_here(Arguments&&... arguments)
{
    return {new T(std::forward<Arguments>(arguments)...), [maker = maker()](T* object) {
                undertaking undertaking;
                if (maker.may_end())
                    delete object;
            }};
}

/// Something that moves by itself, and is stopped before the process ends.
class moving {
 public:
    moving(const moving&) = delete;
    moving& operator=(const moving&) = delete;

    /// Called once, when the process has begun to exit, by the thread that runs exit(). From then on it calls nothing
    /// of the application's. Bounded. Returns whether it stands still.
    virtual bool stand_still() noexcept = 0;

 protected:
    moving() = default;
    ~moving() = default;
    /// To be called at the end of the constructor, and at the begin of the destructor; the latter waits for
    /// stand_still().
    void enter();
    void leave() noexcept;
};

/// Whether exit() has come by: nothing may be opened any more.
bool process_exits() noexcept;

/// Runs `release` when the process exits, behind stand_still() of all that moves. Not where something does not stand
/// still. Called once.
void release_at_exit(void (*release)() noexcept);

} // namespace weftio::detail
