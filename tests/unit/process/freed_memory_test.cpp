// Registered memory that is freed where a lock or an engine could be in the way, and programs that end meanwhile. Each
// scene is played with both ways in which a registration cache learns that memory is gone.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/signals.hpp"
#include "registrations/cache.hpp"
#include "scene.hpp"
#include "software_nic.hpp"
#include "unit/registrations/writing_peer.hpp"
#include "weftio/error.hpp"
#include "weftio/progress.hpp"
#include "weftio/registration_cache.hpp"

namespace {

using namespace std::chrono_literals;
using weftio::registration, weftio::registration_cache, weftio::registration_cache_options,
    weftio::registration_staleness;
using weftio::test::ends_well, weftio::test::eventually, weftio::test::patience, weftio::test::peer_writes,
    weftio::test::peers, weftio::test::play, weftio::test::scene, weftio::test::scene_argument,
    weftio::test::writing_peer;

constexpr std::size_t bytes = 65536;

registration_staleness staleness()
{
    return scene_argument() == "userfault" ? registration_staleness::userfault : registration_staleness::close_first;
}
registration_cache_options options(std::function<void(std::uint32_t)> on_revoked = {})
{
    return {.staleness = staleness(), .on_revoked = std::move(on_revoked)};
}
bool watched()
{
    return staleness() == registration_staleness::userfault;
}

std::byte* mapped()
{
    return static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
/// As the program has promised: with close_first, the cache hears of it before.
void unmap(registration_cache* cache, std::byte* at)
{
    if (cache && !watched())
        cache->revoke(at, bytes);
    munmap(at, bytes);
}

const scene freed_in_a_completion_callback("freed_in_a_completion_callback", [] {
    peers all;
    registration_cache cache(all.at, options());
    std::byte* const refused = mapped();
    std::byte* const in_use = mapped();
    const registration first = cache.get(refused, bytes, peer_writes);
    std::optional<registration> second = cache.get(in_use, bytes, peer_writes);
    writing_peer peer(all), other(all);
    weftio::progress_engine progress;
    bool freed = false;
    progress.attach(peer.pair(), {.on_error = [&](const weftio::send_failure&) {
                        unmap(&cache, in_use);
                        second.reset();
                        freed = true;
                    }});
    for (int each = 0; each < 16; ++each)
        other.write(in_use, second->rkey());
    cache.revoke(refused, bytes);
    peer.write(refused, first.rkey());
    return eventually([&] {
        progress.progress();
        return freed;
    })
               ? 3
               : 1;
});

/// On the thread of the engine, in a turn. With close_first the key dies before: a callback must not call Weftio.
const scene freed_in_a_completion_event("freed_in_a_completion_event", [] {
    peers all;
    registration_cache cache(all.at, options());
    std::byte* const memory = mapped();
    const registration held = cache.get(memory, bytes, peer_writes);
    std::atomic<bool> freed{false};
    writing_peer peer(all, {.entries = 256, .on_event = [&] {
                                munmap(memory, bytes);
                                freed = true;
                            }});
    peer.completions().arm();
    if (!watched())
        cache.revoke(memory, bytes);
    for (int each = 0; each < 16; ++each)
        peer.write(memory, held.rkey());
    return eventually([&] { return freed && cache.counters().revocations == 1; }) ? 3 : 1;
});

const scene freed_when_told("freed_when_told", [] {
    const weftio::port null = weftio::port::open("null");
    std::byte* const memory[] = {mapped(), mapped(), mapped()};
    std::vector<registration> held;
    std::atomic<unsigned> told{0};
    std::optional<registration_cache> cache;
    cache.emplace(null, options([&](std::uint32_t) {
                      const unsigned next = ++told;
                      held[next - 1] = {};
                      if (next == 3)
                          return;
                      unmap(&*cache, memory[next]);
                      (void)cache->get(memory, sizeof memory); // watches them, or evicts
                  }));
    for (std::byte* const each : memory)
        held.push_back(cache->get(each, bytes, peer_writes));
    told = 0; // what sanitizers see of the order: the callback reads it, and comes by an event of Linux
    unmap(&*cache, memory[0]);
    return eventually([&] { return told == 3; }) ? 3 : 1;
});

/// The thread that frees has the lock of an engine: it is in a turn, or takes its place between two.
int freed_in_an_engine(weftio::engine_mode mode)
{
    const weftio::port null = weftio::port::open("null", {.mode = mode});
    registration_cache cache(null, options());
    std::byte* const memory = mapped();
    const registration held = cache.get(memory, bytes, peer_writes);
    weftio::software_nic(null).engines().between_all_turns([&] {
        munmap(memory, bytes);
        cache.invalidate(memory, bytes);
    });
    if (!watched())
        cache.revoke(memory, bytes);
    return eventually([&] { return cache.counters().revocations == 1; }) ? 3 : 1;
}
const scene freed_in_an_inline_engine("freed_in_an_inline_engine",
                                      [] { return freed_in_an_engine(weftio::engine_mode::inline_worker); });
const scene freed_in_an_engines_thread("freed_in_an_engines_thread",
                                       [] { return freed_in_an_engine(weftio::engine_mode::thread); });

const scene freed_between_turns("freed_between_turns", [] {
    const weftio::port null = weftio::port::open("null", {.mode = weftio::engine_mode::inline_worker});
    registration_cache cache(null, options());
    std::atomic<unsigned> done{0};
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 3; ++thread)
        threads.emplace_back([&, turns = thread == 0] {
            for (int round = 0; round < 300; ++round) {
                std::byte* const memory = mapped();
                const registration held = cache.get(memory, bytes, peer_writes);
                if (turns)
                    weftio::software_nic(null).turn();
                unmap(&cache, memory);
            }
            ++done;
        });
    return eventually([&] { return done == 3; }) ? 3 : 1;
});

/// As fork(), but the child does not live longer than a scene that hangs.
pid_t fork_with_me()
{
    const pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

const scene freed_after_the_cache("freed_after_the_cache", [] {
    const weftio::port null = weftio::port::open("null");
    std::optional<registration_cache> cache(std::in_place, null, options());
    std::byte* const memory = mapped();
    const registration held = cache->get(memory, bytes, peer_writes), pages = cache->get(memory, bytes);
    cache.reset();
    munmap(memory, bytes); // nobody reads events any more
    return 3;
});

const scene freed_while_a_child_lives("freed_while_a_child_lives", [] {
    const weftio::port null = weftio::port::open("null");
    std::optional<registration_cache> cache(std::in_place, null, options());
    std::byte* const memory = mapped();
    (void)cache->get(memory, bytes);
    const pid_t child = fork_with_me();
    if (child == 0) {
        pause();
        _exit(1);
    }
    cache.reset();
    munmap(memory, bytes); // the child has a copy of all descriptors
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return 3;
});

/// Globals, destroyed in reverse order: `frees_last` frees when the cache is gone, and handles outlive it.
std::byte* freed_last = nullptr;
std::atomic<bool> main_has_ended{false};
struct frees {
    ~frees()
    {
        if (!freed_last)
            return;
        main_has_ended = true;
        munmap(freed_last, bytes);
        std::this_thread::sleep_for(20ms); // for who could call back
    }
} frees_last;
registration kept_handle, kept_pages;
std::optional<registration_cache> kept_cache;
std::byte* freed_at_exit_first = nullptr;

const scene freed_at_exit("freed_at_exit", [] {
    const weftio::port null = weftio::port::open("null");
    kept_cache.emplace(null, options());
    freed_last = mapped();
    freed_at_exit_first = mapped();
    kept_handle = kept_cache->get(freed_last, bytes, peer_writes);
    kept_pages = kept_cache->get(freed_at_exit_first, bytes);
    std::atexit([] { unmap(&*kept_cache, freed_at_exit_first); });
    return 3;
});

const scene freed_under_a_cache_that_is_left("freed_under_a_cache_that_is_left", [] {
    const weftio::port null = weftio::port::open("null");
    static auto& left = *new registration_cache(null, options([](std::uint32_t) {
                                                    if (main_has_ended)
                                                        static_cast<void>(!write(STDOUT_FILENO, "called", 6));
                                                }));
    freed_last = mapped();
    static auto& held = *new registration(left.get(freed_last, bytes, peer_writes));
    return held ? 3 : 1;
});

/// Threads that get, revoke, and free what they have registered, as long as the process lives.
void keep_busy(registration_cache& cache)
{
    const weftio::core::signals_blocked for_these_threads;
    for (unsigned thread = 0; thread < 3; ++thread)
        std::thread([&cache, thread] {
            std::mt19937 random(thread);
            try {
                for (;;) {
                    std::byte* const memory = mapped();
                    const registration held = cache.get(memory, 1 + random() % bytes, peer_writes);
                    if (random() % 2 == 0)
                        cache.revoke(memory, 1);
                    if (random() % 2 == 0)
                        (void)cache.get(memory, bytes);
                    unmap(&cache, memory);
                }
            } catch (const weftio::error&) { // the process ends
                pause();
            }
        }).detach();
}

/// Not destroyed: its threads use it to the last.
registration_cache& cache_in_use()
{
    static auto& made = *new registration_cache(weftio::port::open("null"), options([](std::uint32_t) {}));
    return made;
}

const scene ends_meanwhile("ends_meanwhile", [] {
    keep_busy(cache_in_use());
    std::this_thread::sleep_for(20ms);
    return 3;
});

template <int signal, void end(int)>
int ended_by()
{
    std::signal(signal, [](int) { end(3); });
    keep_busy(cache_in_use());
    std::this_thread::sleep_for(20ms);
    std::raise(signal);
    return 1;
}
const scene exit_on_sigterm("exit_on_sigterm", [] { return ended_by<SIGTERM, std::exit>(); });
const scene quick_exit_on_sigterm("quick_exit_on_sigterm", [] { return ended_by<SIGTERM, _exit>(); });
const scene exit_on_abort("exit_on_abort", [] {
    kept_cache.emplace(weftio::port::open("null"), options([](std::uint32_t) { std::abort(); }));
    std::signal(SIGABRT, [](int) { std::exit(3); });
    std::byte* const memory = mapped();
    kept_handle = kept_cache->get(memory, bytes, peer_writes);
    unmap(&*kept_cache, memory); // calls back here, or on a thread of the cache
    std::this_thread::sleep_for(patience);
    return 1;
});

const scene exit_under_the_lock("exit_under_the_lock", [] {
    static auto& core = *new weftio::registrations::cache(options());
    std::signal(SIGTERM, [](int) { std::exit(3); });
    std::atexit([] { core.close(); });
    core.register_with([](weftio::memory_region&) { std::raise(SIGTERM); });
    const auto begin = reinterpret_cast<std::uintptr_t>(mapped());
    core.get({begin, begin + bytes}, weftio::access::local_write);
    return 1;
});

const scene children_that_free("children_that_free", [] {
    registration_cache& cache = cache_in_use();
    constexpr std::size_t large = 40 << 20; // beyond the largest mmap threshold
    void* const memory = std::malloc(large);
    kept_handle = cache.get(memory, large, peer_writes);
    keep_busy(cache);
    for (int each = 0; each < 20; ++each) {
        const pid_t child = fork_with_me();
        if (child == 0) {
            std::free(memory);
            kept_handle = {};
            if (each % 2 == 0)
                execl("/bin/true", "true", nullptr);
            delete &cache;
            std::exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 3;
});

class FreedMemory : public testing::TestWithParam<const char*> {
 protected:
    void SetUp() override
    {
        try {
            if (GetParam() == std::string("userfault"))
                registration_cache({.staleness = registration_staleness::userfault});
        } catch (const weftio::error& refused) {
            GTEST_SKIP() << refused.what();
        }
    }
    static void all_end_well(std::initializer_list<const char*> scenes, int times)
    {
        for (const char* const each : scenes)
            ends_well(each, GetParam(), 3, times);
    }
};
INSTANTIATE_TEST_SUITE_P(Monitors, FreedMemory, testing::Values("close_first", "userfault"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(FreedMemory, InCallbacks)
{
    all_end_well({"freed_in_a_completion_callback", "freed_when_told"}, 3);
}

TEST_P(FreedMemory, InEngines)
{
    all_end_well({"freed_in_a_completion_event", "freed_in_an_inline_engine", "freed_in_an_engines_thread",
                  "freed_between_turns"},
                 2);
}

TEST_P(FreedMemory, AfterItsCache)
{
    all_end_well({"freed_after_the_cache", "freed_while_a_child_lives"}, 1);
}

TEST_P(FreedMemory, AtTheEndOfTheProcess)
{
    all_end_well({"freed_at_exit", "freed_under_a_cache_that_is_left"}, 2);
    all_end_well({"ends_meanwhile"}, 6);
}

TEST_P(FreedMemory, WhenASignalEndsTheProcess)
{
    all_end_well({"exit_on_sigterm", "quick_exit_on_sigterm"}, 4);
    all_end_well({"exit_on_abort", "exit_under_the_lock"}, 2);
}

TEST_P(FreedMemory, InChildren)
{
    all_end_well({"children_that_free"}, 2);
}

} // namespace
