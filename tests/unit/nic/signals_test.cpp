// Handlers of an application run on its own threads.
#include "endless_kernels.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "injected_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(waits_for_item, "endless_kernels.h");

namespace weftio::test {
namespace {

using threads = std::set<std::string>; ///< by their numbers

threads threads_of_this_process()
{
    threads found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
        found.insert(task.path().filename());
    return found;
}

/// What /proc says of a thread behind `key`.
std::string of_thread(const std::string& number, const std::string& key)
{
    std::ifstream status("/proc/self/task/" + number + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key))
            return line.substr(key.size());
    return {};
}

/// Names of threads that have begun since `before` and on which a handler of `signals` may run.
std::vector<std::string> open_to(const std::array<int, 6>& signals, const threads& before)
{
    std::vector<std::string> found;
    for (const std::string& number : threads_of_this_process()) {
        const std::string mask = of_thread(number, "SigBlk:");
        const std::uint64_t blocked = mask.empty() ? ~std::uint64_t{0} : std::stoull(mask, nullptr, 16); // it has ended
        for (int signal : signals)
            if (!before.contains(number) && (blocked >> (signal - 1) & 1) == 0) {
                found.push_back(of_thread(number, "Name:"));
                break;
            }
    }
    return found;
}

class Signals : public testing::TestWithParam<const char*> {};

TEST_P(Signals, AreLeftToTheThreadsOfTheApplication)
{
    sigset_t mask_before, mask_after;
    const threads before = threads_of_this_process();
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_before);
    std::optional<device> where;
    try {
        where.emplace(device::open(GetParam()));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: threads of " << GetParam() << "; " << refused.what();
    }
    port port = port::open("null", {.engines = 2});
    semaphore items(*where, {.items = 4});
    shared_words words(*where, 2);
    running_kernel running = where->launch(waits_for_item_kernel, {}, items, std::uint64_t{0}, words.on_device());
    running.watch({});
    EXPECT_TRUE(eventually([&] { return weftio_load_relaxed_u32(&items.control()->beats) != 0; }));
    EXPECT_GE(threads_of_this_process().size(), before.size() + 3) << "engines and a watch, and what runs the kernel";
    EXPECT_THAT(open_to({SIGTERM, SIGINT, SIGALRM, SIGUSR1, SIGCHLD, SIGRTMIN}, before), testing::IsEmpty());
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_after);
    for (int signal = 1; signal < SIGRTMAX; ++signal)
        EXPECT_EQ(sigismember(&mask_after, signal), sigismember(&mask_before, signal)) << signal;
}

INSTANTIATE_TEST_SUITE_P(Beside, Signals, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
