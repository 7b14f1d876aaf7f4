// Faults of guarded calls end the call; all others go where the application has said.
#include <array>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/guarded.hpp"
#include "fleeting_memory.hpp"
#include "sanitized.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t page = 4096;

/// Two pages, the second of which is not there.
class half_gone {
 public:
    half_gone()
        : at_(static_cast<std::uint8_t*>(
              mmap(lonely_address(), 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        std::memset(at_, 7, page);
        munmap(hole(), page);
    }
    half_gone(const half_gone&) = delete;
    half_gone& operator=(const half_gone&) = delete;
    ~half_gone() { munmap(at_, page); }
    std::uint8_t* hole() const { return at_ + page; }

 private:
    std::uint8_t* const at_;
};

/// What the application's handler is called with, and what it has replaced.
struct {
    volatile int calls = 0;
    void* volatile address = nullptr;
    struct sigaction old {};
    sigjmp_buf place;
} seen;

constexpr int of_handler = 42;

void exits(int, siginfo_t* info, void*)
{
    _exit(info->si_addr == seen.address ? of_handler : 1);
}
void jumps(int, siginfo_t*, void*)
{
    seen.calls = seen.calls + 1;
    siglongjmp(seen.place, 1);
}
/// Calls what it has replaced, as sigaction() has told.
void passes_on(int signal, siginfo_t* info, void* context)
{
    seen.calls = seen.calls + 1;
    if (seen.calls > 10)
        _exit(1); // round and round
    if ((seen.old.sa_flags & SA_SIGINFO) != 0)
        return seen.old.sa_sigaction(signal, info, context);
    _exit(seen.old.sa_handler == SIG_DFL ? of_handler : 2);
}

void set_handler(void (*handler)(int, siginfo_t*, void*), int flags = 0, int signal = SIGSEGV)
{
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, &seen.old);
}
void set_plain(void (*handler)(int), int signal = SIGSEGV)
{
    struct sigaction action {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
}

/// A bug of the application's.
[[gnu::noinline]] void real_fault(const half_gone& memory)
{
    seen.address = memory.hole();
    *const_cast<volatile std::uint8_t*>(memory.hole()) = 1;
}
bool copy_fails(const half_gone& memory)
{
    std::array<std::uint8_t, 200> to{};
    return !core::guarded_copy(to.data(), memory.hole() - 100, to.size());
}
/// In a death test: ends the process when `condition` is false.
void require(bool condition)
{
    if (!condition)
        _exit(3);
}

const auto by_handler = testing::ExitedWithCode(of_handler);
#if defined(WEFTIO_TEST_SANITIZED)
/// AddressSanitizer's handler is there first, and reports.
bool by_fault(int status)
{
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 3);
}
#else
const auto by_fault = testing::KilledBySignal(SIGSEGV);
#endif

class Guarded : public testing::Test {
 protected:
    Guarded() { core::guard_memory(); }
    half_gone memory;
};
class GuardedDeathTest : public testing::Test {
 protected:
    half_gone memory;
};

TEST_F(Guarded, CopiesWhatMemmoveDoes)
{
    std::minstd_rand random(3);
    std::vector<std::uint8_t> bytes(9000), model(bytes);
    for (unsigned round = 0; round < 2000; ++round) {
        const std::size_t count = random() % (round % 8 != 0 ? 200 : 4000), from = random() % 4000,
                          to = random() % 4000;
        bytes[from] = model[from] = static_cast<std::uint8_t>(random());
        std::memmove(&model[to], &model[from], count);
        ASSERT_TRUE(core::guarded_copy(&bytes[to], &bytes[from], count));
        ASSERT_EQ(bytes, model) << count << " bytes from " << from << " to " << to;
    }
}

TEST_F(Guarded, FailsAtEitherEndAndEveryLength)
{
    std::vector<std::uint8_t> other(page, 1);
    for (std::size_t count = 1; count < page; count += 1 + count / 8)
        for (const std::size_t before : {std::size_t{0}, count / 4, count / 2, count - 1}) {
            EXPECT_FALSE(core::guarded_copy(other.data(), memory.hole() - before, count)) << count << " " << before;
            EXPECT_FALSE(core::guarded_copy(memory.hole() - before, other.data(), count)) << count << " " << before;
            EXPECT_TRUE(core::guarded_copy(memory.hole() - count, other.data(), count));
        }
}

TEST_F(Guarded, FailsInAFileThatWasTruncated)
{
    fleeting_memory file(leaving::truncated);
    std::vector<std::uint8_t> bytes(1000);
    EXPECT_TRUE(core::guarded_copy(bytes.data(), file.data(), bytes.size()));
    file.go();
    EXPECT_FALSE(core::guarded_copy(bytes.data(), file.data(), bytes.size()));
    EXPECT_FALSE(core::guarded_copy(file.data(), bytes.data(), bytes.size()));
    file.come_back();
    EXPECT_TRUE(core::guarded_copy(file.data(), bytes.data(), bytes.size()));
}

TEST_F(Guarded, KeepsWhatWasStoredBeforeTheFault)
{
    volatile unsigned copied = 0;
    EXPECT_FALSE(core::guarded([&](core::touched& there) {
        there.only(memory.hole() - 100, 200);
        for (unsigned at = 0; at < 200; ++at) {
            static_cast<void>(*const_cast<volatile std::uint8_t*>(memory.hole() - 100 + at));
            copied = at + 1;
        }
    }));
    EXPECT_EQ(copied, 100u);
}

TEST_F(Guarded, LeavesSignalMaskErrnoAndAlternateStackAsTheyWere)
{
    std::vector<std::uint8_t> stack(256 * 1024);
    stack_t alternate{}, before{}, after{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    sigaltstack(&alternate, &before);
    sigset_t blocked;
    for (unsigned round = 0; round < 100; ++round) {
        errno = 77;
        EXPECT_TRUE(copy_fails(memory));
        EXPECT_EQ(errno, 77);
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
    }
    sigaltstack(nullptr, &after);
    EXPECT_EQ(after.ss_flags & SS_ONSTACK, 0);
    sigaltstack(&before, nullptr);
}

TEST_F(Guarded, IsForEachThreadByItself)
{
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
        threads.emplace_back([&] {
            for (unsigned round = 0; round < 500; ++round)
                EXPECT_TRUE(copy_fails(memory));
        });
}

TEST_F(GuardedDeathTest, BugElsewhereDiesOfItsFault)
{
    EXPECT_EXIT(
        {
            core::guard_memory();
            require(copy_fails(memory));
            real_fault(memory);
        },
        by_fault, "");
}

TEST_F(GuardedDeathTest, FaultOfAGuardedCallElsewhereIsNotItsOwn)
{
    EXPECT_EXIT(
        {
            set_handler(exits);
            core::guard_memory();
            seen.address = memory.hole(); // right behind what the call has named
            static_cast<void>(core::guarded([&](core::touched& there) {
                there.only(memory.hole() - 16, 8, memory.hole() - 8, 8);
                *const_cast<volatile std::uint8_t*>(memory.hole()) = 1;
            }));
            _exit(1);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerThatWasThereBeforeGetsWhatIsNotOurs)
{
    EXPECT_EXIT(
        {
            set_handler(exits);
            core::guard_memory();
            require(copy_fails(memory));
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerThatIsSetLaterGetsItsOwnAndOursIsPutBefore)
{
    EXPECT_EXIT(
        {
            core::guard_memory();
            set_handler(exits);
            core::guard_memory(); // as when memory is registered
            require(copy_fails(memory));
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerThatIsSetLaterIsInFrontAtOnce)
{
    EXPECT_EXIT(
        {
            core::guard_memory();
            set_handler(exits);
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, EnginePutsOursBeforeWithin100Ms)
{
    EXPECT_EXIT(
        {
            core::guard_memory();
            set_handler(exits);
            std::this_thread::sleep_for(std::chrono::milliseconds(110));
            core::keep_guarding();
            require(copy_fails(memory));
            real_fault(memory);
        },
        by_handler, "");
}

/// It calls ours, which must not call it again.
TEST_F(GuardedDeathTest, HandlerThatPassesOnComesToWhatWasBeforeUs)
{
    EXPECT_EXIT(
        {
            set_handler(exits);
            core::guard_memory();
            set_handler(passes_on);
            core::guard_memory();
            require(copy_fails(memory) && seen.calls == 0);
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerThatPassesOnAndWasSetOnOursWithoutUsCatchesForUs)
{
    EXPECT_EXIT(
        {
            core::guard_memory();
            set_handler(passes_on);
            require(copy_fails(memory) && seen.calls == 1);
            _exit(of_handler);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerThatIsSetAgainAndAgainDoesNotGoRound)
{
    EXPECT_EXIT(
        {
            set_handler(exits);
            core::guard_memory();
            for (unsigned round = 0; round < 5; ++round) {
                set_handler(passes_on);
                core::guard_memory();
                require(copy_fails(memory));
            }
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerOfAScopeComesAndGoesForEver)
{
    EXPECT_EXIT(
        {
            set_handler(exits);
            core::guard_memory();
            for (unsigned round = 0; round < 1000; ++round) {
                set_handler(passes_on);
                core::guard_memory();
                require(copy_fails(memory));
                sigaction(SIGSEGV, &seen.old, nullptr);
                core::guard_memory();
                require(copy_fails(memory));
            }
            require(seen.calls == 0);
            real_fault(memory);
        },
        by_handler, "");
}

/// As of programs that probe memory.
TEST_F(GuardedDeathTest, HandlerMayJump)
{
    EXPECT_EXIT(
        {
            set_handler(jumps);
            core::guard_memory();
            for (static int round = 0; round < 100; ++round) { // static: sigsetjmp() keeps no local object
                if (sigsetjmp(seen.place, 1) == 0)
                    real_fault(memory);
                require(seen.calls == round + 1 && copy_fails(memory));
            }
            _exit(of_handler);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerIsCalledWithTheMaskThatItAskedFor)
{
    EXPECT_EXIT(
        {
            struct sigaction action {};
            action.sa_sigaction = [](int, siginfo_t*, void*) {
                sigset_t blocked;
                pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                _exit(sigismember(&blocked, SIGSEGV) != 0 && sigismember(&blocked, SIGUSR1) != 0 &&
                              sigismember(&blocked, SIGUSR2) == 0
                          ? of_handler
                          : 1);
            };
            action.sa_flags = SA_SIGINFO;
            sigemptyset(&action.sa_mask);
            sigaddset(&action.sa_mask, SIGUSR1);
            sigaction(SIGSEGV, &action, nullptr);
            core::guard_memory();
            real_fault(memory);
        },
        by_handler, "");
}

TEST_F(GuardedDeathTest, HandlerForOneFaultIsCalledForOne)
{
    EXPECT_EXIT(
        {
            set_handler(jumps, static_cast<int>(SA_RESETHAND));
            core::guard_memory();
            if (sigsetjmp(seen.place, 1) == 0)
                real_fault(memory);
            require(seen.calls == 1);
            real_fault(memory);
        },
        by_fault, "");
}

TEST_F(GuardedDeathTest, SignalThatIsSentGoesToTheHandlerOrEndsTheProcess)
{
    EXPECT_EXIT(
        {
            set_plain([](int) { _exit(of_handler); }, SIGBUS);
            core::guard_memory();
            kill(getpid(), SIGBUS);
            pause();
        },
        by_handler, "");
    EXPECT_EXIT(
        {
            set_plain(SIG_DFL);
            core::guard_memory();
            kill(getpid(), SIGSEGV);
            pause();
        },
        testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(
        {
            set_plain(SIG_IGN);
            core::guard_memory();
            raise(SIGSEGV);
            require(copy_fails(memory));
            _exit(of_handler);
        },
        by_handler, "");
}

} // namespace

} // namespace weftio::test
