// Threads, signals, and other processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "node.hpp"
#include "ordinary_file.hpp"

extern char** environ;

namespace weftio::test {

namespace {

/// The exit status of a child that runs `body`.
template <class Body>
int status_in_child(Body body)
{
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(AChild, HasAnEngineOfItsOwn)
{
    const int node = open_node(1);
    EXPECT_EQ(0, status_in_child([&] {
                  const int own = open_node(1), twin = ::dup(own);
                  if (ask(own) != answer_of_1 || ask(twin) != answer_of_1)
                      return 1;
                  const int grandchild = status_in_child([&] {
                      const int grandchilds = open_node(0);
                      return ask(grandchilds) == answer_of_0 && ask(own) == -1 && errno == EIO ? 0 : 1;
                  });
                  return grandchild == 0 && ask(own) == answer_of_1 ? 0 : 2;
              }));
    EXPECT_EQ(answer_of_1, ask(node));
    ::close(node);
}

TEST(AChild, CannotUseItsParentsNodes)
{
    const int node = open_node(1);
    const auto all_fail = [&] {
        const int twin = ::dup(node);
        const bool fail = ask(node) == -1 && errno == EIO && ask(twin) == -1 && errno == EIO;
        void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, node, 4096);
        return fail && page == MAP_FAILED && errno == EIO;
    };
    EXPECT_EQ(0, status_in_child([&] {
                  if (!all_fail())
                      return 1;
                  if (ask(open_node(0)) != answer_of_0)
                      return 2;
                  return all_fail() ? 0 : 3;
              }));
    EXPECT_EQ(answer_of_1, ask(node));
    ::close(node);
}

TEST(AChild, KnowsItsWorkingDirectoryByTheNameThatItsParentUsed)
{
    char before[PATH_MAX];
    ASSERT_NE(nullptr, ::getcwd(before, sizeof before));
    ASSERT_EQ(0, ::chdir("/sys/class/infiniband"));
    EXPECT_EQ(0, status_in_child([] {
                  char name[PATH_MAX];
                  if (std::string(::getcwd(name, sizeof name)) != "/sys/class/infiniband")
                      return 1;
                  if (ask(open_node(0)) != answer_of_0)
                      return 2;
                  return std::string(::getcwd(name, sizeof name)) == "/sys/class/infiniband" ? 0 : 3;
              }));
    EXPECT_EQ(0, ::chdir(before));
}

TEST(AChild, UsesNumbersOfNodesForOthers)
{
    const int node = open_node(1);
    EXPECT_EQ(0, status_in_child([&] {
                  ::close(node);
                  if (::open("/dev/null", O_RDWR) != node || ask(node) != 1)
                      return 1;
                  std::FILE* const stream = ::fdopen(node, "r+");
                  std::fclose(stream);
                  return ::open("/dev/null", O_RDWR) == node && ask(node) == 1 ? 0 : 2;
              }));
    EXPECT_EQ(0, status_in_child([&] {
                  std::FILE* const stream = ::fdopen(node, "r+");
                  std::fclose(stream); // calls no close() that a library can intercept
                  int ends[2];
                  ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
                  return ends[0] == node && ask(node) == 1 ? 0 : 1;
              }));
    EXPECT_EQ(answer_of_1, ask(node)) << "the parent's node is the parent's";
    ::close(node);
}

/// Calls that a child of vfork() makes before exec; it shares the parent's memory.
TEST(AChildThatSharesMemory, ChangesNothing)
{
    const int node = open_node(1), null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    volatile ssize_t answer = 0;
    const pid_t child = ::vfork();
    if (child == 0) {
        answer = ask(node);
        ::dup2(null, node);
        ::close(null);
        ::close(node);
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(-1, answer);
    EXPECT_EQ(answer_of_1, ask(node));
    EXPECT_EQ(1, ask(null));
    ::close(node);
    ::close(null);
}

TEST(AProgramThatIsStarted, HasAnEngineOfItsOwn)
{
    const int node = open_node(1);
    char shell[] = "/bin/sh", option[] = "-c", text[] = "ls /dev/infiniband | grep -c uverbs >/dev/null";
    char* const arguments[] = {shell, option, text, nullptr};
    pid_t child;
    ASSERT_EQ(0, ::posix_spawn(&child, shell, nullptr, nullptr, arguments, environ));
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
    EXPECT_EQ(answer_of_1, ask(node));
    ::close(node);
}

TEST(TheEnginesOwnCalls, PassBy)
{
    const int node = open_node(0);
    // 2: the host has no such device, and the engine sees the host.
    EXPECT_EQ(2, ask(node, "path"));
    ::close(node);
}

TEST(TheEngine, HidesDriversOfDpdkFromAThread)
{
    const ordinary_file file;
    const std::string folder = file.folder() + "/dpdk/pmds-23";
    std::filesystem::create_directories(folder);
    const int node = open_node(0);
    EXPECT_EQ(2, ask(node, folder));
    EXPECT_EQ(1, ask(node, file.folder())) << "nothing else is hidden";
    EXPECT_EQ(0, ::access(folder.c_str(), F_OK));
    struct stat found;
    EXPECT_EQ(0, ::stat(folder.c_str(), &found)) << "nor from the program";
    ::close(node);
}

TEST(TheEnginesThreads, PassByToo)
{
    const int node = open_node(0);
    const ssize_t before = reported_closes() + 1;
    EXPECT_EQ(2, ask(node, "thread"));
    EXPECT_EQ(before, reported_closes()) << "what the engine closes is not told to it";
    EXPECT_EQ(answer_of_0, ask(node));
    ::close(node);
}

TEST(Threads, OfTheProgramSeeDevices)
{
    bool seen = false;
    std::thread([&] { seen = ::access("/dev/infiniband/uverbs0", F_OK) == 0; }).join();
    EXPECT_TRUE(seen);
}

TEST(Threads, OpenUseAndCloseTheirOwnNodes)
{
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned device = 0; device < 4; ++device)
        threads.emplace_back([&wrong, device] {
            for (unsigned i = 0; i < 300; ++i) {
                const int node = open_node(device % 2), null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
                const int twin = ::dup(node);
                wrong += ask(node) != static_cast<ssize_t>(1000 + device % 2);
                ::close(node);
                wrong += ask(null) != 1;
                wrong += ask(twin) != static_cast<ssize_t>(1000 + device % 2);
                ::close(null);
                ::close(twin);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(0u, wrong);
}

int handlers_node = -1;
volatile sig_atomic_t handler_was_wrong = 0;
void close_a_twin(int)
{
    struct stat file;
    const int twin = ::dup(handlers_node);
    if (::fstat(twin, &file) != 0 || file.st_rdev != makedev(231, 193) || ::close(twin) != 0)
        handler_was_wrong = 1;
    if (::write(handlers_node, "x", 1) != answer_of_1)
        handler_was_wrong = 1;
}

TEST(ASignalHandler, MayUseNodes)
{
    handlers_node = open_node(1);
    struct sigaction action = {};
    struct sigaction before;
    action.sa_handler = close_a_twin;
    ::sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 100; ++i)
        ::raise(SIGUSR1);
    EXPECT_EQ(0, handler_was_wrong);
    ::sigaction(SIGUSR1, &before, nullptr);
    ::close(handlers_node);
}

bool plain_calls_fail = true;
void make_plain_calls()
{
    struct stat file;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    plain_calls_fail = ::fstat(null, &file) != 0 || ::stat("/dev/null", &file) != 0 || ::write(null, "x", 1) != 1 ||
                       ::access("/dev/null", F_OK) != 0 || ::close(::dup(null)) != 0 || ::close(null) != 0;
}

TEST(ASmallStack, IsEnoughForWhatIsOfNoDevice)
{
    make_plain_calls(); // the dynamic linker finds them now: that takes more
    const long page = ::sysconf(_SC_PAGESIZE);
    const auto bytes = static_cast<std::size_t>(page);
    auto* const memory =
        static_cast<char*>(::mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void*>(memory));
    ASSERT_EQ(0, ::mprotect(memory, bytes, PROT_NONE));
    ucontext_t here, there;
    ASSERT_EQ(0, ::getcontext(&there));
    there.uc_stack.ss_sp = memory + bytes;
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    ::makecontext(&there, make_plain_calls, 0);
    plain_calls_fail = true;
    ASSERT_EQ(0, ::swapcontext(&here, &there));
    EXPECT_FALSE(plain_calls_fail);
    ::munmap(memory, 2 * bytes);
}

/// Writes to a node until it is canceled.
void* ask_for_ever(void* node)
{
    while (ask(*static_cast<const int*>(node)) == answer_of_1)
        ::pthread_testcancel();
    return nullptr;
}

TEST(ACanceledThread, LeavesTheEngineFirst)
{
    int node = open_node(1);
    for (int i = 0; i < 50; ++i) {
        pthread_t thread;
        ASSERT_EQ(0, ::pthread_create(&thread, nullptr, ask_for_ever, &node));
        EXPECT_EQ(0, ::pthread_cancel(thread));
        void* result = nullptr;
        ::pthread_join(thread, &result);
        EXPECT_EQ(PTHREAD_CANCELED, result);
        EXPECT_EQ(answer_of_1, ask(node)) << "no lock of the engine's is held";
    }
    ::close(node);
}

} // namespace
} // namespace weftio::test
