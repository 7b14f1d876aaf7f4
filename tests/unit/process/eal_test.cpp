// EAL that does not start, and EAL that runs already.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_log.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/program.hpp"
#include "sanitized.hpp"
#include "scene.hpp"
#include "stage.hpp"

namespace {

using weftio::test::ends_well, weftio::test::play, weftio::test::scene, weftio::test::scene_argument;

/// What opening a port says; empty when it opens.
std::string refusal(const std::vector<std::string>& words)
{
    try {
        weftio::port::open("null", {.eal_arguments = words});
    } catch (const weftio::error& refused) {
        return refused.what();
    }
    return "";
}

bool has(const std::string& text, std::string_view part)
{
    return text.find(part) != text.npos;
}

const scene failed_start("failed_start", [] {
    std::vector<std::string> words{scene_argument()};
    if (words[0] == "-m")
        words.emplace_back("9000000");
    const std::string why = refusal(words);
    if (!has(why, "EAL did not start") || has(why, "it said: nothing"))
        return 1;
    for (int again = 0; again < 2; ++again) {
        const std::string said = refusal({});
        if (!has(said, "cannot start again") || !has(said, "restart the program") || has(said, "already"))
            return 2;
    }
    std::printf("the end\n"); // its output is its own again
    return 3;
});

const scene asks_for_help("asks_for_help", [] {
    if (!has(refusal({scene_argument()}), "leave it out"))
        return 1;
    return refusal({}).empty() ? 3 : 2;
});

/// Ports until EAL has no memory left.
const scene little_memory("little_memory", [] {
    std::vector<weftio::port> open;
    try {
        while (open.size() < 100)
            open.push_back(weftio::port::open("null", {.eal_arguments = {"-m", "96"}}));
        return 1;
    } catch (const weftio::error& refused) {
        if (refused.code() != weftio::errc::out_of_memory || !has(refused.what(), "eal_arguments of the first port"))
            return 2;
    }
    open.clear();
    return refusal({}).empty() ? 3 : 4;
});

TEST(Eal, IsNamedAfterTheProgram)
{
    char* const before = program_invocation_short_name;
    std::string name;
    const auto prefix_of = [&](const char* program) {
        name = program;
        program_invocation_short_name = name.data();
        std::string prefix = weftio::core::file_prefix();
        program_invocation_short_name = before;
        return prefix;
    };
    EXPECT_EQ(prefix_of("my_test-2.x"), "my_test-2.x");
    EXPECT_EQ(prefix_of("my test/%"), "my_test__");
    EXPECT_EQ(prefix_of(".hidden"), "weftio.hidden");
    EXPECT_EQ(prefix_of("a_name_that_is_longer_than_32_letters"), "a_name_that_is_longer_than_32_le");
}

TEST(Eal, WithoutMemoryLeftSaysSoAndWhatGivesItMore)
{
    ends_well("little_memory", "", 3, 1);
}

TEST(Eal, ThatDoesNotStartIsNotStartedASecondTimeAndPrintsNothing)
{
    for (const char* word : {"-m", "--no-such-word", "--log-level"}) {
        const auto seen = play("failed_start", word);
        EXPECT_EQ(seen.exit_status, 3) << word << ": " << seen.text();
        EXPECT_EQ(seen.printed, "the end\n") << word;
    }
}

TEST(Eal, IsNotAskedForItsUsageWhichWouldEndTheProgram)
{
    for (const char* word : {"-h", "--help", "--hel"})
        ends_well("asks_for_help", word, 3, 1);
}

/// An application that has an EAL, and reads its log.
const scene own_eal("own_eal", [] {
    char name[] = "own_eal", huge[] = "--no-huge", shared[] = "--no-shconf", megabytes[] = "-m", many[] = "256",
         pci[] = "--no-pci", quiet[] = "--log-level=*:error";
    char* words[] = {name, huge, shared, megabytes, many, pci, quiet};
    if (rte_eal_init(7, words) < 0)
        return 1;
    std::FILE* log = std::tmpfile();
    rte_openlog_stream(log);
    {
        weftio::test::stage all("null");
        if (!all.run())
            return 2;
    }
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "mine\n");
    const bool kept = rte_log_get_stream() == log;
    std::rewind(log);
    char line[200] = "";
    const bool first = std::fgets(line, sizeof line, log) != nullptr && std::string_view(line).ends_with("mine\n");
    rte_eal_cleanup();
    return !kept ? 4 : first ? 3 : 5;
});

TEST(Eal, OfTheApplicationKeepsItsLog)
{
    const auto seen = play("own_eal");
    EXPECT_EQ(seen.exit_status, 3) << seen.text();
    EXPECT_EQ(seen.printed.find("already called"), std::string::npos) << seen.printed;
}

/// A process that may open few descriptors, then many.
const scene few_descriptors("few_descriptors", [] {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const int free = dup(0);
    close(free);
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(free) + std::stoul(scene_argument());
    setrlimit(RLIMIT_NOFILE, &few);
    const std::string said = refusal({});
    setrlimit(RLIMIT_NOFILE, &before);
    if (!said.empty() && !has(said, "raise the limit with \"ulimit -n"))
        return 1;
    return refusal({}).empty() ? 3 : 2;
});

TEST(Eal, IsNotStartedWithFewDescriptorsAndStartsWhenThereAreMore)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: few descriptors; a sanitizer needs some itself to look at memory; a plain build has it";
#endif
    for (int free = 0; free < 9; ++free) {
        const auto seen = play("few_descriptors", std::to_string(free));
        EXPECT_EQ(seen.exit_status, 3) << free << ": " << seen.text();
    }
}

bool sigxfsz_waits()
{
    sigset_t waiting;
    sigpending(&waiting);
    return sigismember(&waiting, SIGXFSZ) == 1;
}

/// A process whose files may have so many bytes, which are less than EAL wants for its memory.
const scene small_files("small_files", [] {
    rlimit bytes{};
    getrlimit(RLIMIT_FSIZE, &bytes);
    bytes.rlim_cur = std::stoul(scene_argument());
    setrlimit(RLIMIT_FSIZE, &bytes);
    weftio::test::stage all("null");
    return !all.run() ? 1 : sigxfsz_waits() ? 2 : 3;
});

/// The same, to which such a signal has been sent before.
const scene small_files_and_a_signal("small_files_and_a_signal", [] {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    raise(SIGXFSZ);
    const rlimit bytes{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &bytes);
    const std::string said = refusal({});
    return !said.empty() ? 1 : sigxfsz_waits() ? 3 : 2;
});

TEST(Eal, StartsInAProcessWhoseFilesMustBeSmall)
{
    for (const char* bytes : {"0", "512", "1048576", "102400000", "536870911"})
        ends_well("small_files", bytes, 3, 1);
    ends_well("small_files_and_a_signal", "", 3, 1);
}

} // namespace
