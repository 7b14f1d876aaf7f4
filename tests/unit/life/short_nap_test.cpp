// The sleep of EAL's start that is cut short, and those that are not.
#include <cerrno>
#include <ctime>

#include <gtest/gtest.h>
#include <pthread.h>

#include "core/short_nap.hpp"

namespace weftio::detail {
namespace {

/// Whether a sleep of `ns` in this thread was interrupted.
bool interrupted(long ns)
{
    timespec time{0, ns};
    return nanosleep(&time, nullptr) != 0 && errno == EINTR;
}

TEST(ShortNap, EndsASleepAsLongAsTheCalibrations)
{
    bool cut = false;
    for (int attempt = 0; attempt < 50 && !cut; ++attempt) { // on a busy machine the second thread may come late
        short_nap nap;
        cut = interrupted(100'000'000);
    }
    EXPECT_TRUE(cut);
}

TEST(ShortNap, LeavesOtherSleepsAlone)
{
    short_nap nap;
    EXPECT_FALSE(interrupted(60'000'000));
    EXPECT_FALSE(interrupted(101'000'000));
}

TEST(ShortNap, GivesBackTheSignalItUsed)
{
    sigset_t mask, after;
    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMAX);
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &mask, &after), 0);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    {
        short_nap nap;
        struct sigaction during {};
        sigaction(SIGRTMAX, nullptr, &during);
        EXPECT_NE(during.sa_handler, SIG_DFL);
        interrupted(100'000'000);
    }
    struct sigaction action {};
    sigaction(SIGRTMAX, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &after, &mask);
    EXPECT_TRUE(sigismember(&mask, SIGRTMAX)); // blocked, as before
    sigpending(&mask);
    EXPECT_FALSE(sigismember(&mask, SIGRTMAX));
}

} // namespace
} // namespace weftio::detail
