// The thread that reads what Linux tells of mappings.
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "stale.hpp"

namespace weftio::verbs {

namespace {

/// Gives the calling thread a table of descriptors that has this one only: what it opens takes no number of the
/// program's, and a program that closes all descriptors does not end it. Containers may refuse that.
void leave_descriptors_to_program(int but) noexcept
{
    if (unshare(CLONE_FILES) != 0)
        return;
    const auto number = static_cast<unsigned>(but);
    if (number != 0)
        syscall(SYS_close_range, 0, number - 1, 0);
    syscall(SYS_close_range, number + 1, ~0u, 0);
}

} // namespace

void stale_registrations::read_events() noexcept
{
    prctl(PR_SET_NAME, "weftio-stale");
    leave_descriptors_to_program(userfault_);
    calls_.begin(with_stacks_);
    for (;;) {
        pollfd ready{userfault_, POLLIN, 0};
        if (poll(&ready, 1, -1) == 1 && (ready.revents & POLLIN) != 0)
            read_one();
    }
}

/// Marks keys before it reads the event: until then the call waits that has changed the mapping, so the program has no
/// other memory at the address yet. What the calls do not say is marked by the event.
void stale_registrations::read_one() noexcept
{
    calls_.look();
    calls_.for_each([this](std::uint32_t number, const stale_call& call) {
        if (call.number == SYS_brk)
            mark_unmapped(call.bytes(), number);
        else if (call.says_bytes() && call.drops())
            for (const registrations::range& gone : {call.bytes(), call.also()})
                mark(gone, number);
    });
    uffd_msg message;
    if (read(userfault_, &message, sizeof message) != static_cast<ssize_t>(sizeof message))
        return;
    registrations::range gone{};
    if (message.event == UFFD_EVENT_UNMAP || message.event == UFFD_EVENT_REMOVE)
        gone = {message.arg.remove.start, message.arg.remove.end};
    else if (message.event == UFFD_EVENT_REMAP)
        gone = {message.arg.remap.from, message.arg.remap.from + message.arg.remap.len};
    const std::uint32_t call = calls_.naming(gone);
    if (gone.begin != gone.end && (message.event != UFFD_EVENT_REMOVE || call == 0 || calls_.at(call).drops()))
        mark(gone, call);
}

} // namespace weftio::verbs
