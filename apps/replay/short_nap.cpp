// Shortens DPDK's start. If the processor does not report the frequency of its cycle counter (many Xeons, every AMD,
// most virtual machines), EAL measures it at its start over a nanosleep() of exactly 100 ms: half of the time from the
// start of weftio-replay to its first frame. EAL uses the time that really passed and rounds to 10 MHz, so 10 ms
// suffice. Weftio's timing does not depend on it, because its clock measures the counter itself.
#include <ctime>

#include <atomic>
#include <cerrno>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // the sanitizers have a nanosleep of their own

/// Replaces the C library's nanosleep() in this program: the first sleep of 100 ms takes 10.
extern "C" int nanosleep(const timespec* wanted, timespec* left)
{
    static std::atomic<bool> shortened{false};
    constexpr timespec long_nap{.tv_sec = 0, .tv_nsec = 100'000'000}, short_nap{.tv_sec = 0, .tv_nsec = 10'000'000};
    const bool is_long_nap = wanted && wanted->tv_sec == long_nap.tv_sec && wanted->tv_nsec == long_nap.tv_nsec;
    if (is_long_nap && !shortened.exchange(true))
        wanted = &short_nap;
    int result = clock_nanosleep(CLOCK_REALTIME, 0, wanted, left);
    if (result == 0)
        return 0;
    errno = result;
    return -1;
}

#endif
