#include "watcher.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "core/log.hpp"
#include "core/signals.hpp"
#include "failure.hpp"

namespace weftio::verbs {

namespace {

void poke(const descriptor& event) noexcept
{
    const std::uint64_t one = 1;
    static_cast<void>(!write(event.number(), &one, sizeof one));
}

} // namespace

watcher::watcher()
    : epoll_(out_of_the_way(descriptor(epoll_create1(EPOLL_CLOEXEC)))),
      wake_(out_of_the_way(descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))))
{
    require_call(epoll_.number() >= 0 && wake_.number() >= 0);
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = wake_.number()}};
    require_call(epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, wake_.number(), &wanted) == 0);
    {
        const core::signals_blocked blocked;
        thread_ = std::thread([this] { run(); });
    }
    pthread_setname_np(thread_.native_handle(), "weftio-verbs");
}

watcher::~watcher()
{
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
    }
    poke(wake_);
    thread_.join();
}

/// EPOLL_CTL_MOD finds an entry by number and open file.
bool watcher::has_descriptors() const noexcept
{
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = wake_.number()}};
    return epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, wake_.number(), &wanted) == 0;
}

void watcher::require_descriptors()
{
    if (has_descriptors())
        return;
    if (!said_closed_.exchange(true))
        core::log_or_lose(log_level::warning, [] {
            return std::string("weftio-run: the program has closed descriptors that it has not opened, among them the "
                               "engine's: it can open no device any more (EBADF); close those that it has opened, or "
                               "all before it looks for devices (docs/verbs.md#what-is-not-there)");
        });
    throw failure{EBADF};
}

void watcher::watch(int number, std::function<void()> when_ready)
{
    require_descriptors();
    {
        const std::scoped_lock lock(mutex_);
        functions_[number] = std::move(when_ready);
    }
    epoll_event wanted{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = number}};
    if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, number, &wanted) != 0) {
        const int why = errno;
        forget(number);
        throw failure{why};
    }
}

void watcher::forget(int number)
{
    epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, number, nullptr);
    std::unique_lock lock(mutex_);
    const bool from_within = std::this_thread::get_id() == thread_.get_id();
    idle_.wait(lock, [&] { return running_ != number || from_within; });
    functions_.erase(number);
}

void watcher::set_poll(std::chrono::milliseconds period, std::function<void()> poll)
{
    const std::scoped_lock lock(mutex_);
    period_ = period;
    poll_ = std::move(poll);
}

void watcher::want_polls(int more)
{
    const std::scoped_lock lock(mutex_);
    if (wanted_ == 0 && has_descriptors())
        poke(wake_);
    wanted_ += more;
}

int watcher::patience_ms()
{
    using std::chrono::milliseconds;
    const std::scoped_lock lock(mutex_);
    if (wanted_ == 0)
        return -1;
    const auto left = std::chrono::ceil<milliseconds>(next_poll_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp(left, milliseconds{0}, period_).count());
}

/// Empty: no poll is due.
std::function<void()> watcher::due_poll()
{
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (wanted_ == 0 || now < next_poll_)
        return {};
    next_poll_ = now + period_;
    return poll_;
}

void watcher::call(int number)
{
    std::function<void()> wanted;
    {
        const std::scoped_lock lock(mutex_);
        const auto found = functions_.find(number);
        if (found == functions_.end())
            return;
        wanted = found->second;
        running_ = number;
    }
    wanted();
    {
        const std::scoped_lock lock(mutex_);
        running_ = -1;
    }
    idle_.notify_all();
}

bool watcher::ends()
{
    const std::scoped_lock lock(mutex_);
    return ending_;
}

void watcher::run()
{
    constexpr int most_events = 64;
    constexpr std::chrono::milliseconds pause_without_descriptors{10};
    std::array<epoll_event, most_events> events{};
    for (;;) {
        const int count =
            has_descriptors() ? epoll_wait(epoll_.number(), events.data(), most_events, patience_ms()) : -1;
        if (count < 0 && errno != EINTR)
            std::this_thread::sleep_for(pause_without_descriptors);
        for (int at = 0; at < count; ++at) {
            const int number = events[static_cast<std::size_t>(at)].data.fd;
            if (number != wake_.number()) {
                call(number);
                continue;
            }
            std::uint64_t pokes = 0;
            static_cast<void>(!read(number, &pokes, sizeof pokes));
        }
        if (ends())
            return;
        if (const std::function<void()> poll = due_poll())
            poll();
    }
}

} // namespace weftio::verbs
