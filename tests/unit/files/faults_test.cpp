// Faults: each is an errno and a position, loses nothing silently and disturbs no other operation.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "refused_call.hpp"
#include "scratch_file.hpp"
#include "storage/transfer_queue.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"
#include "weftio/log.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;
using storage::io;

/// Executes at once, but for what the test injects.
class faulty_way final : public storage::way {
 public:
    /// What an io gives; nullopt: what the system says.
    std::function<std::optional<std::int64_t>(const io&)> inject;

    bool submit(const io& io) override
    {
        const auto injected = inject ? inject(io) : std::nullopt;
        done_.push_back({io.tag, injected ? *injected : storage::execute(io)});
        return true;
    }
    void flush() override {}
    std::size_t reap(std::span<storage::io_done> done) override
    {
        const std::size_t count = std::min(done.size(), done_.size());
        std::copy_n(done_.begin(), count, done.begin());
        done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }
    std::size_t in_flight() const noexcept override { return done_.size(); }
    void wait(std::chrono::nanoseconds) override {}
    void cancel(std::uint64_t) override {}
    file_way name() const noexcept override { return file_way::posix; }

 private:
    std::vector<storage::io_done> done_;
};

class Injected : public testing::Test {
 protected:
    static constexpr std::size_t part = 4096, bytes = 10 * part;

    file_result transfer(io::kind what)
    {
        const storage::place memory{.cpu = read.data(), .bytes = read.size()};
        EXPECT_TRUE(queue.submit({what, detail::internals::share(file), memory, bytes, 0, 1}));
        storage::ended ended;
        while (queue.take({&ended, 1}) == 0)
            queue.wait(1s);
        return ended.result;
    }

    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(bytes, 6);
    std::vector<std::byte> read = std::vector<std::byte>(bytes);
    const file_engine engine{{.only = file_way::posix, .depth = 3, .part_bytes = part}};
    const weftio::file file{engine, scratch.descriptor()};
    faulty_way* const way = new faulty_way;
    storage::transfer_queue queue{*detail::internals::share(engine), std::unique_ptr<storage::way>(way), 4};
    void SetUp() override { ASSERT_EQ(pwrite(scratch.descriptor(), content.data(), bytes, 0), 10 * 4096); }
};

TEST_F(Injected, AShortReadGoesOnWhereItEnded)
{
    way->inject = [](const io& io) -> std::optional<std::int64_t> {
        storage::io part = io;
        part.bytes = std::min(part.bytes, 1000U);
        return storage::execute(part);
    };
    EXPECT_EQ(transfer(io::kind::read).bytes, static_cast<std::int64_t>(bytes));
    EXPECT_EQ(read, content);
}

TEST_F(Injected, AnErrorTellsItsPositionAndWhatIsInFrontIsThere)
{
    way->inject = [](const io& io) -> std::optional<std::int64_t> {
        return io.offset == 5 * part ? std::optional<std::int64_t>(-EIO) : std::nullopt;
    };
    const file_result result = transfer(io::kind::read);
    EXPECT_EQ(result.error, EIO);
    EXPECT_EQ(result.bytes, static_cast<std::int64_t>(5 * part));
    EXPECT_EQ(result.position, 5 * part);
    EXPECT_TRUE(std::equal(read.begin(), read.begin() + 5 * part, content.begin()));
    EXPECT_EQ(engine.counters().of(file_way::posix).read_errors, 1U);
    EXPECT_EQ(engine.counters().of(file_way::posix).read_bytes, 5 * part);
}

TEST_F(Injected, TheFirstErrorOfTheFileIsToldAndNotThatOfTheTime)
{
    way->inject = [](const io& io) -> std::optional<std::int64_t> {
        if (io.offset == 2 * part)
            return 7; // goes on, and fails later than the part behind it
        if (io.offset == 2 * part + 7)
            return -ENOSPC;
        return io.offset == 3 * part ? std::optional<std::int64_t>(-EIO) : std::nullopt;
    };
    const file_result result = transfer(io::kind::write);
    EXPECT_EQ(result.error, ENOSPC);
    EXPECT_EQ(result.position, 2 * part + 7);
}

TEST_F(Injected, AWriteOfNothingIsAnErrorAndNoEndlessLoop)
{
    way->inject = [](const io&) { return std::optional<std::int64_t>(0); };
    EXPECT_EQ(transfer(io::kind::write).error, ENOSPC);
}

TEST_F(Injected, InterruptedIosAreRepeated)
{
    unsigned count = 0;
    way->inject = [&](const io&) -> std::optional<std::int64_t> {
        return ++count % 2 == 0 ? std::optional<std::int64_t>(-EINTR) : std::nullopt;
    };
    EXPECT_EQ(transfer(io::kind::read).bytes, static_cast<std::int64_t>(bytes));
    EXPECT_EQ(read, content);
}

TEST_F(Injected, ADescriptorThatIsClosedUnderATransferIsTold)
{
    const int brief = dup(scratch.descriptor());
    const weftio::file closed(engine, brief);
    way->inject = [&](const io& io) -> std::optional<std::int64_t> {
        if (io.offset == 4 * part)
            close(brief);
        return std::nullopt;
    };
    EXPECT_TRUE(queue.submit(
        {io::kind::read, detail::internals::share(closed), {.cpu = read.data(), .bytes = bytes}, bytes, 0, 1}));
    storage::ended ended;
    while (queue.take({&ended, 1}) == 0)
        queue.wait(1s);
    EXPECT_EQ(ended.result.error, EBADF);
    EXPECT_EQ(ended.result.position, 4 * part);
    EXPECT_EQ(closed.read(read.data(), 10, 3).error, EBADF);
    EXPECT_EQ(file.read(read.data(), 10, 3).bytes, 10);
}

class Faults : public testing::TestWithParam<file_way> {
 protected:
    void SetUp() override
    try {
        engine.emplace(file_engine_options{.only = GetParam(), .depth = 4, .part_bytes = 16384});
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    std::optional<file_engine> engine;
};

TEST_P(Faults, AFileThatIsTruncatedUnderReadsEndsThereWithoutAnError)
{
    const scratch_file scratch;
    constexpr std::int64_t whole = 200'000;
    const auto content = pattern(whole, 3);
    const file file(*engine, scratch.descriptor());
    ASSERT_EQ(pwrite(scratch.descriptor(), content.data(), content.size(), 0), whole);
    std::atomic<bool> stop = false;
    std::thread truncates([&] {
        while (!stop) {
            (void)!ftruncate(scratch.descriptor(), 50'000);
            (void)!pwrite(scratch.descriptor(), content.data(), content.size(), 0);
        }
    });
    std::vector<std::byte> read(whole);
    for (unsigned i = 0; i < 100; ++i) {
        const file_result result = file.read(read.data(), read.size(), 0);
        EXPECT_EQ(result.error, 0);
        EXPECT_GE(result.bytes, 50'000);
        EXPECT_TRUE(std::equal(read.begin(), read.begin() + 50'000, content.begin()));
    }
    stop = true;
    truncates.join();
}

TEST_P(Faults, SignalsDisturbNoOperation)
{
    const scratch_file scratch;
    const auto content = pattern(300'000, 3);
    const file file(*engine, scratch.descriptor());
    struct sigaction ignoring {
    }, before{};
    ignoring.sa_handler = [](int) {};
    sigaction(SIGALRM, &ignoring, &before); // without SA_RESTART
    const itimerval often{{0, 300}, {0, 300}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    std::vector<std::byte> read(content.size());
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(file.write(content.data(), content.size(), i).bytes, 300'000);
        EXPECT_EQ(file.read(read.data(), read.size(), i).bytes, 300'000);
        EXPECT_TRUE(file.sync(true).ok());
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    EXPECT_EQ(read, content);
}

/// As root: a file system, or a device, that fails in earnest.
class scratch_device {
 public:
    explicit scratch_device(const std::string& kind) : image_(0), folder_(image_.path() + ".mounted")
    {
        ok_ = ftruncate(image_.descriptor(), 4 << 20) == 0 && run("losetup -f --show --direct-io=on " + image_.path());
        if (ok_ && kind == "ext4")
            mounted_ = ok_ = run("mkfs.ext4 -q -O ^has_journal " + path_) && run("mkdir " + folder_) &&
                             run("mount " + path_ + " " + folder_);
    }
    scratch_device(const scratch_device&) = delete;
    scratch_device& operator=(const scratch_device&) = delete;
    ~scratch_device()
    {
        if (mounted_)
            run("umount " + folder_);
        run("rmdir " + folder_);
        if (!path_.empty())
            run("losetup -d " + path_);
    }
    bool ok() const { return ok_; }
    const std::string& device() const { return path_; }
    const std::string& folder() const { return folder_; }
    int image() const { return image_.descriptor(); }

 private:
    bool run(const std::string& command)
    {
        FILE* output = popen((command + " 2>/dev/null").c_str(), "re");
        char line[128] = "";
        const bool said = output && std::fgets(line, sizeof line, output);
        const bool done = output && pclose(output) == 0;
        if (said && path_.empty())
            path_ = std::string(line).substr(0, std::string(line).find('\n'));
        return done;
    }

    scratch_file image_;
    std::string folder_, path_;
    bool ok_ = false, mounted_ = false;
};

TEST_P(Faults, ADeviceThatFailsIsEioAtThatPosition)
{
    const scratch_device drive("raw");
    if (!drive.ok())
        GTEST_SKIP() << "no loop device: needs root";
    const int descriptor = open(drive.device().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    ASSERT_GE(descriptor, 0);
    ASSERT_EQ(ftruncate(drive.image(), 1 << 20), 0); // the device still says that it has 4 MiB
    {
        const file file(*engine, descriptor);
        std::vector<std::byte> room(3 << 20);
        std::byte* const aligned = room.data() + (4096 - reinterpret_cast<std::uintptr_t>(room.data()) % 4096);
        const file_result result = file.read(aligned, 2 << 20, 0);
        EXPECT_EQ(result.error, EIO);
        EXPECT_EQ(result.position, 1U << 20);
        EXPECT_EQ(file.read(aligned, 1 << 20, 0).bytes, 1 << 20);
        EXPECT_EQ(file.read(aligned, 100, 3 << 20).error, EIO);
    }
    close(descriptor);
}

TEST_P(Faults, AFullFileSystemIsEnospcAtThatPosition)
{
    const scratch_device drive("ext4");
    if (!drive.ok())
        GTEST_SKIP() << "no loop device, or no mkfs.ext4: needs root";
    {
        const scratch_file full(0, drive.folder().c_str());
        const file file(*engine, full.descriptor());
        const auto content = pattern(8 << 20, 1);
        const file_result result = file.write(content.data(), content.size(), 0);
        EXPECT_EQ(result.error, ENOSPC);
        EXPECT_GT(result.bytes, 0);
        EXPECT_EQ(result.position, static_cast<std::uint64_t>(result.bytes));
        std::vector<std::byte> read(static_cast<std::size_t>(result.bytes));
        EXPECT_EQ(file.read(read.data(), read.size(), 0).bytes, result.bytes);
        EXPECT_TRUE(std::equal(read.begin(), read.end(), content.begin()));
    }
}

std::string way_of(const testing::TestParamInfo<file_way>& way)
{
    return to_string(way.param);
}
INSTANTIATE_TEST_SUITE_P(Ways, Faults, testing::Values(file_way::uring, file_way::posix), way_of);

/// Runs `body` in a child; returns what it returns.
template <class Body>
int in_child(Body&& body)
{
    const pid_t child = fork();
    if (child == 0) {
        int status = 99;
        try {
            status = body();
        } catch (const std::exception&) { // 99
        }
        _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(FilesOfAChild, SayOneSentenceAndLeaveTheParentAlone)
{
    const scratch_file scratch;
    const file_engine engine;
    const file file(engine, scratch.descriptor());
    file_batch batch(engine, 4);
    const auto content = pattern(5000, 2);
    ASSERT_EQ(file.write(content.data(), content.size(), 0).bytes, 5000);
    std::vector<std::byte> read(5000);
    EXPECT_EQ(in_child([&] {
                  try {
                      (void)file.read(read.data(), read.size(), 0);
                      return 1;
                  } catch (const error& said) {
                      if (said.code() != errc::closed || !std::strstr(said.what(), "child of fork()"))
                          return 2;
                  }
                  const file_engine own({.only = file_way::posix});
                  return weftio::file(own, scratch.descriptor()).read(read.data(), read.size(), 0).bytes == 5000 ? 0
                                                                                                                 : 3;
              }),
              0);
    EXPECT_EQ(file.read(read.data(), read.size(), 0).bytes, 5000);
    EXPECT_EQ(read, content);
}

bool is_refused(file_engine_options options, const char* word)
try {
    (void)file_engine(std::move(options));
    return false;
} catch (const error& said) {
    return said.code() == errc::not_supported && std::strstr(said.what(), word);
}

TEST(RefusedUring, FilesGoByPosixWhichIsSaidOnceAndCounted)
{
    const scratch_file scratch;
    std::atomic<unsigned> lines = 0;
    set_log_sink([&](log_level level, std::string_view line) {
        lines += level == log_level::warning && line.find("seccomp") != line.npos;
    });
    where_refused(__NR_io_uring_setup, EPERM, [&] {
        const file_engine engine;
        const file file(engine, scratch.descriptor());
        std::vector<std::byte> bytes(3 << 20);
        const file_result small = file.write(bytes.data(), 100, 0);
        EXPECT_EQ(small.bytes, 100);
        EXPECT_EQ(small.way, file_way::posix);
        EXPECT_EQ(small.fall, file_fall::no_uring);
        const file_result large = file.write(bytes.data(), bytes.size(), 0);
        EXPECT_EQ(large.bytes, 3 << 20);
        EXPECT_EQ(large.way, file_way::posix);
        EXPECT_EQ(large.fall, file_fall::no_uring);
        EXPECT_EQ(engine.counters().of(file_fall::no_uring), 2U);
    });
    set_log_sink({});
    EXPECT_EQ(lines, 1U);
}

TEST(RefusedUring, StrictEnginesAndThoseOfUringOnlyAreNotMade)
{
    for (const int failure : {EPERM, ENOSYS})
        where_refused(__NR_io_uring_setup, failure, [&] {
            EXPECT_TRUE(is_refused({.strict = true}, "io_uring is unavailable"));
            EXPECT_TRUE(is_refused({.only = file_way::uring}, failure == EPERM ? "seccomp" : "Linux 5.11"));
            EXPECT_TRUE(file_engine({.strict = true, .only = file_way::posix}).has(file_way::posix));
        });
}

} // namespace

} // namespace weftio::test
