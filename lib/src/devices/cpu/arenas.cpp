#include "devices/cpu/arenas.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>

#include "devices/cpu/sanitizers.hpp"

namespace weftio::devices::cpu {

namespace {

constexpr std::size_t two_cache_lines = 128; ///< which are fetched together: blocks share none
constexpr std::size_t page = 4096, huge_page = 2 << 20;
constexpr std::size_t most_ahead = 64 << 20; ///< an arena is as large as all earlier ones together, up to this

constexpr std::size_t round_up(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

/// Makes AddressSanitizer report accesses to free bytes.
void hide([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes)
{
#if defined(WEFTIO_ASAN)
    ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

void show([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes)
{
#if defined(WEFTIO_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

void give_back(std::byte* begin, std::size_t bytes)
{
    show(begin, bytes);
    std::free(begin);
}

} // namespace

arenas::~arenas()
{
    for (const arena& each : arenas_)
        give_back(each.begin, each.bytes);
}

arenas::block arenas::allocate(std::size_t bytes, std::size_t alignment) noexcept
try {
    const std::size_t unit = std::clamp(alignment, two_cache_lines, page), whole = round_up(bytes, unit);
    std::scoped_lock lock(mutex_);
    std::size_t offset = 0;
    auto has_room = [&](arena& each) { return find_offset(each, whole, std::max(alignment, unit), offset); };
    auto found = std::find_if(arenas_.begin(), arenas_.end(), has_room);
    if (found == arenas_.end()) {
        if (!add_arena(whole))
            return {};
        found = std::prev(arenas_.end());
        has_room(*found);
    }
    show(found->begin + offset, bytes);
    return {found->begin + offset, {found->begin, found->bytes}};
} catch (const std::bad_alloc&) {
    return {};
}

/// Takes the first free range that is large enough.
bool arenas::find_offset(arena& arena, std::size_t bytes, std::size_t alignment, std::size_t& offset)
{
    for (auto range = arena.free.begin(); range != arena.free.end(); ++range) {
        const auto [begin, size] = *range;
        offset = round_up(begin, alignment);
        if (offset - begin > size || bytes > size - (offset - begin))
            continue;
        arena.used.emplace(offset, bytes);
        if (const std::size_t end = offset + bytes; end != begin + size)
            arena.free.emplace(end, begin + size - end);
        if (offset == begin)
            arena.free.erase(range);
        else
            range->second = offset - begin;
        return true;
    }
    return false;
}

bool arenas::add_arena(std::size_t bytes)
{
    const std::size_t size = round_up(std::max(bytes, std::min(total_bytes_, most_ahead)), huge_page);
    void* memory = nullptr;
    if (posix_memalign(&memory, huge_page, size) != 0)
        return false;
    madvise(memory, size, MADV_HUGEPAGE); // one page fault and TLB entry instead of 512
    arenas_.push_back({.begin = static_cast<std::byte*>(memory), .bytes = size});
    arenas_.back().free.emplace(0, size);
    hide(arenas_.back().begin, size);
    total_bytes_ += size;
    return true;
}

void arenas::release(void* address) noexcept
{
    auto* const at = static_cast<std::byte*>(address);
    std::scoped_lock lock(mutex_);
    auto holds = [&](const arena& each) {
        return !std::less<>()(at, each.begin) && std::less<>()(at, each.begin + each.bytes);
    };
    auto found = std::find_if(arenas_.begin(), arenas_.end(), holds);
    auto used = found->used.extract(static_cast<std::size_t>(at - found->begin)); // node reused for the free range
    hide(at, used.mapped());
    if (found->used.empty()) {
        total_bytes_ -= found->bytes;
        give_back(found->begin, found->bytes);
        arenas_.erase(found);
        return;
    }
    auto range = found->free.insert(std::move(used)).position;
    if (auto behind = std::next(range); behind != found->free.end() && range->first + range->second == behind->first) {
        range->second += behind->second;
        found->free.erase(behind);
    }
    if (range != found->free.begin())
        if (auto before = std::prev(range); before->first + before->second == range->first) {
            before->second += range->second;
            found->free.erase(range);
        }
}

} // namespace weftio::devices::cpu
