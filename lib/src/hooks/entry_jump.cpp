#include "hooks/entry_jump.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hooks/code_pages.hpp"
#include "hooks/instruction.hpp"
#include "weftio/error.hpp"

namespace weftio::hooks {

namespace {

constexpr std::size_t page_bytes = 4096;
/// jmp *0(%rip), and the address behind it.
constexpr std::size_t far_jump_bytes = 14;
/// How far a jump of 5 bytes leads.
constexpr std::int64_t reach = std::numeric_limits<std::int32_t>::max() - std::int64_t{page_bytes};
/// What jumps of other libraries may overwrite: they are put there later, and know nothing of this one.
constexpr std::size_t moved_bytes = 14;
/// For as many instructions as a site may have before it: a branch of 2 bytes becomes 16.
constexpr std::size_t original_bytes = 512;

void write_far_jump(std::uint8_t* at, std::uintptr_t to) noexcept
{
    constexpr std::array<std::uint8_t, 6> code{0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(at, code.data(), code.size());
    std::memcpy(at + code.size(), &to, sizeof to);
}

template <class Distance>
std::intptr_t distance_at(std::uintptr_t address) noexcept
{
    Distance found{};
    std::memcpy(&found, reinterpret_cast<const void*>(address), sizeof found);
    return found;
}

/// Where an instruction is written, and where it is executed later.
struct moved_place {
    std::uint8_t* write;
    const std::uint8_t* execute;
};

/// jmp, call or a conditional jump, and the address behind it.
std::size_t write_branch(std::uint8_t* at, const instruction& what, std::uintptr_t to) noexcept
{
    if (what.branch == branch::jump) {
        write_far_jump(at, to);
        return far_jump_bytes;
    }
    if (what.branch == branch::condition) { // the opposite one jumps over a jump
        at[0] = static_cast<std::uint8_t>(0x70 | (what.condition ^ 1));
        at[1] = far_jump_bytes;
        write_far_jump(at + 2, to);
        return 2 + far_jump_bytes;
    }
    constexpr std::array<std::uint8_t, 8> call{0xff, 0x15, 2,    0,
                                               0,    0,    0xeb, 8}; // call *2(%rip); jmp behind the address
    std::memcpy(at, call.data(), call.size());
    std::memcpy(at + call.size(), &to, sizeof to);
    return call.size() + sizeof to;
}

/// Writes an instruction so that it does the same at another address. Returns the bytes that it has there; 0: what it
/// names is too far away.
std::size_t write_moved(const moved_place& to, std::uintptr_t from, const instruction& what) noexcept
{
    const std::uintptr_t end = from + what.bytes;
    if (what.branch != branch::none) {
        const std::intptr_t distance =
            what.branch_bytes == 4 ? distance_at<std::int32_t>(end - 4) : distance_at<std::int8_t>(end - 1);
        return write_branch(to.write, what, end + static_cast<std::uintptr_t>(distance));
    }
    std::memcpy(to.write, reinterpret_cast<const void*>(from), what.bytes);
    if (what.distance == 0)
        return what.bytes;
    const auto named = static_cast<std::intptr_t>(end) + distance_at<std::int32_t>(from + what.distance);
    const std::intptr_t distance = named - reinterpret_cast<std::intptr_t>(to.execute + what.bytes);
    const auto near = static_cast<std::int32_t>(distance);
    std::memcpy(to.write + what.distance, &near, sizeof near);
    return near == distance ? what.bytes : 0;
}

/// Replaces eight bytes of one cache line, at any address in it, if they are as expected.
bool replace_word(std::uintptr_t at, std::uint64_t expected, std::uint64_t wanted) noexcept
{
#if defined(__x86_64__)
    bool done = false;
    __asm__ volatile("lock cmpxchgq %[wanted], (%[at])"
                     : "=@ccz"(done), "+a"(expected)
                     : [wanted] "r"(wanted), [at] "r"(at)
                     : "memory");
    return done;
#else
    static_cast<void>(at), static_cast<void>(expected), static_cast<void>(wanted);
    return false; // the constructor has refused it
#endif
}

/// Has every thread see code that has changed. Linux does it, too, when the pages are protected again.
void serialize_all_cores() noexcept
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

} // namespace

entry_jump::entry_jump(const char* name, void* function, void* to)
    : name_(name), entry_(reinterpret_cast<std::uintptr_t>(function))
{
#if !defined(__x86_64__)
    throw error(errc::not_supported, fmt::format("weftio: hooks: calls of {} are seen on x86-64 only", name));
#endif
    std::uint8_t* const target = choose_site();
    write_target(target, to);
    original_ = make_original();
    const std::intptr_t distance = reinterpret_cast<std::intptr_t>(target) - static_cast<std::intptr_t>(site_.at + 5);
    const auto near = static_cast<std::int32_t>(distance);
    jump_[0] = 0xe9;
    std::memcpy(&jump_[1], &near, sizeof near);
}

/// Takes an instruction, and returns the jump's target. One that has all bytes of a jump is the first choice.
std::uint8_t* entry_jump::choose_site()
{
    const std::vector<site> sites = find_sites(entry_);
    std::memcpy(before_.data(), reinterpret_cast<const void*>(entry_), before_.size());
    if (sites.empty())
        throw error(errc::not_supported, fmt::format("weftio: hooks: calls of {} cannot be seen: its first instruction "
                                                     "({:02x}) is none of those that can be moved",
                                                     name_, fmt::join(before_, " ")));
    for (const std::size_t least : {jump_bytes - 1, std::size_t{0}})
        for (const site& each : sites) {
            site_ = each;
            std::memcpy(before_.data(), reinterpret_cast<const void*>(each.at), before_.size());
            if (changeable() < least)
                continue;
            if (std::uint8_t* const target = take_target(changeable()))
                return target;
        }
    refuse_addresses();
}

/// How many bytes of the jump's distance can change.
std::size_t entry_jump::changeable() const noexcept
{
    const std::size_t in_line = line_bytes - site_.at % line_bytes;
    const bool by_waiting = in_line >= 2 && site_.bytes >= jump_bytes;
    return std::min({site_.bytes, jump_bytes, by_waiting ? jump_bytes : in_line}) - 1;
}

/// Takes a place for the jump's target. @param free_bytes  of the distance, from its lowest byte on, may be any
std::uint8_t* entry_jump::take_target(std::size_t free_bytes) const
{
    std::uint32_t kept = 0;
    std::memcpy(&kept, &before_[1], sizeof kept);
    const auto behind = static_cast<std::int64_t>(site_.at + jump_bytes);
    const std::size_t bytes = site_.undo.size() + far_jump_bytes;
    if (free_bytes == 4)
        return take_code({behind - reach, behind + reach, behind, bytes});
    const std::uint32_t any = (1u << 8 * free_bytes) - 1;
    const std::int64_t first = behind + static_cast<std::int32_t>(kept & ~any);
    return take_code({first, first + any, behind, bytes});
}

/// Writes what the jump leads to: it undoes what was done, and jumps to `to`.
void entry_jump::write_target(std::uint8_t* target, void* to) const
{
    std::vector<std::uint8_t> code = site_.undo;
    code.resize(code.size() + far_jump_bytes);
    write_far_jump(&code[site_.undo.size()], reinterpret_cast<std::uintptr_t>(to));
    write(target, code);
}

/// Makes a function that begins with the first instructions, so that they do the same there, and jumps to those behind
/// them: with as few as are needed, if more cannot be moved.
std::uint8_t* entry_jump::make_original() const
{
    const auto entry = static_cast<std::int64_t>(entry_);
    std::uint8_t* const made = take_code({entry - reach, entry + reach, entry, original_bytes});
    if (!made)
        refuse_addresses();
    std::array<std::uint8_t, original_bytes> code{};
    std::size_t at = 0;
    bool goes_on = true;
    std::uintptr_t from = entry_;
    const std::uintptr_t least = site_.at + site_.bytes, end = std::max(entry_ + moved_bytes, least);
    while (goes_on && from < end) {
        const instruction next = decode(reinterpret_cast<const std::uint8_t*>(from));
        const std::size_t written = next.bytes == 0 ? 0 : write_moved({&code[at], made + at}, from, next);
        if (written == 0)
            break;
        from += next.bytes;
        at += written;
        goes_on = !next.is_last;
    }
    if (goes_on && from < least)
        refuse_addresses(); // what an instruction names is too far away
    if (goes_on)
        write_far_jump(&code[at], from);
    write(made, code);
    return made;
}

void entry_jump::write(std::uint8_t* to, std::span<const std::uint8_t> code) const
{
    if (!write_code(to, code))
        throw error(
            errc::permission_denied,
            fmt::format("weftio: hooks: calls of {} cannot be seen: the system gives no executable memory ({}); "
                        "allow it (SELinux: execmem)",
                        name_, std::strerror(errno)));
}

void entry_jump::refuse_addresses() const
{
    throw error(errc::not_supported,
                fmt::format("weftio: hooks: calls of {} cannot be seen: all memory is in use where a jump from its "
                            "first bytes ({:02x}) can lead; try again earlier in the program",
                            name_, fmt::join(before_, " ")));
}

void entry_jump::put()
{
    if (!allow_writing(true))
        throw error(errc::permission_denied,
                    fmt::format("weftio: hooks: calls of {} cannot be seen: its code may not be changed ({}); allow it "
                                "(SELinux: execmod)",
                                name_, std::strerror(errno)));
    const bool done = exchange(before_, jump_);
    allow_writing(false);
    if (!done)
        throw error(errc::in_use, fmt::format("weftio: hooks: calls of {} cannot be seen: another library has changed "
                                              "its first bytes in the same moment; try again",
                                              name_));
    serialize_all_cores();
}

bool entry_jump::remove() noexcept
{
    if (!allow_writing(true))
        return false;
    const bool done = exchange(jump_, before_);
    allow_writing(false);
    serialize_all_cores();
    return done;
}

/// Changes what differs, by one store within a cache line: no thread fetches a part of it. Across two lines, threads
/// that come there meanwhile wait in a jump to itself.
bool entry_jump::exchange(const code_bytes& expected, const code_bytes& wanted) noexcept
{
    const std::size_t in_line = std::min(jump_bytes, line_bytes - site_.at % line_bytes);
    auto* const second_line = reinterpret_cast<std::uint8_t*>(site_.at) + in_line;
    if (std::memcmp(reinterpret_cast<const void*>(site_.at), expected.data(), expected.size()) != 0)
        return false;
    if (std::memcmp(&expected[in_line % jump_bytes], &wanted[in_line % jump_bytes], jump_bytes - in_line) == 0)
        return exchange_in_line(expected, wanted);
    code_bytes waiting = expected;
    waiting[0] = 0xeb;
    waiting[1] = 0xfe;
    if (!exchange_in_line(expected, waiting))
        return false;
    serialize_all_cores();
    std::memcpy(second_line, &wanted[in_line], jump_bytes - in_line);
    serialize_all_cores();
    return exchange_in_line(waiting, wanted);
}

/// Only those bytes that are in the cache line of the first one.
bool entry_jump::exchange_in_line(const code_bytes& expected, const code_bytes& wanted) const noexcept
{
    const std::uintptr_t line_end = site_.at / line_bytes * line_bytes + line_bytes;
    const std::uintptr_t word = std::min(site_.at, line_end - word_bytes);
    const std::size_t at = site_.at - word, count = std::min(jump_bytes, word_bytes - at);
    std::uint64_t seen = 0;
    std::memcpy(&seen, reinterpret_cast<const void*>(word), sizeof seen);
    std::uint64_t changed = seen;
    std::uint8_t* const bytes = reinterpret_cast<std::uint8_t*>(&changed) + at;
    if (std::memcmp(bytes, expected.data(), count) != 0)
        return false;
    std::memcpy(bytes, wanted.data(), count);
    return replace_word(word, seen, changed);
}

/// Also while other threads execute the pages.
bool entry_jump::allow_writing(bool allow) const noexcept
{
    const std::uintptr_t begin = site_.at & ~(page_bytes - 1);
    const std::uintptr_t end = site_.at + std::min(jump_bytes, site_.bytes);
    return mprotect(reinterpret_cast<void*>(begin), end - begin,
                    PROT_READ | PROT_EXEC | (allow ? PROT_WRITE : PROT_NONE)) == 0;
}

} // namespace weftio::hooks
