#include "scene.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

#include "patience.hpp"
#include "sanitized.hpp"

// Programs here end in ways that leave objects behind on purpose; what they touch is looked at, what they leave is not.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off()
{
    return 1;
}

namespace weftio::test {

namespace {

constexpr const char* wish = "WEFTIO_SCENE";
constexpr const char* with = "WEFTIO_SCENE_ARGUMENT";

std::map<std::string, std::function<int()>>& scenes()
{
    static auto& all = *new std::map<std::string, std::function<int()>>; // outlives whatever the scenes leave
    return all;
}

/// Becomes the program that plays. An alarm ends one that hangs.
[[noreturn]] void become(const std::string& name, const std::string& argument, int output)
{
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setenv(wish, name.c_str(), 1);
    setenv(with, argument.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    alarm(static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(2 * patience).count())); // a scene may wait too
    execl("/proc/self/exe", name.c_str(), nullptr);
    _exit(127);
}

} // namespace

scene::scene(const char* name, std::function<int()> play)
{
    scenes().emplace(name, std::move(play));
}

std::string ending::text() const
{
    return (signal != 0
                ? fmt::format("ended by signal {} ({})", signal, signal == SIGALRM ? "it hung" : strsignal(signal))
                : fmt::format("exit status {}", exit_status)) +
           (printed.empty() ? "" : "; it printed: " + printed);
}

ending play(const std::string& name, const std::string& argument)
{
    ending seen;
    int ends[2];
    if (pipe(ends) != 0)
        return seen;
    const pid_t child = fork();
    if (child == 0)
        become(name, argument, ends[1]);
    close(ends[1]);
    char text[4096];
    for (ssize_t bytes = 0; (bytes = read(ends[0], text, sizeof text)) > 0;)
        seen.printed.append(text, static_cast<std::size_t>(bytes));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    seen.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    seen.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return seen;
}

std::string scene_argument()
{
    const char* argument = std::getenv(with);
    return argument ? argument : "";
}

bool ends_well(const std::string& name, const std::string& argument, int exit_status, int times)
{
#ifdef WEFTIO_TEST_SANITIZED // a program takes seconds there, and a race is seen before it does harm
    times = std::min(times, 2);
#endif
    for (int time = 1; time <= times; ++time) {
        const ending seen = play(name, argument);
        EXPECT_TRUE(seen.exit_status == exit_status && seen.printed.empty())
            << name << " " << argument << ", time " << time << " of " << times << ": " << seen.text();
        if (testing::Test::HasFailure())
            return false;
    }
    return true;
}

} // namespace weftio::test

int main(int count, char** words)
{
    if (const char* wanted = std::getenv(weftio::test::wish)) {
        auto found = weftio::test::scenes().find(wanted);
        return found == weftio::test::scenes().end() ? 126 : found->second();
    }
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
}
