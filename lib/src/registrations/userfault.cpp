#include "registrations/userfault.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/undying.hpp"
#include "weftio/error.hpp"

// Of newer headers than Debian 12 needs to have.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

namespace weftio::registrations {

namespace {

constexpr std::uint64_t events =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP;

[[noreturn]] void refuse(int why)
{
    const bool forbidden = why == EPERM || why == EACCES;
    throw error(forbidden ? errc::permission_denied : errc::not_supported,
                fmt::format("weftio: registration_cache: the system refuses userfaultfd with events ({}); {}, or use "
                            "registration_staleness::close_first",
                            std::strerror(why),
                            forbidden ? "allow that system call in the container's seccomp profile"
                                      : "it needs Linux 5.11 with CONFIG_USERFAULTFD and write protection"));
}

/// @return the descriptor, or -errno
int open_with(std::uint64_t features) noexcept
{
    const auto descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    if (descriptor >= 0 && ioctl(descriptor, UFFDIO_API, &api) == 0)
        return descriptor;
    const int why = errno;
    if (descriptor >= 0)
        close(descriptor);
    return -why;
}

int open_or_refuse()
{
    const int opened = open_userfault();
    if (opened < 0)
        refuse(-opened);
    return opened;
}

void ring(int eventfd) noexcept
{
    const std::uint64_t one = 1;
    static_cast<void>(!write(eventfd, &one, sizeof one));
}

/// Waits for either. Returns false for `stop`.
bool wait_for(int descriptor, int stop) noexcept
{
    pollfd both[] = {{descriptor, POLLIN, 0}, {stop, POLLIN, 0}};
    while (poll(both, 2, -1) < 0 && errno == EINTR) {
    }
    return both[1].revents == 0;
}

bool is_mapped(const range& pages) noexcept
{
    return msync(reinterpret_cast<void*>(pages.begin), pages.bytes(), MS_ASYNC) == 0; // which does nothing else
}

/// A thread that gets no signals of the program.
template <class Body>
std::thread quiet_thread(Body body)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread made(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
}

/// Descriptors of monitors, which children of fork() close: while a child has one, nobody may unmap what it watches
/// without a thread that reads.
struct family {
    family()
    {
        pthread_atfork([] { core::undying<family>().mutex.lock(); }, [] { core::undying<family>().mutex.unlock(); },
                       [] { core::undying<family>().leave_child(); });
    }
    void leave_child() noexcept
    {
        for (const int each : descriptors)
            close(each);
        descriptors.clear();
        mutex.unlock();
    }

    std::mutex mutex;
    std::vector<int> descriptors; ///< guarded by mutex
};

int opened_for_this_process()
{
    auto& all = core::undying<family>();
    const std::scoped_lock lock(all.mutex);
    all.descriptors.reserve(all.descriptors.size() + 1);
    return all.descriptors.emplace_back(open_or_refuse());
}

} // namespace

/// With shared memory, which older kernels do not watch, if possible.
int open_userfault() noexcept
{
    const int all = open_with(events | UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
    return all >= 0 ? all : open_with(events);
}

int watch_pages(int userfault, const range& pages) noexcept
{
    uffdio_register what{};
    what.range = {.start = pages.begin, .len = pages.bytes()};
    what.mode = UFFDIO_REGISTER_MODE_WP;
    return ioctl(userfault, UFFDIO_REGISTER, &what) == 0 ? 0 : errno;
}

void unwatch_pages(int userfault, const range& pages) noexcept
{
    uffdio_range what{.start = pages.begin, .len = pages.bytes()};
    static_cast<void>(ioctl(userfault, UFFDIO_UNREGISTER, &what)); // fails where nothing is mapped any more
}

userfault::userfault(std::function<void()> handle)
    : descriptor_(opened_for_this_process()), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), reader_(quiet_thread([this] { read_events(); })),
      handler_(quiet_thread([this, handle = std::move(handle)] { handle_events(handle); }))
{}

void userfault::stop() noexcept
{
    if (!reader_.joinable())
        return;
    handler_ends_.store(true);
    ring(wake_);
    handler_.join(); // first, because the other one must read the events of what it frees
    auto& all = core::undying<family>();
    const std::scoped_lock no_fork(all.mutex); // its holders may wait for the reader, which takes no lock
    std::erase(all.descriptors, descriptor_);
    ring(stop_);
    reader_.join();
}

userfault::~userfault()
{
    stop();
    for (const int each : {wake_, stop_})
        close(each);
}

void userfault::watch(const range& pages)
{
    int why = watch_pages(descriptor_, pages);
    // Pages of hugetlbfs are watched as a whole. With others it fails again, but could succeed beside what is unmapped.
    for (const std::uintptr_t size : {std::uintptr_t{2} << 20, std::uintptr_t{1} << 30})
        if (why == EINVAL && is_mapped(pages))
            why = watch_pages(descriptor_, {pages.begin & ~(size - 1), (pages.end + size - 1) & ~(size - 1)});
    if (why == 0)
        return;
    throw error(
        why == EBUSY ? errc::in_use : errc::not_supported,
        fmt::format("weftio: registration_cache: {} bytes of pages at {:#x} cannot be watched by userfaultfd "
                    "({}): {}; use registration_staleness::close_first for them",
                    pages.bytes(), pages.begin, std::strerror(why),
                    why == EBUSY
                        ? "another userfaultfd of the process watches them"
                        : "they are not mapped, or are those of a file, of shmat() or of read-only shared memory"));
}

void userfault::unwatch(const range& pages) noexcept
{
    unwatch_pages(descriptor_, pages);
}

void userfault::read_events() noexcept
{
    while (wait_for(descriptor_, stop_)) {
        announced_.fetch_add(1); // before read(), which lets the caller of munmap() go on
        read_all();
        read_.store(announced_.load(std::memory_order_relaxed), std::memory_order_release);
        ring(wake_);
    }
    close(descriptor_); // here, so that nobody who unmaps watched pages waits for a thread that has ended
}

void userfault::read_all() noexcept
{
    uffd_msg message;
    while (read(descriptor_, &message, sizeof message) == static_cast<ssize_t>(sizeof message)) {
        if (message.event == UFFD_EVENT_UNMAP || message.event == UFFD_EVENT_REMOVE)
            put({message.arg.remove.start, message.arg.remove.end});
        else if (message.event == UFFD_EVENT_REMAP)
            put({message.arg.remap.from, message.arg.remap.from + message.arg.remap.len});
    }
}

void userfault::put(const range& changed) noexcept
{
    const std::size_t last = last_.load(std::memory_order_relaxed);
    if (last - first_.load(std::memory_order_acquire) == changed_.size()) {
        overflowed_.store(true, std::memory_order_release);
        return;
    }
    changed_[last % changed_.size()] = changed;
    last_.store(last + 1, std::memory_order_release);
}

void userfault::handle_events(const std::function<void()>& handle)
{
    while (wait_for(wake_, stop_)) {
        std::uint64_t rings = 0;
        static_cast<void>(!read(wake_, &rings, sizeof rings));
        if (handler_ends_.load()) // behind read(), which may have taken the ring of stop()
            return;
        handle();
    }
}

} // namespace weftio::registrations
