#include <doca_dev.h>
#include <doca_eth_txq.h>
#include <doca_log.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "child.hpp"

DOCA_LOG_REGISTER(WEFTIO_TEST::LOG);

namespace weftio::test {

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

const char* const start_of_line = R"(\[[0-9][0-9]:[0-9][0-9]:[0-9][0-9]:[0-9]{6}\]\[[0-9]+\]\[DOCA\])";

std::string own_line(const char* tag, const char* text)
{
    return std::string(start_of_line) + "\\[" + tag + R"(\]\[log_test\.cpp:[0-9]+\]\[[A-Za-z_()]+\] )" + text + "\n";
}

TEST(DocaLog, WritesLinesInTheGuidesForm)
{
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        DOCA_LOG_INFO("%d packets of %s", 3, "ten");
        return 0;
    });
    EXPECT_THAT(ended.out, MatchesRegex(own_line("INF", "3 packets of ten")));
    EXPECT_EQ(ended.err, "");
}

TEST(DocaLog, WritesWarningsAndWorseToStandardError)
{
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        DOCA_LOG_WARN("one");
        DOCA_LOG_ERR("two");
        DOCA_LOG_CRIT("three");
        return 0;
    });
    EXPECT_THAT(ended.err, MatchesRegex(own_line("WRN", "one") + own_line("ERR", "two") + own_line("CRT", "three")));
    EXPECT_EQ(ended.out, "");
}

TEST(DocaLog, HidesWhatIsBelowItsLevel)
{
    const ended_child ended = in_child([] {
        DOCA_LOG_ERR("before there is a backend");
        doca_log_backend_create_standard();
        doca_log_backend_create_standard();
        DOCA_LOG_DBG("hidden");
        doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_DEBUG);
        DOCA_LOG_DBG("shown");
        DOCA_LOG_TRC("hidden");
        doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_DISABLE);
        DOCA_LOG_CRIT("hidden");
        return 0;
    });
    EXPECT_THAT(ended.out, MatchesRegex(own_line("DBG", "shown")));
    EXPECT_EQ(ended.err, "");
}

TEST(DocaLog, WritesBehindWhatTheProgramPrinted)
{
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        std::printf("printed\n");
        DOCA_LOG_INFO("logged");
        std::printf("again\n");
        return 0;
    });
    EXPECT_THAT(ended.out, MatchesRegex("printed\n" + own_line("INF", "logged") + "again\n"));
}

TEST(DocaLog, KeepsErrnoAndLongLines)
{
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        errno = ENOENT;
        DOCA_LOG_INFO("%s", std::string(100'000, 'x').c_str());
        return errno == ENOENT ? 0 : 1;
    });
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, AllOf(HasSubstr("] " + std::string(100'000, 'x')), EndsWith("x\n")));
}

TEST(DocaLog, LinesOfThreadsStayWhole)
{
    constexpr int threads = 8, lines = 300;
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        std::vector<std::jthread> all;
        for (int i = 0; i < threads; ++i)
            all.emplace_back([i] {
                for (int line = 0; line < lines; ++line)
                    DOCA_LOG_INFO("%d %s", line, std::string(200, static_cast<char>('a' + i)).c_str());
            });
        return 0;
    });
    std::istringstream text(ended.out);
    const std::regex whole(std::string(start_of_line) + R"(\[INF\].* [0-9]+ (a+|b+|c+|d+|e+|f+|g+|h+))");
    int count = 0;
    for (std::string line; std::getline(text, line); ++count)
        ASSERT_TRUE(std::regex_match(line, whole)) << line;
    EXPECT_EQ(count, threads * lines);
}

/// A call of the library that fails.
void fail_once()
{
    EXPECT_EQ(doca_log_backend_set_sdk_level(nullptr, DOCA_LOG_LEVEL_ERROR), DOCA_ERROR_INVALID_VALUE);
}

std::string failure_line()
{
    return std::string(start_of_line) + R"(\[ERR\]\[libweftio_doca\]\[doca_log_backend_set_sdk_level\] )"
                                        R"(the log backend is a null pointer \(DOCA_ERROR_INVALID_VALUE\))"
                                        "\n";
}

TEST(DocaLog, WritesFailedCallsToTheLibrarysBackends)
{
    const ended_child ended = in_child([] {
        doca_log_backend *one = nullptr, *other = nullptr;
        doca_log_backend_create_with_file_sdk(stdout, &one);
        doca_log_backend_create_with_file_sdk(stderr, &other);
        fail_once();
        doca_log_backend_set_sdk_level(one, DOCA_LOG_LEVEL_CRIT);
        fail_once();
        doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE);
        fail_once();
        return 0;
    });
    EXPECT_THAT(ended.out, MatchesRegex(failure_line()));
    EXPECT_THAT(ended.err, MatchesRegex(failure_line() + failure_line()));
}

TEST(DocaLog, TheLimitHoldsForLaterBackends)
{
    const ended_child ended = in_child([] {
        doca_log_backend* backend = nullptr;
        doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_CRIT);
        doca_log_backend_create_with_file_sdk(stderr, &backend);
        fail_once();
        return 0;
    });
    EXPECT_EQ(ended.err, "");
}

TEST(DocaLog, DropsTheLibrarysLinesWithoutABackend)
{
    const ended_child ended = in_child([] {
        doca_log_backend_create_standard();
        fail_once();
        return 0;
    });
    EXPECT_EQ(ended.out + ended.err, "");
}

TEST(DocaLog, TheEnvironmentShowsTheLibrarysLines)
{
    const ended_child without = in_child([] {
        setenv("WEFTIO_LOG", "error", 1);
        fail_once();
        return 0;
    });
    EXPECT_THAT(without.err, MatchesRegex(failure_line()));
    const ended_child with = in_child([] {
        doca_log_backend* backend = nullptr;
        setenv("WEFTIO_LOG", "error", 1);
        doca_log_backend_create_with_file_sdk(stderr, &backend);
        doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_DISABLE);
        fail_once();
        return 0;
    });
    EXPECT_THAT(with.err, MatchesRegex(failure_line()));
}

TEST(DocaLog, WritesALineByOneWrite)
{
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    const ended_child ended = in_child([&] {
        doca_log_backend* backend = nullptr;
        doca_log_backend_create_with_file_sdk(fdopen(ends[0], "w"), &backend);
        fail_once();
        return 0;
    });
    std::string line(1000, 0);
    const ssize_t size = recv(ends[1], line.data(), line.size(), MSG_DONTWAIT);
    ASSERT_GT(size, 0);
    EXPECT_THAT(line.substr(0, static_cast<std::size_t>(size)), MatchesRegex(failure_line()));
    close(ends[0]);
    close(ends[1]);
}

TEST(DocaLog, WritesToStreamsInMemory)
{
    const ended_child ended = in_child([] {
        char* text = nullptr;
        std::size_t size = 0;
        FILE* memory = open_memstream(&text, &size);
        doca_log_backend* backend = nullptr;
        doca_log_backend_create_with_file_sdk(memory, &backend);
        fail_once();
        std::fputs(text, stdout);
        return 0;
    });
    EXPECT_THAT(ended.out, MatchesRegex(failure_line()));
}

/// Opens a port, with a backend for all lines and one for warnings.
void log_while_a_port_opens()
{
    doca_log_backend *all = nullptr, *warnings = nullptr;
    doca_log_backend_create_with_file_sdk(stdout, &all);
    doca_log_backend_create_with_file_sdk(stderr, &warnings);
    doca_log_backend_set_sdk_level(all, DOCA_LOG_LEVEL_DEBUG);
    setenv("WEFTIO_DOCA_DEVICES", "0000:b5:00.0=null", 1);
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    doca_dev* device = nullptr;
    doca_eth_txq* queue = nullptr;
    ASSERT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
    ASSERT_EQ(doca_dev_open(list[0], &device), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_txq_create(device, 64, &queue), DOCA_SUCCESS);
}

// In a program of its own, which is this test again: after fork(), DPDK cannot be used where it runs.
TEST(DocaLog, WritesWeftiosOwnLinesAtTheirLevels)
{
    const char* inside = "WEFTIO_DOCA_TEST_OPENS_A_PORT";
    if (std::getenv(inside))
        return log_while_a_port_opens();
    const ended_child ended = in_child([&] {
        for (const char* name : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
            unsetenv(name);
        setenv(inside, "1", 1);
        execl("/proc/self/exe", "doca_test", "--gtest_filter=DocaLog.WritesWeftiosOwnLinesAtTheirLevels", nullptr);
        return 1;
    });
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, ContainsRegex(std::string(start_of_line) + R"(\[INF\]\[libweftio\]\[-\] )"));
    EXPECT_THAT(ended.err, Not(HasSubstr("[INF]")));
}

TEST(DocaLog, RefusesBadInput)
{
    doca_log_backend* backend = nullptr;
    EXPECT_EQ(doca_log_backend_create_with_file_sdk(nullptr, &backend), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_log_backend_create_with_file_sdk(stderr, nullptr), DOCA_ERROR_INVALID_VALUE);
    int no_backend = 0;
    EXPECT_EQ(doca_log_backend_set_sdk_level(reinterpret_cast<doca_log_backend*>(&no_backend), DOCA_LOG_LEVEL_INFO),
              DOCA_ERROR_INVALID_VALUE);
    for (std::uint32_t level : {0u, 9u, 41u, 80u, 4'000'000'000u}) {
        EXPECT_EQ(doca_log_level_set_global_lower_limit(level), DOCA_ERROR_INVALID_VALUE) << level;
        EXPECT_EQ(doca_log_level_set_global_sdk_limit(level), DOCA_ERROR_INVALID_VALUE) << level;
    }
    const ended_child ended = in_child([] {
        doca_log_backend* one = nullptr;
        doca_log_backend_create_with_file_sdk(stdout, &one);
        return doca_log_backend_set_sdk_level(one, 5) == DOCA_ERROR_INVALID_VALUE ? 0 : 1;
    });
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, HasSubstr("log level 5: no such level"));
}

} // namespace

} // namespace weftio::test
