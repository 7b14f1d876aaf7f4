// EAL starts once a process: each fault in its start has a process of its own, this program run again.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "injection.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

constexpr const char* wish = "WEFTIO_FIRST_OPEN"; ///< "KIND NUMBER"
enum exit_status { harmless = 0, harmful = 1, not_reached = 2 };

/// The first port of this process, with a call that fails, and then again without.
exit_status open_first(calls kind, std::uint64_t number)
{
    bool reached = false;
    try {
        injected_fault fault(kind, how::once, number);
        try {
            port::open("null");
        } catch (const error& refused) {
            if (!std::string_view(refused.what()).starts_with("weftio: "))
                return harmful;
        } catch (const std::bad_alloc&) {
        }
        reached = fault.reached();
        if (!reached)
            return not_reached;
    } catch (const std::exception& other) {
        std::fprintf(stderr, "call %lu: %s\n", static_cast<unsigned long>(number), other.what());
        return harmful;
    }
    try {
        return port::open("null").driver() == "net_null" ? harmless : harmful;
    } catch (const std::exception& refused) {
        std::fprintf(stderr, "call %lu, the next port: %s\n", static_cast<unsigned long>(number), refused.what());
        return harmful;
    }
}

/// Runs this program again for one fault.
int in_a_process_of_its_own(calls kind, std::uint64_t number)
{
    std::string words = std::to_string(static_cast<int>(kind)) + " " + std::to_string(number);
    setenv(wish, words.c_str(), 1);
    char name[] = "faults_test";
    char* arguments[] = {name, nullptr};
    pid_t child = 0;
    int refused = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ);
    unsetenv(wish);
    int status = 0;
    if (refused != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return harmful;
    return WEXITSTATUS(status);
}

class FirstOpen : public testing::TestWithParam<calls> {};

TEST_P(FirstOpen, WithAnyCallThatFailsIsRefusedAndTheNextWorks)
{
#ifdef WEFTIO_TEST_SANITIZED
    if (GetParam() != calls::dpdk)
        GTEST_SKIP() << "missed: calls that fail and belong to the sanitizer here; a plain build has it";
#endif
    std::uint64_t number = 1;
    for (int status = harmless; status == harmless; ++number) {
        status = in_a_process_of_its_own(GetParam(), number);
        ASSERT_NE(status, harmful) << "call " << number;
    }
    EXPECT_GT(number, 2u); // one at least
    RecordProperty("calls", static_cast<int>(number - 2));
}

INSTANTIATE_TEST_SUITE_P(Of, FirstOpen, testing::Values(calls::allocation, calls::dpdk, calls::system),
                         [](const auto& info) {
                             return std::string(info.param == calls::allocation ? "Allocations"
                                                : info.param == calls::dpdk     ? "Dpdk"
                                                                                : "TheSystem");
                         });

} // namespace
} // namespace weftio::test

int main(int count, char** words)
{
    using namespace weftio::test;
    if (const char* wanted = std::getenv(wish)) {
        int kind = 0;
        unsigned long number = 0;
        if (std::sscanf(wanted, "%d %lu", &kind, &number) == 2)
            return open_first(static_cast<calls>(kind), number);
    }
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
}
