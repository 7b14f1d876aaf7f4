#include "stale.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "channel.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "core/undying.hpp"
#include "registrations/userfault.hpp"

namespace weftio::verbs {

namespace {

constexpr std::uintptr_t page_bytes = 4096;

keys::key_table& keys()
{
    return core::undying<keys::key_table>();
}

registrations::range pages_of(std::uint64_t start, std::uint64_t length) noexcept
{
    return {start & ~(page_bytes - 1), (start + length + page_bytes - 1) & ~(page_bytes - 1)};
}

bool variable_is(const char* name, std::string_view value) noexcept
{
    const char* const has = std::getenv(name);
    return has != nullptr && value == has;
}

/// valgrind runs one thread at a time, and lets none run during munmap().
bool runs_under_valgrind() noexcept
{
    const char* const preloaded = std::getenv("LD_PRELOAD");
    return preloaded != nullptr && std::strstr(preloaded, "vgpreload") != nullptr;
}

stale_maker maker_here(bool with_stacks) noexcept
{
    stale_maker here;
    here.thread = static_cast<int>(gettid());
    here.when_ns = stale_now_ns();
    read_thread_name(here.thread, here.name);
    if (with_stacks)
        here.frame_count = backtrace(here.frames.data(), static_cast<int>(here.frames.size()));
    return here;
}

bool is_mapped(const std::byte* at) noexcept
{
    unsigned char resident = 0;
    auto* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(at) & ~(page_bytes - 1));
    return mincore(page, page_bytes, &resident) == 0;
}

} // namespace

const stale_part* stale_record::find(std::uintptr_t first, std::uint64_t bytes) const noexcept
{
    const unsigned count = part_count.load(std::memory_order_acquire);
    for (unsigned each = 0; each != count; ++each)
        if (first < parts[each].end.load(std::memory_order_acquire) &&
            first + bytes > parts[each].begin.load(std::memory_order_acquire))
            return &parts[each];
    return nullptr;
}

bool stale_record::add_part(const registrations::range& gone, std::uint32_t call) noexcept
{
    const unsigned count = part_count.load(std::memory_order_relaxed);
    for (unsigned each = 0; each != count; ++each) {
        stale_part& part = parts[each];
        const std::uintptr_t first = part.begin.load(std::memory_order_relaxed),
                             behind = part.end.load(std::memory_order_relaxed);
        if (gone.begin > behind || first > gone.end)
            continue;
        if (gone.end > behind)
            part.end.store(gone.end, std::memory_order_release);
        if (gone.begin < first)
            part.begin.store(gone.begin, std::memory_order_release);
        if (part.call.load(std::memory_order_relaxed) == 0)
            part.call.store(call, std::memory_order_relaxed);
        return true;
    }
    if (count == most_parts)
        return false;
    parts[count].begin.store(gone.begin, std::memory_order_relaxed);
    parts[count].end.store(gone.end, std::memory_order_relaxed);
    parts[count].call.store(call, std::memory_order_relaxed);
    part_count.store(count + 1, std::memory_order_release);
    return true;
}

stale_registrations& stale()
{
    return core::undying<stale_registrations>();
}

void stale_registrations::start(stale_mode mode, bool asked_for)
{
    if (mode == stale_mode::off)
        return;
    const int opened = runs_under_valgrind() ? -ENOSYS : registrations::open_userfault();
    if (opened < 0) {
        core::log(asked_for ? log_level::warning : log_level::info,
                  fmt::format("weftio-run: --stale: the system refuses userfaultfd with events ({}), so stale "
                              "registrations are not told (docs/verbs.md#stale-registrations)",
                              std::strerror(-opened)));
        return;
    }
    userfault_ = out_of_the_way(descriptor(opened)).release();
    with_stacks_ = variable_is("WEFTIO_LOG", "debug");
    if (void* frame = nullptr; with_stacks_)
        backtrace(&frame, 1); // loads what it needs
    keys().set_judge(&stale_registrations::judge);
    const core::signals_blocked blocked;
    std::thread([this] { read_events(); }).detach();
    mode_ = mode;
}

stale_record* stale_registrations::find(std::uint64_t number) const noexcept
{
    if (number == 0 || number > made_.load(std::memory_order_acquire))
        return nullptr;
    stale_record* const chunk = chunks_[(number - 1) / chunk_records].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &chunk[(number - 1) % chunk_records];
}

/// @pre the mutex is held  @return nullptr: there are too many
stale_record* stale_registrations::take()
{
    if (!free_.empty()) {
        stale_record* const again = find(free_.back());
        free_.pop_back();
        return again;
    }
    const std::uint32_t made = made_.load(std::memory_order_relaxed);
    if (made == chunk_records * most_chunks)
        return nullptr;
    std::atomic<stale_record*>& chunk = chunks_[made / chunk_records];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
        free_.reserve(made + chunk_records); // forget() does not allocate
        chunk.store(new stale_record[chunk_records], std::memory_order_release);
    }
    made_.store(made + 1, std::memory_order_release);
    stale_record* const fresh = find(made + 1);
    fresh->number = made + 1;
    return fresh;
}

std::uint32_t stale_registrations::watch(std::uint32_t key, std::uint64_t start, std::uint64_t length,
                                         const void* owner)
{
    const registrations::range pages = pages_of(start, length);
    const stale_maker maker = maker_here(with_stacks_);
    const std::scoped_lock lock(mutex_);
    stale_record* const made = length == 0 ? nullptr : take();
    if (made == nullptr)
        return 0;
    made->key = key;
    made->owner = owner;
    made->start = start;
    made->length = length;
    made->maker = maker;
    made->part_count.store(0);
    made->told.store(false);
    made->end.store(pages.end);
    made->begin.store(pages.begin);
    if (registrations::watch_pages(userfault_, pages) == 0)
        return made->number;
    made->begin.store(0); // nothing has been told of it, so nobody looks at it
    free_.push_back(made->number);
    return 0;
}

/// @pre the mutex is held
bool stale_registrations::is_shared_with_others(const stale_record& one) const noexcept
{
    const registrations::range pages = pages_of(one.start, one.length);
    const std::uint32_t made = made_.load(std::memory_order_relaxed);
    for (std::uint32_t number = 1; number <= made; ++number) {
        const stale_record& other = *find(number);
        const std::uintptr_t begin = other.begin.load(std::memory_order_relaxed);
        if (begin != 0 && pages.overlaps({begin, other.end.load(std::memory_order_relaxed)}))
            return true;
    }
    return false;
}

void stale_registrations::stop(std::uint32_t number) noexcept
{
    stale_record& one = *find(number);
    if (one.begin.load(std::memory_order_relaxed) == 0)
        return;
    const std::scoped_lock lock(mutex_);
    one.begin.store(0);
    const std::uint64_t looks = marking_.load();
    while ((looks & 1) != 0 && marking_.load() == looks)
        std::this_thread::yield();
    // Pages of two registrations stay watched, which costs an event only.
    if (one.part_count.load() == 0 && !is_shared_with_others(one))
        registrations::unwatch_pages(userfault_, pages_of(one.start, one.length));
}

void stale_registrations::forget(std::uint32_t number) noexcept
{
    const std::scoped_lock lock(mutex_);
    free_.push_back(number);
}

void stale_registrations::mark(const registrations::range& gone, std::uint32_t call) noexcept
{
    marking_.fetch_add(1);
    const std::uint32_t made = made_.load(std::memory_order_acquire);
    for (std::uint32_t number = 1; number <= made; ++number) {
        stale_record& each = *find(number);
        const std::uintptr_t begin = each.begin.load(), end = each.end.load();
        if (begin == 0 || !gone.overlaps({begin, end}))
            continue;
        if (each.add_part({std::max(gone.begin, begin), std::min(gone.end, end)}, call))
            keys().mark_stale(each.key, number);
    }
    marking_.fetch_add(1);
}

refusal stale_registrations::judge(const keys::stale_access& of) noexcept
{
    return stale().judge_one(of);
}

refusal stale_registrations::judge_one(const keys::stale_access& of) noexcept
{
    stale_record* const about = find(of.mark);
    if (about == nullptr || of.bytes == 0 || about->begin.load() == 0)
        return refusal::none;
    const stale_part* const part = about->find(reinterpret_cast<std::uintptr_t>(of.at), of.bytes);
    if (part == nullptr)
        return refusal::none;
    if (!about->told.exchange(true))
        report(of, *about, *part);
    return mode_ == stale_mode::fail ? refusal::memory_gone : refusal::none;
}

void stale_registrations::report(const keys::stale_access& of, stale_record& about, const stale_part& part) noexcept
{
    for (stale_report& each : reports_) {
        auto state = stale_report::free;
        if (!each.now.compare_exchange_strong(state, stale_report::being_written))
            continue;
        each.access = of;
        each.owner = about.owner;
        each.start = about.start;
        each.length = about.length;
        each.when_ns = stale_now_ns();
        each.gone_begin = part.begin.load();
        each.gone_end = part.end.load();
        each.maker = about.maker;
        each.by = calls_.find(part.call.load());
        each.is_mapped = is_mapped(of.at);
        each.now.store(stale_report::ready, std::memory_order_release);
        waiting_.fetch_add(1);
        return;
    }
    about.told.store(false); // no room: the next access is told
}

} // namespace weftio::verbs
