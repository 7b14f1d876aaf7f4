// What is said of a stale registration.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstring>

#include "core/guarded.hpp"
#include "core/log.hpp"
#include "core/printable.hpp"
#include "stale.hpp"

namespace weftio::verbs {

namespace {

std::string who(int thread, const char* name)
{
    return thread == 0 ? "an unknown thread" : fmt::format("thread {} ({})", thread, core::printable(name));
}

std::string words_of(const stale_call& call)
{
    const auto& with = call.arguments;
    const auto range = [&](const char* name) { return fmt::format("{}({:#x}, {})", name, with[0], with[1]); };
    switch (call.number) {
        case SYS_munmap: return range("munmap");
        case SYS_mmap: return range("mmap") + " with MAP_FIXED";
        case SYS_mremap: return fmt::format("mremap({:#x}, {}, {})", with[0], with[1], with[2]);
        case SYS_brk: return fmt::format("brk({:#x})", with[0]);
        case SYS_shmdt: return fmt::format("shmdt({:#x})", with[0]);
        case SYS_shmat: return "shmat() with SHM_REMAP";
        case SYS_madvise:
            return range("madvise") + (with[2] == MADV_REMOVE ? " with MADV_REMOVE" : " with MADV_DONTNEED");
        default: return "a system call";
    }
}

double seconds_before(std::uint64_t then, std::uint64_t now) noexcept
{
    return now < then ? 0 : static_cast<double>(now - then) * 1e-9;
}

std::string words_of(const keys::stale_access& access, const std::string& peer)
{
    const bool peers = access.peers_of != 0;
    const char* does = peers ? "sends" : "reads";
    switch (access.rights) {
        case access::remote_write: does = "WRITE"; break;
        case access::remote_read: does = "READ"; break;
        case access::remote_atomic: does = "atomic"; break;
        case access::local_write: does = "writes"; break;
        default: break;
    }
    if (!peers)
        return fmt::format("an entry of this process {} {} bytes at {:#x}", does, access.bytes, access.address);
    return fmt::format("the peer's {} to queue pair {}{} names {} bytes at {:#x}", does, access.peers_of & 0xffffff,
                       peer, access.bytes, access.address);
}

/// Whether a call instruction ends at this address: E8 with 4 bytes, or FF with 1 to 6.
bool follows_a_call(std::uint64_t address) noexcept
{
    unsigned char before[7];
    if (!core::guarded_copy(before, reinterpret_cast<const void*>(address - sizeof before), sizeof before))
        return false;
    if (before[2] == 0xe8)
        return true;
    for (unsigned bytes = 2; bytes <= 7; ++bytes)
        if (before[7 - bytes] == 0xff && (before[8 - bytes] >> 3 & 7) == 2)
            return true;
    return false;
}

std::string place_of(const void* address, const Dl_info& in)
{
    const auto offset = [&](const void* from) {
        return static_cast<const char*>(address) - static_cast<const char*>(from);
    };
    if (in.dli_sname != nullptr)
        return fmt::format("{}({}+{:#x})", core::printable(in.dli_fname), core::printable(in.dli_sname),
                           offset(in.dli_saddr));
    return fmt::format("{}(+{:#x})", core::printable(in.dli_fname), offset(in.dli_fbase));
}

void log_frame(const char* what, std::uint32_t key, const void* address)
{
    Dl_info in{};
    if (dladdr(address, &in) != 0 && in.dli_fname != nullptr && std::strstr(in.dli_fname, "libweftio-verbs") == nullptr)
        core::log(log_level::debug,
                  fmt::format("weftio-run: stale key {:#x}: {} at {}", key, what, place_of(address, in)));
}

} // namespace

void stale_registrations::log(const stale_report& what, const std::string& peer) const
{
    const keys::stale_access& access = what.access;
    core::log(
        log_level::warning,
        fmt::format("weftio-run: stale key {:#x}: {}, whose pages are gone{}: {} called {} {:.6f} s before; {} "
                    "registered {} bytes at {:#x} {:.6f} s before; {} (docs/verbs.md#stale-registrations)",
                    access.key, words_of(access, peer),
                    what.is_mapped ? ", and others are there now" : ", and none are there now",
                    who(what.by.thread, what.by.name), words_of(what.by),
                    seconds_before(what.by.thread == 0 ? what.when_ns : what.by.when_ns, what.when_ns),
                    who(what.maker.thread, what.maker.name), what.length, what.start,
                    seconds_before(what.maker.when_ns, what.when_ns),
                    mode_ == stale_mode::fail ? "it is refused" : "a ConnectX would access the pages that are gone"));
    for (int each = 0; each != what.maker.frame_count; ++each)
        log_frame("registered", access.key, what.maker.frames[static_cast<std::size_t>(each)]);
    for (unsigned each = 0; each != what.by.words; ++each)
        if (Dl_info in{};
            dladdr(reinterpret_cast<void*>(what.by.stack[each]), &in) != 0 && follows_a_call(what.by.stack[each]))
            log_frame("unmapped", access.key, reinterpret_cast<void*>(what.by.stack[each]));
}

} // namespace weftio::verbs
