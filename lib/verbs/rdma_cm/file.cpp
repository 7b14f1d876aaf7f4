#include "rdma_cm/file.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/guarded.hpp"
#include "engine/failure.hpp"
#include "rdma_cm/commands.hpp"
#include "rdma_cm/service.hpp"
#include "seam.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

/// librspreload takes the number of a channel for that of its socket, and the program's number for a socket that it has
/// accepted is a higher one. Its select() looks for the socket from 0 up, and marks what it meets first: with channels
/// above all numbers of the program, that is the program's.
int lowest_number() noexcept
{
    constexpr rlim_t highest = 1u << 15; // librdmacm has numbers up to 65,535
    const char* const preloaded = std::getenv("LD_PRELOAD");
    rlimit limit{};
    if (!preloaded || !std::strstr(preloaded, "librspreload") || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    return static_cast<int>(std::min(limit.rlim_cur / 2, highest));
}

} // namespace

file::file(service& of, int flags) : open_file(flags, lowest_number()), service_(of) {}

file::~file()
{
    service_.forget(*this);
}

ssize_t file::execute(int number, const void* written, std::size_t bytes) noexcept
try {
    const command what(written, bytes);
    if (what.is_get_event()) {
        const ssize_t result = get_event(number, what.response(), what.room());
        return result < 0 ? result : static_cast<ssize_t>(bytes);
    }
    const std::scoped_lock lock(service_.mutex);
    what.execute(service_, *this, number);
    return static_cast<ssize_t>(bytes);
} catch (...) {
    return -number_of_exception();
}

/// Each event has a record in the program's end of the socket.
ssize_t file::get_event(int number, std::uint64_t to, std::size_t room)
{
    constexpr std::size_t least = sizeof(rdma_ucm_event_resp) - sizeof(rdma_ucm_event_resp::reserved) -
                                  sizeof(rdma_ucm_event_resp::ece); // of an older librdmacm
    require(room >= least, ENOSPC);
    for (;;) {
        std::byte record{};
        const ssize_t got = recv(number, &record, sizeof record, MSG_DONTWAIT);
        if (got <= 0)
            return got == 0 ? -EIO : errno == EAGAIN ? -must_wait : -errno;
        if (deliver(to, room))
            return 0;
    }
}

/// @return false: another call has taken the event, or its identifier was destroyed
bool file::deliver(std::uint64_t to, std::size_t room)
{
    const std::scoped_lock lock(service_.mutex);
    for (; owed_ != 0; --owed_)
        if (send(ours(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
            break;
    if (events_.empty())
        return false;
    const waiting_event next = events_.front();
    if (!core::guarded_copy(reinterpret_cast<void*>(to), &next.says, std::min(room, sizeof next.says))) {
        signal(); // it is still there
        throw failure{EFAULT};
    }
    events_.pop_front();
    service_.note_delivered(next);
    return true;
}

void file::push(const waiting_event& next)
{
    events_.push_back(next);
    signal();
}

void file::signal() noexcept
{
    if (owed_ != 0 || send(ours(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
        ++owed_;
}

/// @param number  a descriptor of the program's end
void file::withdraw(int number, std::size_t count) noexcept
{
    for (; count != 0 && owed_ != 0; --count)
        --owed_;
    std::byte record{};
    for (; count != 0 && recv(number, &record, sizeof record, MSG_DONTWAIT) == 1; --count) {
    }
}

} // namespace weftio::verbs::rdma_cm
