// Who can join a wire, and who cannot.
#include "wire_scene.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

namespace weftio::test {

namespace {

TEST_F(Wire, RefusesNamesThatAreNone)
{
    expect_refused(errc::invalid_argument, "a wire's name has 1 to 64 characters, this one has 0", "");
    expect_refused(errc::invalid_argument, "this one has 65", std::string(65, 'x'));
    for (const std::string name : {"a/b", "..", "a b", "a\n", "a,b"})
        if (name != "..")
            expect_refused(errc::invalid_argument, "only letters, digits and . _ -", name);
    EXPECT_EQ(join(std::string(64, 'x'))->slot(), 0u);
    EXPECT_EQ(join("..")->slot(), 0u) << "part of a name, and no folder";
}

TEST_F(Wire, RefusesAFolderThatIsNotThere)
{
    const std::string nowhere = folder() + "/nowhere";
    try {
        member("port wire:x", "x", nowhere);
        FAIL() << "joined";
    } catch (const error& refusal) {
        EXPECT_EQ(refusal.code(), errc::not_found);
        EXPECT_NE(std::string(refusal.what()).find("no folder " + nowhere), std::string::npos);
    }
}

TEST_F(Wire, RefusesTheFileOfAnotherUser)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "missed: the file of another user; needs root to make one";
    std::ofstream(path()) << "theirs";
    ASSERT_EQ(::chown(path().c_str(), 1000, 1000), 0);
    ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
    expect_refused(errc::permission_denied,
                   "belongs to user 1000, but only processes of one user share a wire (here: 0)");
    EXPECT_EQ(std::filesystem::file_size(path()), 6u) << "it is left alone";
}

TEST_F(Wire, RefusesAFileThatOthersCanOpen)
{
    std::ofstream(path()) << "shared";
    ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
    expect_refused(errc::permission_denied, "is not a file that only its owner can open (mode 100644)");
    EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(Wire, RemovesWiresWhoseMembersWereKilled)
{
    const auto living = join("living");
    const pid_t child = ::fork();
    if (child == 0) {
        const auto killed = join("killed");
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(std::filesystem::exists(path("killed")));
    std::ofstream(path("text")) << "no wire, but named like one";
    const auto one = join("another");
    EXPECT_FALSE(std::filesystem::exists(path("killed")));
    EXPECT_TRUE(std::filesystem::exists(path("living")));
    EXPECT_TRUE(std::filesystem::exists(path("text")));
    EXPECT_EQ(join("living")->slot(), 1u) << "the wire goes on";
}

TEST_F(Wire, IsNotHeldByAChildOfAKilledProcess)
{
    std::array<int, 2> ready{}, end{};
    char byte = 0;
    ASSERT_EQ(::pipe(ready.data()) | ::pipe(end.data()), 0);
    const auto one = join(); // keeps the file
    child parent([&] {
        const auto two = join();
        if (::fork() == 0) { // lives until the test closes its end
            ::close(end[1]);
            ::_exit(static_cast<int>(::read(end[0], &byte, 1)));
        }
        return static_cast<int>(::write(ready[1], "r", 1)) + ::pause();
    });
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    parent.end(SIGKILL);
    EXPECT_TRUE(eventually([&] { return join()->slot() == 1; }));
    for (const int each : {ready[0], ready[1], end[0], end[1]})
        ::close(each);
}

TEST_F(Wire, IsNotHeldByAChildWhenItIsLeft)
{
    auto one = join();
    const auto two = join(); // keeps the file
    const child forked([] { return ::pause(); });
    one.reset();
    EXPECT_EQ(join()->slot(), 0u);
}

TEST_F(Wire, RefusesALink)
{
    std::filesystem::create_symlink("elsewhere", path());
    expect_refused(errc::device_error, "cannot use");
    EXPECT_FALSE(std::filesystem::exists(folder() + "/elsewhere"));
}

TEST_F(Wire, RefusesMembersOfAnotherVersion)
{
    const auto one = join();
    const int file = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    const std::uint32_t version = 77;
    ASSERT_EQ(::pwrite(file, &version, sizeof version, offsetof(wires::head, version)), 4);
    expect_refused(errc::not_supported, "processes on this wire use another version of Weftio");
    ASSERT_EQ(::ftruncate(file, 64), 0);
    expect_refused(errc::not_supported, "version 0, here 1");
    ASSERT_EQ(::ftruncate(file, wires::head_bytes), 0);
    ::close(file);
    EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(Wire, MakesAFileThatNobodyHoldsAnew)
{
    std::ofstream(path()) << "what a killed process has left, or another version";
    ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
    const auto one = join(), two = join();
    EXPECT_EQ(send_now(*one, numbered(two->address(), 1, 60)), member::outcome::sent);
    EXPECT_EQ(receive_all(*two).size(), 1u);
}

TEST_F(Wire, IsNotMadeWhereTheFolderIsFull)
{
    if (!mount("256k"))
        GTEST_SKIP() << "missed: a full file system; needs root to mount a small one";
    expect_refused(errc::out_of_memory, "has no space for");
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Wire, IsNotJoinedWithoutRoomForALaneInEachDirection)
{
    if (!mount("1500k")) // the head, and almost two channels
        GTEST_SKIP() << "missed: a full file system; needs root to mount a small one";
    expect_refused(errc::out_of_memory, "has no space for 1024 KiB");
    EXPECT_FALSE(std::filesystem::exists(path()));
    ASSERT_EQ(::mount(nullptr, folder().c_str(), nullptr, MS_REMOUNT, "size=16m"), 0);
    const auto one = join();
}

TEST_F(Wire, IsNotMadeWhereFilesMayNotBeSoLong)
{
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_refused(errc::out_of_memory, "would exceed the file size limit of this process; raise it with");
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(Wire, DropsFramesForWhichThereIsNoLane)
{
    if (!mount("16m"))
        GTEST_SKIP() << "missed: a full file system; needs root to mount a small one";
    const auto one = join(), two = join(), three = join();
    ASSERT_EQ(::mount(nullptr, folder().c_str(), nullptr, MS_REMOUNT, "size=1200k"), 0); // the head, and one channel
    EXPECT_EQ(send_now(*one, numbered(two->address(), 1, 60)), member::outcome::sent);
    EXPECT_EQ(send_now(*one, numbered(three->address(), 2, 60)), member::outcome::dropped);
    EXPECT_EQ(send_now(*two, numbered(one->address(), 3, 60)), member::outcome::dropped);
    EXPECT_EQ(send_now(*three, numbered(everybody, 4, 60)), member::outcome::sent);
    EXPECT_EQ(three->dropped(), 2u);
    EXPECT_EQ(receive_all(*two).size(), 1u);
    ASSERT_EQ(::mount(nullptr, folder().c_str(), nullptr, MS_REMOUNT, "size=16m"), 0);
    EXPECT_TRUE(eventually([&] { return send_now(*one, numbered(three->address(), 5, 60)) == member::outcome::sent; }))
        << "it tries again";
    EXPECT_EQ(receive_all(*three).size(), 1u);
}

} // namespace

} // namespace weftio::test
