#include "channel.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "failure.hpp"

namespace weftio::verbs {

namespace {

/// A duplicate of the descriptor, if it is the socket with this identity.
descriptor duplicate_if(int number, std::uint64_t identity) noexcept
{
    descriptor copy(fcntl(number, F_DUPFD_CLOEXEC, 0));
    return identity_of(copy.number()) == identity ? std::move(copy) : descriptor();
}

/// A socket of the process, by a duplicate; by the program's own number if it has not closed it and no descriptor is
/// free for a duplicate.
struct found_socket {
    descriptor duplicate;
    int number = -1;
};

/// @param likely  the number that it had
found_socket find_socket(int likely, std::uint64_t identity)
{
    if (descriptor found = duplicate_if(likely, identity); found.number() >= 0)
        return {.duplicate = std::move(found)};
    if (identity_of(likely) == identity)
        return {.duplicate = {}, .number = likely};
    const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
    while (const dirent* each = all ? readdir(all.get()) : nullptr)
        if (descriptor found = duplicate_if(std::atoi(each->d_name), identity); found.number() >= 0)
            return {.duplicate = std::move(found)};
    return {};
}

} // namespace

descriptor& descriptor::operator=(descriptor&& other) noexcept
{
    const descriptor before(std::exchange(number_, other.release()));
    return *this;
}

descriptor::~descriptor()
{
    if (number_ >= 0)
        close(number_);
}

int descriptor::release() noexcept
{
    return std::exchange(number_, -1);
}

std::uint64_t identity_of(int number) noexcept
{
    std::uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    return getsockopt(number, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

bool has_hung_up(int number) noexcept
{
    pollfd polled{.fd = number, .events = 0, .revents = 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
}

/// Linux limits the numbers of descriptors, not how many there are. The limit is the whole process's, and is raised for
/// a moment.
descriptor out_of_the_way(descriptor own) noexcept
{
    constexpr rlim_t highest = 1u << 16; // the kernel's table of a process is as long as its highest number
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    rlimit before{}, now{};
    if (getrlimit(RLIMIT_NOFILE, &before) != 0 || before.rlim_cur >= before.rlim_max || before.rlim_cur >= highest ||
        own.number() < 0)
        return own;
    const rlimit raised{.rlim_cur = std::min(before.rlim_max, 2 * highest), .rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0)
        return own;
    descriptor moved(fcntl(own.number(), F_DUPFD_CLOEXEC, static_cast<int>(before.rlim_cur)));
    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == raised.rlim_cur) // else the program has set another
        setrlimit(RLIMIT_NOFILE, &before);
    return moved.number() >= 0 ? std::move(moved) : std::move(own);
}

connection make_connection(int flags, int lowest)
{
    std::array<int, 2> made{};
    require_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, made.data()) == 0);
    if (const int moved = lowest > 0 ? fcntl(made[1], F_DUPFD_CLOEXEC, lowest) : -1; moved >= 0)
        close(std::exchange(made[1], moved));
    if ((flags & O_CLOEXEC) == 0)
        fcntl(made[1], F_SETFD, 0);
    if ((flags & O_NONBLOCK) != 0)
        fcntl(made[1], F_SETFL, O_NONBLOCK);
    return {.ours = out_of_the_way(descriptor(made[0])), .program = made[1], .identity = identity_of(made[1])};
}

event_channel::event_channel(std::size_t record_bytes)
    : record_bytes_(record_bytes), connection_(make_connection(O_CLOEXEC))
{}

bool event_channel::send(std::span<const std::byte> one) const noexcept
{
    return ::send(ours(), one.data(), one.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

void event_channel::send_waiting() noexcept
{
    while (!waiting_.empty() && send(waiting_.front()))
        waiting_.pop_front();
}

void event_channel::push(std::span<const std::byte> bytes)
{
    const std::scoped_lock lock(mutex_);
    send_waiting();
    if (!waiting_.empty() || !send(bytes))
        waiting_.emplace_back(bytes.begin(), bytes.end());
}

/// Reads the unread records through a duplicate of the program's end, if the program still has one.
void event_channel::take_back_unread(std::deque<record>& into)
{
    int unread = 0;
    if (ioctl(ours(), SIOCOUTQ, &unread) != 0 || unread == 0)
        return;
    const found_socket theirs = find_socket(connection_.program, connection_.identity);
    const int from = theirs.duplicate.number() >= 0 ? theirs.duplicate.number() : theirs.number;
    record one(record_bytes_);
    while (recv(from, one.data(), one.size(), MSG_DONTWAIT) == static_cast<ssize_t>(record_bytes_))
        into.push_back(one);
}

std::uint32_t event_channel::withdraw(std::uint64_t object)
{
    const std::scoped_lock lock(mutex_);
    std::deque<record> all;
    take_back_unread(all);
    all.insert(all.end(), waiting_.begin(), waiting_.end());
    const auto taken = std::erase_if(all, [&](const record& each) {
        std::uint64_t about = 0;
        std::memcpy(&about, each.data(), sizeof about);
        return about == object;
    });
    waiting_ = std::move(all);
    send_waiting();
    return static_cast<std::uint32_t>(taken);
}

bool event_channel::flush()
{
    const std::scoped_lock lock(mutex_);
    send_waiting();
    return !waiting_.empty();
}

} // namespace weftio::verbs
