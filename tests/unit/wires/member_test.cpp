// Members of a wire in one process.
#include "wire_scene.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <deque>
#include <map>
#include <set>
#include <thread>

namespace weftio::test {

namespace {

using outcome = member::outcome;

TEST_F(Wire, BringsAFrameToTheMemberWithItsMac)
{
    const auto one = join(), two = join(), three = join();
    const frame sent = numbered(two->address(), 1, 100);
    EXPECT_EQ(one->send(sent), outcome::sent);
    EXPECT_TRUE(receive_all(*two).empty()) << "before publish()";
    one->publish();
    EXPECT_EQ(receive_all(*two), frames{sent});
    EXPECT_TRUE(receive_all(*two).empty());
    EXPECT_TRUE(receive_all(*three).empty());
    EXPECT_EQ(one->dropped(), 0u);
}

TEST_F(Wire, KnowsWhichFramesAMemberHasYetToRead)
{
    const auto one = join();
    auto two = join();
    const mac theirs = two->address();
    std::uint64_t none = 0, first = 0, later = 0;
    EXPECT_FALSE(one->is_unread(theirs, none)) << "there is no channel";
    send_now(*one, numbered(theirs, 1, 100));
    EXPECT_TRUE(one->is_unread(theirs, first));
    EXPECT_NE(first, 0u);
    receive_all(*two);
    EXPECT_FALSE(one->is_unread(theirs, first));
    send_now(*one, numbered(theirs, 2, 100));
    EXPECT_FALSE(one->is_unread(theirs, first)) << "the first one is read";
    EXPECT_TRUE(one->is_unread(theirs, later));
    mac other = theirs;
    other[1] ^= 1;
    EXPECT_FALSE(one->is_unread(other, later));
    EXPECT_FALSE(one->is_unread({2, 0, 0, 0, 0, 200}, later));
    two.reset();
    EXPECT_FALSE(one->is_unread(theirs, later)) << "it has left";
}

TEST_F(Wire, KnowsWhoHasLeft)
{
    const auto one = join();
    auto two = join();
    const mac theirs = two->address();
    EXPECT_FALSE(one->has_left(theirs));
    EXPECT_FALSE(one->has_left(one->address()));
    EXPECT_FALSE(one->has_left({2, 0, 0, 0, 0, 1})) << "no address of the wire";
    send_now(*two, numbered(one->address(), 1, 60));
    two.reset();
    EXPECT_FALSE(one->has_left(theirs)) << "before its last frame";
    EXPECT_EQ(receive_all(*one).size(), 1u);
    EXPECT_TRUE(one->has_left(theirs));
    two = join();
    EXPECT_TRUE(one->has_left(theirs)) << "another one has its slot";
    EXPECT_FALSE(one->has_left(two->address()));
}

TEST_F(Wire, BringsAFrameToItsSender)
{
    const auto one = join();
    EXPECT_EQ(send_now(*one, numbered(one->address(), 1, 60)), outcome::sent);
    EXPECT_EQ(receive_all(*one).size(), 1u);
}

TEST_F(Wire, BringsBroadcastsToAllOthers)
{
    std::vector<std::unique_ptr<member>> all;
    for (unsigned count = 0; count != 5; ++count)
        all.push_back(join());
    const mac group{0x33, 0x33, 0, 0, 0, 1};
    EXPECT_EQ(send_now(*all[2], numbered(everybody, 7, 60)), outcome::sent);
    EXPECT_EQ(send_now(*all[2], numbered(group, 8, 60)), outcome::sent);
    for (const auto& each : all)
        EXPECT_EQ(receive_all(*each).size(), each == all[2] ? 0u : 2u);
}

TEST_F(Wire, DropsFramesThatNobodyGets)
{
    const auto one = join();
    mac gone{};
    {
        const auto two = join();
        gone = two->address();
    }
    mac wrong = one->address();
    wrong[1] ^= 1;
    const std::vector<frame> bad{numbered(gone, 1, 60), numbered(wrong, 1, 60), numbered({2, 0, 0, 0, 0, 200}, 1, 60),
                                 frame(13, 2), numbered(one->address(), 1, wires::most_frame_bytes + 1)};
    for (const frame& each : bad)
        EXPECT_EQ(send_now(*one, each), outcome::dropped);
    EXPECT_EQ(one->dropped(), bad.size());
    EXPECT_EQ(send_now(*one, numbered(everybody, 1, 60)), outcome::sent) << "to nobody, as on a cable without peer";
    EXPECT_EQ(one->dropped(), bad.size());
}

TEST_F(Wire, GivesASlotAgainWithAnotherMacAndNoOldFrames)
{
    const auto one = join();
    auto two = join();
    const mac before = two->address();
    send_now(*one, numbered(before, 1, 60));
    send_now(*one, numbered(everybody, 1, 60));
    send_now(*two, numbered(one->address(), 2, 60));
    two.reset();
    two = join();
    EXPECT_EQ(two->slot(), 1u);
    EXPECT_NE(two->address(), before);
    EXPECT_TRUE(receive_all(*two).empty());
    EXPECT_EQ(send_now(*one, numbered(before, 3, 60)), outcome::dropped);
    EXPECT_EQ(send_now(*one, numbered(two->address(), 4, 60)), outcome::sent);
    EXPECT_EQ(receive_all(*two), frames{numbered(two->address(), 4, 60)});
    EXPECT_EQ(receive_all(*one), frames{numbered(one->address(), 2, 60)}) << "sent before its sender left";
}

TEST_F(Wire, KeepsFramesOfAnEarlierMemberFromTheNext)
{
    const auto one = join();
    auto two = join();
    EXPECT_EQ(one->send(numbered(two->address(), 1, 60)), outcome::sent);
    two.reset();
    two = join();
    EXPECT_EQ(one->send(numbered(two->address(), 2, 60)), outcome::sent);
    one->publish();
    EXPECT_EQ(receive_all(*two), frames{numbered(two->address(), 2, 60)});
    EXPECT_EQ(two->stray(), 1u);
}

TEST_F(Wire, HoldsBackWhileTheReceiverMakesProgress)
{
    const auto one = join(), two = join();
    const frame sent = numbered(two->address(), 1, 4000);
    unsigned count = 0;
    while (send_now(*one, sent) == outcome::sent)
        ++count;
    EXPECT_GT(count, 100u);
    for (unsigned round = 0; round != 20; ++round) {
        EXPECT_EQ(send_now(*one, sent), outcome::full);
        ASSERT_FALSE(two->front().empty());
        two->pop();
        two->release();
        EXPECT_EQ(send_now(*one, sent), outcome::sent);
    }
    EXPECT_EQ(one->dropped(), 0u);
    EXPECT_EQ(receive_all(*two).size(), count);
}

TEST_F(Wire, DropsWhatAnIdleReceiverHasNoRoomFor)
{
    const auto one = join(), two = join();
    const frame sent = numbered(two->address(), 1, 4000);
    while (send_now(*one, sent) == outcome::sent) {
    }
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(eventually([&] { return send_now(*one, sent) == outcome::dropped; }));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(80));
    EXPECT_EQ(send_now(*one, sent), outcome::dropped) << "at once";
    EXPECT_EQ(send_now(*one, numbered(everybody, 1, 4000)), outcome::sent);
    EXPECT_EQ(one->dropped(), 3u);
    receive_all(*two);
    EXPECT_EQ(send_now(*one, sent), outcome::sent) << "it receives again";
}

TEST_F(Wire, KnowsNothingOfTheTimeInWhichItSendsNothing)
{
    const auto one = join(), two = join();
    const frame sent = numbered(two->address(), 1, 4000);
    while (send_now(*one, sent) == outcome::sent) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    EXPECT_EQ(send_now(*one, sent), outcome::full) << "the receiver may have had no core";
    EXPECT_EQ(one->dropped(), 0u);
}

TEST_F(Wire, HearsAllSendersWhileOneSendsWithoutEnd)
{
    const auto one = join(), two = join(), three = join();
    const frame endless = numbered(two->address(), 1, 60), rare = numbered(two->address(), 2, 60);
    for (unsigned count = 0; count != 100; ++count)
        send_now(*one, endless);
    unsigned taken = 0;
    for (bool came = false; !came; ++taken) {
        ASSERT_LT(taken, 100u) << "before the frame of another";
        const auto got = two->front();
        ASSERT_FALSE(got.empty());
        came = std::ranges::equal(got, rare);
        two->pop();
        two->release();
        send_now(*one, endless);
        if (taken == 0)
            send_now(*three, rare);
    }
}

TEST_F(Wire, IsAsAModelSays)
{
    constexpr unsigned count = 5;
    dice random(4711);
    std::vector<std::unique_ptr<member>> all;
    for (unsigned each = 0; each != count; ++each)
        all.push_back(join());
    std::map<std::pair<unsigned, unsigned>, std::deque<frame>> model; // [sender, receiver]
    std::uint64_t full = 0, received = 0;
    const auto taken = [&](unsigned at, const frame& got) { // from the one sender whose next frame it is
        for (unsigned from = 0; from != count; ++from)
            if (auto& channel = model[{from, at}]; !channel.empty() && channel.front() == got)
                return channel.pop_front(), true;
        return false;
    };
    for (std::uint64_t number = 0; number != 30'000; ++number) {
        const unsigned from = random(count), to = random(count + 1);
        const std::size_t bytes = random(4) == 0 ? 14 + random(16'000) : 60 + random(1500);
        const frame sent = numbered(to == count ? everybody : all[to]->address(), number, bytes);
        const std::uint64_t dropped = all[from]->dropped();
        const outcome result = all[from]->send(sent);
        full += result == outcome::full;
        ASSERT_NE(result, outcome::dropped);
        for (unsigned each = 0; each != count && result == outcome::sent && to != count; ++each)
            if (each == to)
                model[{from, each}].push_back(sent);
        if (to == count) { // a full ring drops a broadcast without notice, so all receive before the next broadcast
            ASSERT_EQ(all[from]->dropped(), dropped);
            for (unsigned each = 0; each != count; ++each)
                if (each != from)
                    model[{from, each}].push_back(sent);
        }
        all[from]->publish();
        const unsigned at = random(count);
        for (const frame& got : receive_all(*all[at])) {
            ASSERT_TRUE(taken(at, got)) << "frame of " << got.size() << " bytes at " << at;
            ++received;
        }
    }
    EXPECT_GT(received, 30'000u);
    EXPECT_EQ(full, 0u);
}

TEST_F(Wire, HasRoomFor64)
{
    std::vector<std::unique_ptr<member>> all;
    std::set<mac> macs;
    for (unsigned slot = 0; slot != wires::most_members; ++slot) {
        all.push_back(join());
        EXPECT_EQ(all.back()->slot(), slot);
        macs.insert(all.back()->address());
    }
    EXPECT_EQ(macs.size(), wires::most_members);
    expect_refused(errc::in_use, "the wire has 64 members, the maximum");
    EXPECT_EQ(send_now(*all[63], numbered(all[0]->address(), 1, 60)), outcome::sent);
    EXPECT_EQ(send_now(*all[0], numbered(everybody, 2, 60)), outcome::sent);
    EXPECT_EQ(receive_all(*all[0]).size(), 1u);
    EXPECT_EQ(receive_all(*all[63]).size(), 1u);
    all.erase(all.begin() + 20);
    EXPECT_EQ(join()->slot(), 20u);
    EXPECT_EQ(all[0]->dropped(), 0u);
}

TEST_F(Wire, TellsWhoItsMembersAre)
{
    EXPECT_TRUE(wires::members_of("test", folder()).empty());
    const auto one = join();
    auto two = join();
    two->tell_queues(16400, 16384);
    const wires::gid address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    two->tell_address(address);
    for (const auto& facts : {one->members(), two->members(), wires::members_of("test", folder())}) {
        ASSERT_EQ(facts.size(), 2u);
        EXPECT_EQ(facts[0].address, one->address());
        EXPECT_EQ(facts[0].queues, 0u);
        EXPECT_EQ(facts[1].slot, 1u);
        EXPECT_EQ(facts[1].process, static_cast<std::uint32_t>(::getpid()));
        EXPECT_EQ(facts[1].first_queue, 16400u);
        EXPECT_EQ(facts[1].queues, 16384u);
        EXPECT_EQ(facts[1].first_address, address);
    }
    two.reset();
    EXPECT_EQ(one->members().size(), 1u);
}

TEST_F(Wire, RemovesItsFileWithTheLastMember)
{
    auto one = join(), two = join();
    EXPECT_TRUE(std::filesystem::exists(path()));
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0600u);
    one.reset();
    EXPECT_TRUE(std::filesystem::exists(path()));
    two.reset();
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Wire, EmptiesARingThatMakesNoSense)
{
    const auto one = join(), two = join();
    send_now(*one, numbered(two->address(), 1, 60));
    receive_all(*two);
    const int file = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    dice random(1);
    for (unsigned round = 0; round != 300; ++round) {
        send_now(*one, numbered(two->address(), 2, 200));
        std::array<std::uint32_t, 64> noise;
        std::ranges::generate(noise, [&] { return random(UINT32_MAX) >> random(32); });
        for (off_t at = 0; at < 32768; at += sizeof noise)
            ASSERT_EQ(::pwrite(file, noise.data(), sizeof noise, static_cast<off_t>(wires::ring_offset(0, 1)) + at),
                      static_cast<ssize_t>(sizeof noise));
        receive_all(*two);
    }
    ::close(file);
    EXPECT_GT(two->damaged(), 100u);
    send_now(*one, numbered(two->address(), 3, 60));
    EXPECT_EQ(receive_all(*two), frames{numbered(two->address(), 3, 60)});
}

} // namespace

} // namespace weftio::test
