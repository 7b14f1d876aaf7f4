// Memory that outlives the process that made it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weftio/memory_holder.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::size_t bytes = 3 << 20;

class MemoryHolder : public testing::Test {
 protected:
    MemoryHolder() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
    ~MemoryHolder() override { close_ends(); }
    void close_ends()
    {
        for (int& each : ends)
            if (each >= 0)
                close(std::exchange(each, -1));
    }
    template <class Action>
    static std::string refusal(errc code, Action&& action)
    {
        try {
            action();
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), code) << refused.what();
            return refused.what();
        }
        return "not refused";
    }
    static bool is_mapped_here(const std::string& name)
    {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find("/memfd:" + name) != line.npos)
                return true;
        return false;
    }

    std::array<int, 2> ends{};
    device cpu = device::open("cpu");
};

/// The first process makes and fills memory, hands it over and ends; keys of the second one reach the bytes.
TEST_F(MemoryHolder, IsThereWhenItsMakerHasEnded)
{
    const pid_t maker = fork();
    if (maker == 0) {
        const memory_holder held = memory_holder::make(bytes, "first");
        auto* const at =
            static_cast<char*>(mmap(nullptr, held.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, held.descriptor(), 0));
        std::fill_n(at, held.bytes(), 'm');
        held.send(ends[1]);
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(maker, &status, 0), maker);
    ASSERT_EQ(status, 0);
    std::optional<memory_holder> held(memory_holder::receive(ends[0]));
    EXPECT_EQ(held->bytes(), bytes);
    const memory here = held->map(cpu), copy = cpu.allocate(bytes, memory_kind::cpu_device);
    held.reset();
    const dma_engine engine({.mode = engine_mode::inline_worker});
    dma_queue queue(engine, cpu, {.entries = 64});
    const memory_region from(engine, here), to(engine, copy);
    ASSERT_EQ(weftio_dev_dma_memcpy(queue.handle(), from.buffer(), 0, to.buffer(), 0, bytes, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
    const auto* const seen = static_cast<const char*>(copy.cpu_address());
    EXPECT_EQ(std::count(seen, seen + bytes, 'm'), static_cast<std::ptrdiff_t>(bytes));
}

TEST_F(MemoryHolder, IsMappedAsOftenAsAskedForAndAsLongAsUsed)
{
    std::optional<memory_holder> held(memory_holder::make(5000, "twice"));
    EXPECT_EQ(held->bytes(), 8192u) << "whole pages";
    std::optional<memory> one(held->map(cpu)), other(held->map(cpu));
    EXPECT_NE(one->cpu_address(), other->cpu_address());
    EXPECT_EQ(one->kind(), memory_kind::cpu_device);
    EXPECT_EQ(one->bytes(), 8192u);
    std::strcpy(static_cast<char*>(one->cpu_address()), "the same");
    held.reset();
    EXPECT_STREQ(static_cast<const char*>(other->cpu_address()), "the same");
    {
        const dma_engine engine({.mode = engine_mode::inline_worker});
        const memory_region keeps(engine, *one);
        one.reset();
        other.reset();
        EXPECT_TRUE(is_mapped_here("twice")) << "a region keeps its memory";
    }
    EXPECT_FALSE(is_mapped_here("twice"));
}

TEST_F(MemoryHolder, IsClosedOnExecAndMoves)
{
    memory_holder first = memory_holder::make(1);
    EXPECT_TRUE(fcntl(first.descriptor(), F_GETFD) & FD_CLOEXEC);
    memory_holder second = std::move(first);
    EXPECT_EQ(first.descriptor(), -1);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { first.map(cpu); }), HasSubstr("moved from"));
    second.send(ends[0]);
    const memory_holder third = memory_holder::receive(ends[1]);
    EXPECT_TRUE(fcntl(third.descriptor(), F_GETFD) & FD_CLOEXEC);
    const int descriptor = dup(third.descriptor());
    EXPECT_EQ(memory_holder::take(descriptor).bytes(), 4096u);
    EXPECT_EQ(fcntl(descriptor, F_GETFD), -1) << "its own now, and closed with it";
}

TEST_F(MemoryHolder, RefusesWhatIsNoMemory)
{
    EXPECT_THAT(refusal(errc::invalid_argument, [] { memory_holder::make(0); }), HasSubstr("0 bytes; ask for"));
    EXPECT_THAT(refusal(errc::invalid_argument, [] { memory_holder::make(1, std::string(201, 'n')); }),
                HasSubstr("a name of 201 letters"));
    const memory_holder large = memory_holder::make(std::size_t{1} << 61); // pages come when they are written
    EXPECT_THAT(refusal(errc::out_of_memory, [&] { large.map(cpu); }), HasSubstr("maps no 2305843009213693952 bytes"));
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::take(ends[0]); }),
                HasSubstr("is no memory of memfd"));
    const int growing = memfd_create("growing", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::take(growing); }), HasSubstr("can shrink"));
    ASSERT_EQ(fcntl(growing, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::take(growing); }), HasSubstr("has no bytes"));
    EXPECT_EQ(close(growing), 0) << "refused, it stays the caller's";
}

std::ptrdiff_t open_descriptors()
{
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

void send_with(int socket, std::string_view text, const std::vector<int>& descriptors)
{
    std::vector<char> beside(CMSG_SPACE(descriptors.size() * sizeof(int)));
    iovec part{const_cast<char*>(text.data()), text.size()};
    msghdr sent{};
    sent.msg_iov = &part;
    sent.msg_iovlen = 1;
    sent.msg_control = beside.data();
    sent.msg_controllen = beside.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    ASSERT_EQ(sendmsg(socket, &sent, 0), static_cast<ssize_t>(text.size()));
}

TEST_F(MemoryHolder, RefusesWhatItDidNotSend)
{
    EXPECT_THAT(refusal(errc::timed_out, [&] { memory_holder::receive(ends[0], 10ms); }), HasSubstr("within 10 ms"));
    const std::ptrdiff_t before = open_descriptors();
    const memory_holder held = memory_holder::make(1);
    ASSERT_EQ(write(ends[1], "0123456789abcdef", 16), 16);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::receive(ends[0]); }),
                HasSubstr("is no memory of"));
    for (const std::size_t count : {1u, 2u, 250u}) {
        send_with(ends[1], "x", std::vector<int>(count, held.descriptor()));
        EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::receive(ends[0]); }),
                    HasSubstr("is no memory of"));
    }
    const std::string header = std::string("wftmem01") + std::string("\0\x10\0\0\0\0\0\0", 8);
    send_with(ends[1], header, {held.descriptor(), held.descriptor()});
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::receive(ends[0]); }),
                HasSubstr("is no memory of"));
    send_with(ends[1], header, {held.descriptor()});
    EXPECT_EQ(memory_holder::receive(ends[0]).bytes(), 4096u) << "that would be right";
    EXPECT_EQ(open_descriptors(), before + 1) << "that of `held`; nothing else is left open";
    close(std::exchange(ends[1], -1));
    EXPECT_THAT(refusal(errc::closed, [&] { held.send(ends[0]); }), HasSubstr("has closed"));
    EXPECT_THAT(refusal(errc::closed, [&] { memory_holder::receive(ends[0]); }), HasSubstr("has closed"));
}

TEST_F(MemoryHolder, RefusesOtherSockets)
{
    const memory_holder held = memory_holder::make(1);
    const int tcp = socket(AF_INET, SOCK_STREAM, 0), lonely = socket(AF_UNIX, SOCK_STREAM, 0);
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    for (const int each : {tcp, lonely, pipe_ends[0], -1}) {
        EXPECT_THAT(refusal(errc::invalid_argument, [&] { held.send(each); }),
                    HasSubstr("is no connected Unix socket"));
        EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::receive(each); }),
                    HasSubstr("is no connected Unix socket"));
    }
    for (const int each : {tcp, lonely, pipe_ends[0], pipe_ends[1]})
        close(each);
}

TEST_F(MemoryHolder, RefusesMemoryThatCannotBeWritten)
{
    const memory_holder held = memory_holder::make(1);
    const int reads = open(("/proc/self/fd/" + std::to_string(held.descriptor())).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_holder::take(reads); }),
                HasSubstr("is not to be written"));
    close(reads);
}

TEST_F(MemoryHolder, LosesNothingWhereNoDescriptorIsFree)
{
    memory_holder::make(3 * 4096).send(ends[1]);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    const std::string told = refusal(errc::out_of_memory, [&] { memory_holder::receive(ends[0]); });
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_THAT(told, HasSubstr("no descriptor left"));
    EXPECT_EQ(memory_holder::receive(ends[0]).bytes(), 3 * 4096u);
}

TEST_F(MemoryHolder, TakesAlongWhatOptionsOfASocketAdd)
{
    const int yes = 1;
    ASSERT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes), 0);
    memory_holder::make(1).send(ends[1]);
    EXPECT_EQ(memory_holder::receive(ends[0], std::chrono::milliseconds::max()).bytes(), 4096u);
}

TEST_F(MemoryHolder, WaitsWhereTheSocketTakesNothing)
{
    ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    const memory_holder held = memory_holder::make(1);
    constexpr unsigned times = 1000; // more than fit
    std::thread sends([&] {
        for (unsigned time = 0; time < times; ++time)
            held.send(ends[1]);
    });
    for (unsigned time = 0; time < times; ++time)
        EXPECT_EQ(memory_holder::receive(ends[0]).bytes(), 4096u);
    sends.join();
}

} // namespace
} // namespace weftio::test
