// Where the processor does not say how fast its cycle counter runs (many Xeons, every AMD, most virtual machines),
// DPDK's EAL measures it when it starts, over a nanosleep() of exactly 100 ms: half of the time from the start of
// weftio-replay to its first frame. It takes the time that really passed and rounds to 10 MHz, so 10 ms do as well.
// Timing does not depend on it: Weftio's clock measures the counter itself.
#include <ctime>

#include <atomic>
#include <cerrno>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which have a nanosleep of their own

/// The C library's, for everything in this program: but the first sleep of 100 ms takes 10.
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
