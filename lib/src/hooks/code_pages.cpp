#include "hooks/code_pages.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "core/undying.hpp"

namespace weftio::hooks {

namespace {

constexpr std::int64_t page = 4096, lowest = 1 << 20, highest = 0x7fff'ffff'f000;

/// Bytes [begin, end).
struct range {
    std::int64_t begin, end;
};

struct code_pages {
    std::mutex mutex;
    std::vector<range> mapped, used; ///< pages, and bytes in them
};

/// What the stack of the program may grow by.
std::int64_t room_of_stack()
{
    constexpr std::int64_t most = std::int64_t{1} << 30, guard = 2 << 20;
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(most))
        return most;
    return static_cast<std::int64_t>(limit.rlim_cur) + guard;
}

/// Adds what is mapped, but for our own pages.
void add_foreign(range mapping, const code_pages& ours, std::vector<range>& occupied)
{
    for (const range& own : ours.mapped) // by address
        if (own.begin < mapping.end && mapping.begin < own.end) {
            if (mapping.begin < own.begin)
                occupied.push_back({mapping.begin, own.begin});
            mapping.begin = own.end;
        }
    if (mapping.begin < mapping.end)
        occupied.push_back(mapping);
}

/// All addresses in use, in order. Nothing: the system does not say.
std::vector<range> find_occupied(const code_pages& ours)
{
    std::vector<range> occupied = ours.used;
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    if (!maps)
        return {};
    char line[4608];
    while (std::fgets(line, sizeof line, maps.get())) {
        range mapping{};
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64, &mapping.begin, &mapping.end) != 2 || mapping.end < 0)
            continue; // above the addresses of programs
        if (std::string_view(line).find("[stack]") != std::string_view::npos)
            mapping.begin -= room_of_stack();
        add_foreign(mapping, ours, occupied);
    }
    std::ranges::sort(occupied, {}, &range::begin);
    return occupied;
}

std::optional<std::int64_t> find_place(const place_request& wanted, const code_pages& ours)
{
    std::optional<std::int64_t> found;
    const auto away = [&](std::int64_t at) { return std::abs(at - wanted.close_to); };
    const auto add_gap = [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = std::max(wanted.first, begin);
        const std::int64_t last = std::min(wanted.last, end - static_cast<std::int64_t>(wanted.bytes));
        if (first > last)
            return;
        const std::int64_t at = std::clamp(wanted.close_to, first, last);
        if (!found || away(at) < away(*found))
            found = at;
    };
    std::int64_t free_from = lowest;
    for (const range& each : find_occupied(ours)) {
        add_gap(free_from, each.begin);
        free_from = std::max(free_from, each.end);
    }
    if (free_from != lowest)
        add_gap(free_from, highest);
    return found;
}

/// Maps those pages of the range that are not ours. Returns false if somebody has mapped one meanwhile.
bool map_pages(const range& bytes, code_pages& ours)
{
    for (std::int64_t at = bytes.begin / page * page; at < bytes.end; at += page) {
        if (std::ranges::any_of(ours.mapped, [&](const range& each) { return each.begin == at; }))
            continue;
        void* const mapped = mmap(reinterpret_cast<void*>(at), page, PROT_READ,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped != reinterpret_cast<void*>(at)) {
            if (mapped != MAP_FAILED) // Linux before 4.17 takes the address as a wish
                munmap(mapped, page);
            return false;
        }
        ours.mapped.push_back({at, at + page});
        std::ranges::sort(ours.mapped, {}, &range::begin);
    }
    return true;
}

} // namespace

std::uint8_t* take_code(const place_request& wanted)
{
    auto& ours = core::undying<code_pages>();
    const std::scoped_lock lock(ours.mutex);
    constexpr int attempts = 16; // other threads map memory meanwhile
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const std::optional<std::int64_t> at = find_place(wanted, ours);
        if (!at)
            return nullptr;
        const range bytes{*at, *at + static_cast<std::int64_t>(wanted.bytes)};
        if (map_pages(bytes, ours)) {
            ours.used.push_back(bytes);
            return reinterpret_cast<std::uint8_t*>(*at);
        }
    }
    return nullptr;
}

bool write_code(std::uint8_t* to, std::span<const std::uint8_t> code) noexcept
{
    const std::scoped_lock lock(core::undying<code_pages>().mutex);
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(to) & ~std::uintptr_t{page - 1};
    const std::size_t bytes = reinterpret_cast<std::uintptr_t>(to + code.size()) - begin;
    auto* const pages = reinterpret_cast<void*>(begin);
    if (mprotect(pages, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    std::memcpy(to, code.data(), code.size());
    return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0;
}

} // namespace weftio::hooks
