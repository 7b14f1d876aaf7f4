#include "core/guarded.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <string>
#include <utility>

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/log.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define WEFTIO_GUARD_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WEFTIO_GUARD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFTIO_GUARD_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WEFTIO_GUARD_TSAN 1
#endif
#endif

#if defined(WEFTIO_GUARD_ASAN)
#include <sanitizer/asan_interface.h>
#endif

/// How a guarded call ends at a fault: the handler sends the thread to the end of weftio_guarded_enter(), by changing
/// its context. The kernel restores signal mask and alternate stack then. Elsewhere by siglongjmp(), which
/// ThreadSanitizer must see to know that functions have ended.
#if defined(__x86_64__) && !defined(WEFTIO_GUARD_TSAN)
#define WEFTIO_GUARD_BY_CONTEXT 1
#endif

namespace weftio::core {

namespace {

/// A guarded call under way.
struct guarded_call {
#if defined(WEFTIO_GUARD_BY_CONTEXT)
    std::uintptr_t stack = 0; ///< of weftio_guarded_enter(), which writes it: must be the first member
    std::uintptr_t faulted_stack = 0;
#else
    sigjmp_buf resume_point;
#endif
    touched bytes;
};

/// That of the thread; nullptr: none. Initial-exec: a handler must not allocate thread-local memory.
[[gnu::tls_model("initial-exec")]] thread_local guarded_call* current = nullptr;

} // namespace

} // namespace weftio::core

#if defined(WEFTIO_GUARD_BY_CONTEXT)
extern "C" {
/// Calls body(bytes, context). Returns 1, or 0 when a handler has sent the thread to weftio_guarded_fault.
int weftio_guarded_enter(void* call, void* bytes, void* body, void* context) noexcept;
extern const char weftio_guarded_fault[];
}

asm(R"(
    .pushsection .text.weftio_guarded_enter,"ax",@progbits
    .globl weftio_guarded_enter
    .hidden weftio_guarded_enter
    .type weftio_guarded_enter, @function
    .globl weftio_guarded_fault
    .hidden weftio_guarded_fault
    .p2align 5
weftio_guarded_enter:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    movq %rsp, (%rdi)
    movq %rdx, %rax
    movq %rsi, %rdi
    movq %rcx, %rsi
    callq *%rax
    movl $1, %eax
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_restore_state
weftio_guarded_fault:
    xorl %eax, %eax
    leaq 48(%rsp), %rbp
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size weftio_guarded_enter, .-weftio_guarded_enter
    .popsection
)");
#endif

namespace weftio::core {

#if defined(WEFTIO_PROBES_GUARDED_BYTES)
__attribute__((no_sanitize("thread"))) void touched::probe(const void* at, std::size_t bytes) noexcept
{
    if (bytes != 0)
        static_cast<void>(*static_cast<const volatile char*>(at));
}
#endif

[[gnu::noinline]] bool detail::call_guarded(guarded_body body, void* context) noexcept
{
    guarded_call call;
    guarded_call* const outer = current;
    current = &call;
#if defined(WEFTIO_GUARD_BY_CONTEXT)
    const bool done = weftio_guarded_enter(&call, &call.bytes, reinterpret_cast<void*>(body), context) != 0;
#if defined(WEFTIO_GUARD_ASAN)
    if (!done) // functions that have ended without a word have left their marks there
        __asan_unpoison_memory_region(reinterpret_cast<void*>(call.faulted_stack), call.stack - call.faulted_stack);
#endif
    current = outer;
    return done;
#else
    const int kept = errno;
    if (sigsetjmp(call.resume_point, 0) != 0) {
        current = outer;
        errno = kept;
        return false;
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    body(call.bytes, context);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    current = outer;
    return true;
#endif
}

namespace {

constexpr std::array guarded_signals{SIGSEGV, SIGBUS};
/// How often the application may set an action of its own and have ours put before it. Each time another function of
/// ours is used: an application that calls the action it has replaced comes to one that knows what was there before.
constexpr std::size_t most_times = 16;

/// One function of ours, as the action of a signal.
struct link {
    std::atomic<const struct sigaction*> previous{nullptr}; ///< what it calls for faults that are not ours
    struct sigaction first {};                              ///< that, when it was set
    int below = -1; ///< the link that was in front when `first` was set; -1: none was
    bool used = false;
};

/// For each signal.
struct chain {
    std::array<link, most_times> links;
    struct sigaction before {}; ///< the action that was there first
    int front = -1;             ///< the link that was in front when it was last looked at
    bool given_up = false;
};

/// Not undying(): a handler is no place for the guard of a local static object.
constinit std::array<chain, guarded_signals.size()> chains;
constinit std::mutex changing; ///< of chains
using detail::guarding;
constinit std::atomic<std::int64_t> next_check_ns{0};

/// Ends the guarded call of this thread, if the fault is its.
bool is_ours(const siginfo_t& info, void* context) noexcept
{
    guarded_call* const call = current;
    if (call == nullptr || info.si_code <= 0 || // 0 and below: somebody has sent it
        !call->bytes.hold(reinterpret_cast<std::uintptr_t>(info.si_addr)))
        return false;
#if defined(WEFTIO_GUARD_BY_CONTEXT)
    constexpr std::uintptr_t red_zone = 128;
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    call->faulted_stack = static_cast<std::uintptr_t>(registers[REG_RSP]) - red_zone;
    registers[REG_RSP] = static_cast<greg_t>(call->stack);
    registers[REG_RIP] = reinterpret_cast<greg_t>(&weftio_guarded_fault);
    return true;
#else
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(call->resume_point, 1);
#endif
}

/// The kernel does what it does without a handler: for a fault that happens again when this returns, with its true
/// context. A signal that was sent is sent again.
void fall_back(int signal, const siginfo_t& info, const struct sigaction& to) noexcept
{
    if (info.si_code <= 0 && to.sa_handler == SIG_IGN)
        return;
    sigaction(signal, &to, nullptr);
    if (info.si_code <= 0)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

/// Calls an action as the kernel would, with the mask that it asks for.
void pass_on(int signal, siginfo_t* info, void* context, const struct sigaction& to) noexcept
{
    if ((to.sa_flags & SA_SIGINFO) == 0 && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN))
        return fall_back(signal, *info, to);
    sigset_t blocked, before;
    sigorset(&blocked, &static_cast<const ucontext_t*>(context)->uc_sigmask, &to.sa_mask);
    if ((to.sa_flags & SA_NODEFER) == 0)
        sigaddset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if ((to.sa_flags & SA_SIGINFO) != 0)
        to.sa_sigaction(signal, info, context);
    else
        to.sa_handler(signal);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

constinit const struct sigaction default_action {};

template <std::size_t Signal, std::size_t Link>
void on_fault(int signal, siginfo_t* info, void* context) noexcept
{
    const int kept = errno;
    if (!is_ours(*info, context)) {
        std::atomic<const struct sigaction*>& previous = chains[Signal].links[Link].previous;
        const struct sigaction& to = *previous.load(std::memory_order_acquire);
        if ((static_cast<unsigned>(to.sa_flags) & unsigned{SA_RESETHAND}) != 0)
            previous.store(&default_action, std::memory_order_release);
        pass_on(signal, info, context, to);
    }
    errno = kept;
}

using handler = void (*)(int, siginfo_t*, void*) noexcept;

template <std::size_t Signal, std::size_t... Link>
constexpr std::array<handler, most_times> handlers_of(std::index_sequence<Link...>) noexcept
{
    return {on_fault<Signal, Link>...};
}

constexpr std::array handlers{handlers_of<0>(std::make_index_sequence<most_times>()),
                              handlers_of<1>(std::make_index_sequence<most_times>())};

bool same(const struct sigaction& one, const struct sigaction& other) noexcept
{
    return one.sa_sigaction == other.sa_sigaction && ((one.sa_flags ^ other.sa_flags) & SA_SIGINFO) == 0;
}

/// Which link an action is; -1: it is the application's.
int link_of(std::size_t signal, const struct sigaction& action) noexcept
{
    if ((action.sa_flags & SA_SIGINFO) != 0)
        for (std::size_t at = 0; at != most_times; ++at)
            if (action.sa_sigaction == handlers[signal][at])
                return static_cast<int>(at);
    return -1;
}

/// Whether the front link comes to `wanted`, if every action of the application calls the one that it has replaced.
bool reaches(const chain& of, int wanted) noexcept
{
    int at = of.front;
    while (at >= 0 && at != wanted)
        at = of.links[static_cast<std::size_t>(at)].below;
    return at == wanted;
}

/// A link to put in front of an action of the application's; nullptr: all are used. One that has stood in front of the
/// same action, and is not behind it, will do. One that is behind it must not call it again: it goes on with what it
/// stood upon.
link* link_before(chain& of, const struct sigaction& action) noexcept
{
    link* unused = nullptr;
    for (std::size_t at = 0; at != most_times; ++at) {
        link& each = of.links[at];
        if (!each.used) {
            unused = unused ? unused : &each;
        } else if (same(each.first, action)) {
            if (!reaches(of, static_cast<int>(at)))
                return &each;
            const link* below = each.below < 0 ? nullptr : &of.links[static_cast<std::size_t>(each.below)];
            each.previous.store(below ? below->previous.load(std::memory_order_relaxed) : &of.before,
                                std::memory_order_release);
        }
    }
    return unused;
}

/// @pre changing is locked
void put_in_front(std::size_t signal) noexcept
{
    chain& of = chains[signal];
    struct sigaction now {};
    sigaction(guarded_signals[signal], nullptr, &now);
    if (const int front = link_of(signal, now); front >= 0) {
        of.front = front;
        return;
    }
    link* const next = of.given_up ? nullptr : link_before(of, now);
    if (next == nullptr) {
        if (!std::exchange(of.given_up, true))
            log_or_lose(log_level::warning, [&] {
                return std::string("weftio: too many handlers of SIGSEGV and SIGBUS were installed; memory that is "
                                   "unmapped while a queue uses it now ends the program");
            });
        return;
    }
    if (of.front < 0)
        of.before = now;
    next->first = now;
    next->below = of.front;
    next->used = true;
    next->previous.store(&next->first, std::memory_order_release);
    struct sigaction ours {};
    ours.sa_sigaction = handlers[signal][static_cast<std::size_t>(next - of.links.data())];
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(guarded_signals[signal], &ours, nullptr);
    of.front = static_cast<int>(next - of.links.data());
}

std::int64_t now_ns() noexcept
{
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

void check_handlers(std::int64_t now) noexcept
{
    constexpr std::int64_t between_checks_ns = 100'000'000;
    next_check_ns.store(now + between_checks_ns, std::memory_order_relaxed);
    for (std::size_t signal = 0; signal != guarded_signals.size(); ++signal)
        put_in_front(signal);
}

} // namespace

void guard_memory() noexcept
{
    const std::scoped_lock one_at_a_time(changing);
    guarding.store(true, std::memory_order_relaxed);
    check_handlers(now_ns());
}

void keep_guarding() noexcept
{
    if (!guarding.load(std::memory_order_relaxed))
        return;
    if (const std::int64_t now = now_ns(); now >= next_check_ns.load(std::memory_order_relaxed))
        if (const std::unique_lock only_one(changing, std::try_to_lock); only_one)
            check_handlers(now);
}

} // namespace weftio::core
