#include "stale.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
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
    prctl(PR_GET_NAME, here.name);
    if (with_stacks)
        here.frame_count = backtrace(here.frames.data(), static_cast<int>(here.frames.size()));
    return here;
}

bool is_mapped(const void* at) noexcept
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
        if (behind == 0 || gone.begin > behind || first > gone.end)
            continue;
        if (gone.end > behind)
            part.end.store(gone.end, std::memory_order_release);
        if (gone.begin < first)
            part.begin.store(gone.begin, std::memory_order_release);
        if (part.call.load(std::memory_order_relaxed) == 0)
            part.call.store(call, std::memory_order_relaxed);
        return true;
    }
    unsigned mine = count;
    do
        if (mine == most_parts)
            return false;
    while (!part_count.compare_exchange_weak(mine, mine + 1));
    parts[mine].begin.store(gone.begin, std::memory_order_relaxed);
    parts[mine].call.store(call, std::memory_order_relaxed);
    parts[mine].end.store(gone.end, std::memory_order_release);
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
                  fmt::format("weftio-run: --stale: the system refuses userfaultfd with events ({}), so of what is "
                              "unmapped only the program's own calls are seen (docs/verbs.md#stale-registrations)",
                              std::strerror(-opened)));
    }
    with_stacks_ = variable_is("WEFTIO_LOG", "debug");
    if (void* frame = nullptr; with_stacks_)
        backtrace(&frame, 1); // loads what it needs
    keys().set_judge(&stale_registrations::judge);
    mode_ = mode;
    if (opened < 0)
        return;
    userfault_ = out_of_the_way(descriptor(opened)).release();
    const core::signals_blocked blocked;
    // A handler of the program may unmap, and would wait for this thread: it runs none, also not those of profilers.
    sigset_t profiling;
    sigemptyset(&profiling);
    sigaddset(&profiling, SIGPROF);
    sigaddset(&profiling, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &profiling, nullptr);
    std::thread([this] { read_events(); }).detach();
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
    try {
        watched_.emplace(pages.begin, made);
    } catch (...) {
        free_.push_back(made->number);
        throw;
    }
    made->key = key;
    made->owner = owner;
    made->start = start;
    made->length = length;
    made->maker = maker;
    for (stale_part& each : made->parts)
        each.end.store(0);
    made->part_count.store(0);
    made->told.store(false);
    made->by_events.store(true);
    longest_ = std::max(longest_, pages.bytes());
    made->end.store(pages.end);
    made->begin.store(pages.begin);
    if (userfault_ < 0 || registrations::watch_pages(userfault_, pages) != 0)
        lose_events(*made);
    return made->number;
}

/// @pre the mutex is held
void stale_registrations::lose_events(stale_record& of) noexcept
{
    of.by_events.store(false);
    without_events_.fetch_add(1);
}

/// @pre the mutex is held
bool stale_registrations::is_shared_with_others(const registrations::range& pages) const noexcept
{
    const std::uintptr_t first = pages.begin < longest_ ? 0 : pages.begin - longest_;
    for (auto each = watched_.lower_bound(first); each != watched_.end() && each->first < pages.end; ++each)
        if (each->second->end.load() > pages.begin)
            return true;
    return false;
}

/// @pre the mutex is held
void stale_registrations::remove(const stale_record& one) noexcept
{
    const auto [first, behind] = watched_.equal_range(pages_of(one.start, one.length).begin);
    for (auto each = first; each != behind; ++each)
        if (each->second == &one) {
            watched_.erase(each);
            return;
        }
}

/// Of those that are watched.
template <class Each>
void stale_registrations::for_each(Each&& each) const noexcept
{
    const std::uint32_t made = made_.load(std::memory_order_acquire);
    for (std::uint32_t number = 1; number <= made; ++number) {
        stale_record& one = *find(number);
        const std::uintptr_t begin = one.begin.load(), end = one.end.load();
        if (begin != 0)
            each(one, registrations::range{begin, end});
    }
}

bool stale_registrations::give_up_events(const registrations::range& pages) noexcept
{
    bool any = false;
    const std::scoped_lock lock(mutex_);
    for_each([&](stale_record& one, const registrations::range& watched) {
        if (!one.by_events.load() || !pages.overlaps(watched))
            return;
        registrations::unwatch_pages(userfault_, watched);
        lose_events(one);
        any = true;
    });
    return any;
}

void stale_registrations::stop(std::uint32_t number) noexcept
{
    stale_record& one = *find(number);
    if (one.begin.load(std::memory_order_relaxed) == 0)
        return;
    const std::scoped_lock lock(mutex_);
    one.begin.store(0);
    remove(one);
    while (marking_.load() != 0)
        std::this_thread::yield();
    if (!one.by_events.load())
        without_events_.fetch_sub(1);
    else if (one.part_count.load() == 0 &&
             !is_shared_with_others(pages_of(one.start, one.length))) // others keep theirs, or pay for an event
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
    for_each([&](stale_record& each, const registrations::range& pages) {
        if (gone.overlaps(pages))
            mark_one(each, {std::max(gone.begin, pages.begin), std::min(gone.end, pages.end)}, call);
    });
    marking_.fetch_sub(1);
}

/// Marks what is not mapped at this moment.
void stale_registrations::mark_unmapped(const registrations::range& within, std::uint32_t call) noexcept
{
    marking_.fetch_add(1);
    for_each([&](stale_record& each, const registrations::range& pages) {
        const registrations::range part{std::max(within.begin, pages.begin), pages.end};
        if (part.overlaps(within) && !is_mapped(reinterpret_cast<const void*>(part.begin)))
            mark_one(each, part, call);
    });
    marking_.fetch_sub(1);
}

/// @pre marking_ counts the caller
void stale_registrations::mark_one(stale_record& one, const registrations::range& gone, std::uint32_t call) noexcept
{
    if (one.add_part(gone, call))
        keys().mark_stale(one.key, one.number);
}

/// Not of registrations that came while the call was under way: another thread may have mapped their pages since.
void stale_registrations::mark_heard(const stale_call& heard, std::uint64_t since_ns) noexcept
{
    const std::uint32_t call = calls_.keep_own(heard);
    marking_.fetch_add(1);
    for_each([&](stale_record& each, const registrations::range& pages) {
        if (each.by_events.load() || each.maker.when_ns >= since_ns)
            return;
        if (heard.number == SYS_shmdt) {
            if (heard.arguments[0] <= pages.begin && !is_mapped(reinterpret_cast<const void*>(pages.begin)))
                mark_one(each, pages, call);
            return; // it does not say how many bytes
        }
        for (const registrations::range& gone : {heard.bytes(), heard.also()})
            if (gone.overlaps(pages))
                mark_one(each, {std::max(gone.begin, pages.begin), std::min(gone.end, pages.end)}, call);
    });
    marking_.fetch_sub(1);
}

void stale_registrations::hear(long number, const unsigned long* arguments, std::uint64_t since_ns) noexcept
{
    stale_call heard;
    heard.number = number;
    std::copy_n(arguments, heard.arguments.size(), heard.arguments.begin());
    if (!heard.drops())
        return;
    heard.thread = static_cast<int>(gettid());
    heard.when_ns = stale_now_ns();
    prctl(PR_GET_NAME, heard.name);
    if (with_stacks_) {
        void* frames[32];
        heard.words = static_cast<unsigned>(backtrace(frames, 32));
        for (unsigned each = 0; each != heard.words; ++each)
            heard.stack[each] = reinterpret_cast<std::uint64_t>(frames[each]);
    }
    mark_heard(heard, since_ns);
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
        const std::uintptr_t first_gone = std::max(each.gone_begin, reinterpret_cast<std::uintptr_t>(of.at));
        each.is_mapped = is_mapped(reinterpret_cast<const void*>(first_gone));
        each.now.store(stale_report::ready, std::memory_order_release);
        waiting_.fetch_add(1);
        return;
    }
    about.told.store(false); // no room: the next access is told
}

} // namespace weftio::verbs
