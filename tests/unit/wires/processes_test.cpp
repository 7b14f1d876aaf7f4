// Members of a wire in several processes.
#include "wire_scene.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "wires/file_locks.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;
using outcome = member::outcome;

/// Words that processes share.
class SharedWire : public Wire {
 protected:
    SharedWire()
        : words_(static_cast<std::atomic<std::uint64_t>*>(
              ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
    {}
    ~SharedWire() override { ::munmap(words_, 4096); }

    std::atomic<std::uint64_t>& word(unsigned at) { return words_[at]; }
    static void rest() { std::this_thread::sleep_for(20us); }

    /// Sends a frame, and waits while there is no room.
    static bool send_at_last(member& from, const frame& what)
    {
        outcome result = outcome::full;
        const bool done = eventually([&] {
            for (unsigned tries = 0; tries != 1000 && result == outcome::full; ++tries)
                if (result = send_now(from, what); result == outcome::full)
                    rest();
            return result != outcome::full;
        });
        return done && result == outcome::sent;
    }

 private:
    std::atomic<std::uint64_t>* words_;
};

/// What a process does that sends `count` frames of random length to another, and receives as many. A frame is dropped
/// while the other gets no core for 100 ms, and sent again.
int echo_peer(member& self, const mac& to, std::uint64_t count, unsigned seed)
{
    dice random(seed);
    std::uint64_t sent = 0, received = 0;
    const auto end = std::chrono::steady_clock::now() + patience;
    while ((sent != count || received != count) && std::chrono::steady_clock::now() < end) {
        for (unsigned burst = 0; burst != 32 && sent != count; ++burst, ++sent)
            if (self.send(numbered(to, sent, 60 + random(4150))) != outcome::sent)
                break;
        self.publish();
        const std::vector<frame> all = receive_all(self);
        for (const frame& each : all)
            if (number_of(each) != received++)
                return 3;
        if (all.empty())
            std::this_thread::sleep_for(20us);
    }
    return sent == count && received == count ? 0 : 4;
}

TEST_F(SharedWire, CarriesFramesBetweenTwoProcessesInBothDirections)
{
    constexpr std::uint64_t count = 20'000;
    const auto self = join();
    child peer([&] {
        const auto at = join();
        word(0) = 1;
        return echo_peer(*at, self->address(), count, 1);
    });
    ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
    const mac theirs = self->members().at(1).address;
    EXPECT_EQ(echo_peer(*self, theirs, count, 2), 0);
    EXPECT_EQ(peer.exit_status(), 0);
}

TEST_F(SharedWire, SeesWholeFramesOfASenderThatIsKilled)
{
    const auto self = join();
    std::uint64_t seen = 0;
    for (unsigned round = 0; round != 20; ++round) {
        word(0) = 0;
        child peer([&] {
            const auto at = join();
            dice random(round);
            for (std::uint64_t number = 0;; ++number) {
                at->send(numbered(self->address(), number, 60 + random(4150)));
                if (number % 7 == 0)
                    at->publish();
                word(0) = number;
            }
            return 0;
        });
        std::uint64_t last = 0;
        const auto take = [&] {
            for (const frame& each : receive_all(*self)) {
                const auto number = number_of(each);
                ASSERT_TRUE(number) << "in round " << round;
                ASSERT_TRUE(last == 0 || *number > last || *number == 0) << *number << " after " << last;
                last = *number;
                ++seen;
            }
        };
        ASSERT_TRUE(eventually([&] { return take(), word(0) > 500 + round; }));
        peer.end(SIGKILL);
        take();
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_TRUE(receive_all(*self).empty());
        EXPECT_EQ(self->members().size(), 1u);
    }
    EXPECT_GT(seen, 20u * 100);
}

TEST_F(SharedWire, GivesTheSlotOfAKilledMemberToTheNext)
{
    const auto self = join();
    for (unsigned round = 0; round != 5; ++round) {
        word(0) = 0;
        child peer([&] {
            const auto at = join();
            word(0) = 1 + at->slot();
            for (;;)
                ::pause();
            return 0;
        });
        ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
        EXPECT_EQ(word(0), 2u);
        const mac theirs = self->members().at(1).address;
        EXPECT_EQ(send_now(*self, numbered(theirs, 1, 60)), outcome::sent);
        peer.end(SIGKILL);
        const auto next = join();
        EXPECT_EQ(next->slot(), 1u);
        EXPECT_NE(next->address(), theirs);
        EXPECT_TRUE(receive_all(*next).empty());
        EXPECT_EQ(send_now(*self, numbered(theirs, 2, 60)), outcome::dropped);
    }
}

TEST_F(SharedWire, DropsFramesForAMemberThatWasKilled)
{
    const auto self = join();
    child peer([&] {
        const auto at = join();
        word(0) = 1;
        for (;;)
            ::pause();
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
    const mac theirs = self->members().at(1).address;
    EXPECT_EQ(send_now(*self, numbered(theirs, 0, 60)), outcome::sent);
    peer.end(SIGKILL);
    std::uint64_t in_channel = 0;
    EXPECT_TRUE(eventually([&] {
        const outcome result = send_now(*self, numbered(theirs, 1, 60));
        in_channel += result == outcome::sent;
        return result == outcome::dropped;
    }));
    EXPECT_LT(in_channel, 3000u) << "it is found dead before its lane is full";
    EXPECT_EQ(send_now(*self, numbered(everybody, 2, 60)), outcome::sent);
    EXPECT_EQ(self->dropped(), 1u) << "nobody else is there";
}

TEST_F(SharedWire, GoesOnWithAMemberThatWasStopped)
{
    const auto self = join();
    child peer([&] {
        const auto at = join();
        word(0) = 1;
        for (std::uint64_t received = 0;; rest())
            word(1) = received += receive_all(*at).size();
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
    const mac theirs = self->members().at(1).address;
    peer.signal(SIGSTOP);
    EXPECT_TRUE(eventually([&] { return send_now(*self, numbered(theirs, 1, 4000)) == outcome::dropped; }));
    const std::uint64_t before = word(1);
    peer.signal(SIGCONT);
    EXPECT_TRUE(eventually([&] { return word(1) > before + 100; }));
    EXPECT_EQ(send_now(*self, numbered(theirs, 1, 60)), outcome::sent);
}

TEST_F(SharedWire, KnowsThatAStoppedMemberHasYetToReadAndThatAKilledOneNeverWill)
{
    const auto self = join();
    child peer([&] {
        const auto at = join();
        word(0) = 1;
        for (;; rest())
            receive_all(*at);
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
    const mac theirs = self->members().at(1).address;
    peer.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] {
        std::uint64_t last = 0;
        send_now(*self, numbered(theirs, 1, 60));
        rest();
        return self->is_unread(theirs, last);
    }));
    std::uint64_t sent = 0;
    for (int looks = 0; looks != 50; ++looks, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
        EXPECT_TRUE(self->is_unread(theirs, sent));
    EXPECT_FALSE(self->has_left(theirs)) << "stopped";
    peer.end(SIGKILL);
    EXPECT_TRUE(eventually([&] { return !self->is_unread(theirs, sent); }));
    EXPECT_TRUE(eventually([&] { return self->has_left(theirs); }));
}

/// How many descriptors of a file a process has.
unsigned descriptors_of(pid_t process, const std::string& path)
{
    unsigned count = 0;
    std::error_code gone;
    for (const auto& each : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), gone))
        if (std::filesystem::read_symlink(each.path(), gone) == path)
            ++count;
    return count;
}

TEST_F(SharedWire, JoinsNoFileThatTheLastMemberHasRemoved)
{
    const int file = ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_TRUE(wires::try_lock(file, 0)) << "as who leaves";
    child peer([&] {
        const auto at = join();
        word(0) = 1;
        for (;;)
            ::pause();
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return descriptors_of(peer.process(), path()) == 2; }))
        << "one inherited, one its own";
    ASSERT_EQ(::unlink(path().c_str()), 0);
    wires::release_lock(file, 0);
    ::close(file);
    ASSERT_TRUE(eventually([&] { return word(0) != 0; }));
    EXPECT_EQ(join()->slot(), 1u) << "both are on one wire";
}

TEST_F(SharedWire, IsOneWireHoweverManyJoinAndLeaveAtOnce)
{
    std::vector<std::unique_ptr<child>> all;
    for (unsigned each = 0; each != 6; ++each)
        all.push_back(std::make_unique<child>([&, each] {
            dice random(each);
            for (unsigned round = 0; round != 150; ++round) {
                const auto one = join(), two = join();
                if (random(2) == 0)
                    rest();
                if (send_now(*one, numbered(two->address(), round, 60)) != outcome::sent)
                    return 2; // they are not on one wire
                if (receive_all(*two).size() != 1)
                    return 3;
            }
            return 0;
        }));
    for (const auto& each : all)
        EXPECT_EQ(each->exit_status(), 0);
    EXPECT_FALSE(std::filesystem::exists(path()));
}

} // namespace

} // namespace weftio::test
