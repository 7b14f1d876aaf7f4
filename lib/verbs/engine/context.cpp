#include "context.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "commands.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "events.hpp"
#include "methods.hpp"
#include "refusals.hpp"

namespace weftio::verbs {

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t most_doorbell_pages = 256; // limit of the offset of mmap()

/// While it exists, the fault signals of this thread are unblocked: a fault whose signal is blocked would end the
/// process. Program threads that block all signals also pass addresses.
class faults_unblocked {
 public:
    faults_unblocked() noexcept
    {
        sigset_t faults;
        sigemptyset(&faults);
        sigaddset(&faults, SIGSEGV);
        sigaddset(&faults, SIGBUS);
        pthread_sigmask(SIG_UNBLOCK, &faults, &before_);
    }
    faults_unblocked(const faults_unblocked&) = delete;
    faults_unblocked& operator=(const faults_unblocked&) = delete;
    ~faults_unblocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
    sigset_t before_{};
};

/// Logs the refusal of a command whose number is known.
void tell_refused(const void* command, std::size_t bytes, const unsupported& why) noexcept
try {
    verbs::tell_refused(name_of_command(call(command, bytes)), why);
} catch (...) { // the program has changed the command meanwhile, or no memory
}

} // namespace

shared_pages::shared_pages(std::size_t bytes)
    : at_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), bytes_(bytes)
{
    require_call(at_ != MAP_FAILED);
    if (void* const again = mremap(at_, 0, bytes, MREMAP_MAYMOVE); again != MAP_FAILED) {
        munmap(again, bytes);
        return;
    }
    file_ = descriptor(memfd_create("weftio-doorbells", MFD_CLOEXEC));
    const bool made = file_.number() >= 0 && ftruncate(file_.number(), static_cast<off_t>(bytes)) == 0 &&
                      mmap(at_, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.number(), 0) == at_;
    if (const int why = errno; !made) {
        munmap(at_, bytes);
        throw failure{why};
    }
}

shared_pages::~shared_pages()
{
    munmap(at_, bytes_);
}

/// mremap() from 0 bytes of shared memory makes another mapping of it.
void* shared_pages::map_again(std::size_t offset, std::size_t bytes, void* wish, int protection, int flags) const
{
    if (file_.number() >= 0) {
        void* const made = mmap(wish, bytes, protection, (flags & ~(MAP_TYPE | MAP_ANONYMOUS)) | MAP_SHARED,
                                file_.number(), static_cast<off_t>(offset));
        require_call(made != MAP_FAILED);
        return made;
    }
    const bool fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE) { // reserves the place
        void* const there = mmap(wish, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        require_call(there != MAP_FAILED);
    }
    void* const made =
        mremap(static_cast<std::byte*>(at_) + offset, 0, bytes, MREMAP_MAYMOVE | (fixed ? MREMAP_FIXED : 0), wish);
    require_call(made != MAP_FAILED);
    if (mprotect(made, bytes, protection) != 0) {
        const int why = errno;
        munmap(made, bytes);
        throw failure{why};
    }
    return made;
}

context::context(node& device, int flags)
    : open_file(flags), of(device), doorbell_pages_(most_doorbell_pages * page_bytes)
{}

/// Removes remaining objects in the order of their dependencies, as the kernel does.
context::~context()
{
    poll(); // for the log: a program often ends right after a failure
    std::vector<std::shared_ptr<channel>> notified;
    {
        const std::scoped_lock lock(mutex);
        for (const auto& [number, each] : channels)
            notified.push_back(each);
    }
    for (const auto& each : notified) // not with the mutex held, for which the watched function may wait
        of.events.forget(each->events.ours());
    const std::scoped_lock lock(mutex);
    pairs.clear();
    completion_queues.clear();
    shared_queues.clear();
    channels.clear();
    windows.clear();
    regions.clear();
}

void context::watch_channel(std::uint32_t number, const std::shared_ptr<channel>& made)
{
    of.events.watch(made->events.ours(),
                    [this, number, which = std::weak_ptr(made)] { forget_channel(number, which); });
}

void context::forget_channel(std::uint32_t number, const std::weak_ptr<channel>& which)
{
    const std::shared_ptr<channel> ended = which.lock();
    if (!ended || !has_hung_up(ended->events.ours())) // otherwise the event was for an older channel of this number
        return;
    of.events.forget(ended->events.ours());
    const std::scoped_lock lock(mutex);
    if (const auto found = channels.try_find(number); found == ended)
        channels.remove(number);
}

int context::why_missing(std::uint32_t handle) const
{
    return domains.try_find(handle) || regions.try_find(handle) || windows.try_find(handle) ||
                   completion_queues.try_find(handle) || shared_queues.try_find(handle) || pairs.try_find(handle) ||
                   addresses.try_find(handle)
               ? EINVAL
               : ENOENT;
}

void context::make_doorbells(unsigned pages)
{
    doorbells_.clear();
    doorbell_bytes_ = of.memory.adopt(doorbell_pages_.begin(), pages * page_bytes);
    for (unsigned page = 0; page != pages; ++page)
        doorbells_.push_back(std::make_shared<const unsigned>(page));
}

std::shared_ptr<const unsigned> context::next_doorbell() const
{
    return *std::ranges::min_element(doorbells_, {}, [](const auto& page) { return page.use_count(); });
}

ssize_t context::execute(int, const void* command, std::size_t bytes) noexcept
try {
    const faults_unblocked guard;
    call what(command, bytes);
    const command_row* const row = find_command(what);
    if (!row)
        throw refusal_of(what);
    what.require_form(row->form);
    const std::scoped_lock lock(mutex);
    require(asynchronous || row->execute == get_context, EINVAL); // as the kernel before GET_CONTEXT
    row->execute(*this, what);
    return static_cast<ssize_t>(bytes);
} catch (const unsupported& why) {
    tell_refused(command, bytes, why);
    return -why.number;
} catch (...) {
    return -number_of_exception();
}

void context::poll() noexcept
try {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock && asynchronous)
        poll_events(*this);
} catch (const std::exception& why) {
    core::log_or_lose(log_level::error, [&] { return fmt::format("weftio-run: lost an event: {}", why.what()); });
}

void context::tell_stale()
{
    stale().tell(this, [this](std::uint32_t queue) {
        for (const auto& [handle, each] : pairs)
            if (each->queue->number() == queue && !each->peer_address.empty())
                return fmt::format(" (peer: queue pair {} at {})", each->set.dest_qp_num, each->peer_address);
        return std::string();
    });
}

int context::control(unsigned long request, const void* argument) noexcept
try {
    const faults_unblocked guard;
    if (request != RDMA_VERBS_IOCTL)
        return -ENOTTY;
    const method_call what(argument);
    if (!is_supported(what))
        return refuse_method(what);
    const std::scoped_lock lock(mutex);
    require(asynchronous.has_value(), EINVAL); // as the kernel before GET_CONTEXT
    reg_dmabuf_mr(*this, what);
    return 0;
} catch (...) {
    return -number_of_exception();
}

/// The page offset contains a command from bit 8 up, and the index of a page below (mlx5's kernel driver).
int context::map(void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address) noexcept
try {
    constexpr std::uint64_t regular = 0, write_combining = 2, not_cached = 3, another_page = 6;
    const std::uint64_t page = static_cast<std::uint64_t>(offset) / page_bytes, command = page >> 8,
                        index = page & 0xff;
    if (command == another_page) {
        constexpr unsupported why{"a context gets no further doorbell pages"};
        verbs::tell_refused("mmap ALLOC_WC", why);
        return -why.number;
    }
    if (bytes != page_bytes || (command != regular && command != write_combining && command != not_cached))
        return -EINVAL;
    *address = doorbell_pages_.map_again(index * page_bytes, bytes, wish, protection, flags);
    return 0;
} catch (const failure& why) {
    return -why.number;
}

} // namespace weftio::verbs
