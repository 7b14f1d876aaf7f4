#include "channel.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
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

/// Finds a socket of the process and duplicates it. @param likely  the number that it had
descriptor find_socket(int likely, std::uint64_t identity)
{
    if (descriptor found = duplicate_if(likely, identity); found.number() >= 0)
        return found;
    const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
    while (const dirent* each = all ? readdir(all.get()) : nullptr)
        if (descriptor found = duplicate_if(std::atoi(each->d_name), identity); found.number() >= 0)
            return found;
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

connection make_connection(int flags)
{
    std::array<int, 2> made{};
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, made.data()) == 0, errno);
    if ((flags & O_CLOEXEC) == 0)
        fcntl(made[1], F_SETFD, 0);
    if ((flags & O_NONBLOCK) != 0)
        fcntl(made[1], F_SETFL, O_NONBLOCK);
    return {.ours = descriptor(made[0]), .program = made[1], .identity = identity_of(made[1])};
}

event_channel::event_channel(std::size_t record_bytes)
    : record_bytes_(record_bytes), connection_(make_connection(O_CLOEXEC))
{}

bool event_channel::send(const record& one) const noexcept
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
    waiting_.emplace_back(bytes.begin(), bytes.end());
    send_waiting();
}

/// Reads the unread records through a duplicate of the program's end, if the program still has one.
void event_channel::take_back_unread(std::deque<record>& into)
{
    int unread = 0;
    if (ioctl(ours(), SIOCOUTQ, &unread) != 0 || unread == 0)
        return;
    const descriptor theirs = find_socket(connection_.program, connection_.identity);
    record one(record_bytes_);
    while (recv(theirs.number(), one.data(), one.size(), MSG_DONTWAIT) == static_cast<ssize_t>(record_bytes_))
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
