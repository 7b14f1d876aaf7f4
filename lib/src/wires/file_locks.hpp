// Locks on bytes of a file that are held by an open file description.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace weftio::wires {

namespace detail {

inline struct flock lock_of(short kind, off_t first, off_t bytes) noexcept
{
    struct flock lock {};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = first;
    lock.l_len = bytes;
    return lock;
}

} // namespace detail

/// Takes the lock on a byte unless somebody else holds it. Never blocks. @return false, with errno: EAGAIN if held
inline bool try_lock(int descriptor, off_t byte) noexcept
{
    struct flock lock = detail::lock_of(F_WRLCK, byte, 1);
    if (::fcntl(descriptor, F_OFD_SETLK, &lock) == 0)
        return true;
    errno = errno == EACCES ? EAGAIN : errno;
    return false;
}

/// Takes a lock on a byte that others may have, too. It stays until the descriptor is closed.
inline void share_lock(int descriptor, off_t byte) noexcept
{
    struct flock lock = detail::lock_of(F_RDLCK, byte, 1);
    ::fcntl(descriptor, F_OFD_SETLK, &lock);
}

inline void release_lock(int descriptor, off_t byte) noexcept
{
    struct flock lock = detail::lock_of(F_UNLCK, byte, 1);
    ::fcntl(descriptor, F_OFD_SETLK, &lock);
}

/// Whether another open file description holds a lock on one of these bytes.
inline bool locked_by_others(int descriptor, off_t first, off_t bytes) noexcept
{
    struct flock lock = detail::lock_of(F_WRLCK, first, bytes);
    return ::fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

} // namespace weftio::wires
