// Two managers and a wire that loses, repeats and overtakes.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

struct odds {
    double lost = 0, twice = 0;
    std::uint64_t longest = ms / 2; ///< how long a message travels at most; each as long as it likes
};

class wire {
 public:
    wire(end& one, end& other, odds with, unsigned seed) : ends_{&one, &other}, with_(with), random_(seed) {}

    std::uint64_t now() const noexcept { return now_; }
    std::mt19937& random() noexcept { return random_; }
    /// Moves on to what happens next, but not beyond `until`. @return false: it is `until`
    bool step(std::uint64_t until)
    {
        collect();
        std::uint64_t next = until;
        if (!flying_.empty())
            next = std::min(next, flying_.begin()->first);
        for (const end* one : ends_) {
            if (one->under_test.next_deadline() != 0)
                next = std::min(next, std::max(now_, one->under_test.next_deadline()));
        }
        now_ = next;
        while (!flying_.empty() && flying_.begin()->first <= now_) {
            const flight arrived = std::move(flying_.begin()->second);
            flying_.erase(flying_.begin());
            end& to = *ends_[arrived.to.peer == ends_[0]->own ? 0 : 1];
            to.under_test.receive({arrived.to.peer, arrived.to.local}, arrived.what, now_);
        }
        for (end* one : ends_)
            one->under_test.expire(now_);
        return now_ != until;
    }

 private:
    struct flight {
        path to;
        bytes what;
    };

    bool happens(double odd) { return std::uniform_real_distribution<>(0, 1)(random_) < odd; }
    void collect()
    {
        for (end* one : ends_) {
            for (auto& [to, what] : std::exchange(one->out.sent, {})) {
                if (happens(with_.lost))
                    continue;
                for (int copies = happens(with_.twice) ? 2 : 1; copies != 0; --copies)
                    flying_.emplace(now_ + 1 + random_() % with_.longest, flight{to, what});
            }
        }
    }

    end* ends_[2];
    const odds with_;
    std::mt19937 random_;
    std::uint64_t now_ = 1;
    std::multimap<std::uint64_t, flight> flying_;
};

/// One connection after another: every one of 10,000 comes up and goes down; few wait for a timeout.
TEST(CmWire, NoneOfManyConnectsFailsAtOnePercentLoss)
{
    end client(1), server(2);
    std::uint32_t listener = 0;
    server.under_test.listen(service, {}, 4, listener);
    wire between(client, server, {.lost = 0.01}, 1);
    constexpr unsigned connects = 10'000;
    unsigned late = 0;
    for (unsigned number = 0; number < connects; ++number) {
        std::uint32_t id = 0;
        const std::uint64_t begin = between.now();
        req request = usual_req(0x11);
        request.most_retries = 15;
        ASSERT_EQ(client.under_test.connect(client.to(server), request, begin, id), refusal::none);
        bool up_here = false, up_there = false, down_here = false;
        while (!down_here) {
            ASSERT_TRUE(between.step(begin + 100'000 * ms)) << "connect " << number << " never ends";
            while (const auto told = server.under_test.next_event()) {
                ASSERT_NE(told->kind, event_kind::rejected);
                ASSERT_NE(told->kind, event_kind::unreachable);
                if (told->kind == event_kind::connect_request)
                    server.under_test.accept(told->id, {.queue = 0x12}, between.now());
                else if (told->kind == event_kind::established) {
                    up_there = true;
                    client.under_test.disconnect(id, {}, between.now());
                }
            }
            while (const auto told = client.under_test.next_event()) {
                ASSERT_NE(told->kind, event_kind::rejected);
                ASSERT_NE(told->kind, event_kind::unreachable);
                if (told->kind == event_kind::connect_response) {
                    up_here = true;
                    late += between.now() - begin > usual_wait / 2;
                    client.under_test.ready(id);
                }
                down_here |= told->kind == event_kind::disconnected && told->id == id;
            }
        }
        ASSERT_TRUE(up_here && up_there);
        ASSERT_LE(client.under_test.size(), 200u); // those that rest for 100 ms
    }
    EXPECT_GT(late, 0u);
    EXPECT_LE(late, connects * 4 / 100);
    while (between.step(between.now() + 1000 * ms)) {
    }
    EXPECT_EQ(client.under_test.size() + server.under_test.size(), 0u);
}

/// A user that does anything to its connections, and knows which events cannot be.
class user {
 public:
    user(end& own, end& peer, wire& between) : own_(own), peer_(peer), between_(between)
    {
        own.under_test.listen(service, {}, 8, listener_);
    }

    void act()
    {
        manager& under_test = own_.under_test;
        const std::uint64_t now = between_.now();
        std::uint32_t id = any_id();
        switch (between_.random()() % 16) {
            case 0:
            case 1: {
                const unsigned queue = 2 + static_cast<unsigned>(between_.random()() % 40);
                if (under_test.connect(own_.to(peer_), usual_req(queue), now, id) == refusal::none)
                    known_.insert(id);
                return;
            }
            case 2:
                if (under_test.resolve(own_.to(peer_), {.service = service}, 14, 2, now, id) == refusal::none)
                    known_.insert(id);
                return;
            case 3: under_test.reject(id, {}, now); return;
            case 4: under_test.delay(id, 16); return;
            case 5: under_test.established(id); return;
            case 6: under_test.disconnect(id, {}, now); return;
            case 7:
                if (under_test.destroy(id, now) == refusal::none)
                    known_.erase(id);
                return;
            case 8: under_test.answer(id, {.queue = 5}, now); return;
            case 9:
            case 10: under_test.ready(id); return;
            default:
                under_test.accept(id, {.queue = 100 + static_cast<unsigned>(between_.random()() % 40)}, now);
                return;
        }
    }
    void hear()
    {
        while (const auto told = own_.under_test.next_event()) {
            const bool announces =
                told->kind == event_kind::connect_request || told->kind == event_kind::service_request;
            ASSERT_EQ(known_.contains(told->id), !announces);
            if (announces)
                known_.insert(told->id);
            const int kind = static_cast<int>(told->kind);
            ASSERT_TRUE(once_.insert({told->id, kind}).second) << "told twice: " << kind;
            established += told->kind == event_kind::established;
            if (told->gone)
                known_.erase(told->id);
        }
    }
    void forget_all()
    {
        for (const std::uint32_t id : std::exchange(known_, {}))
            own_.under_test.destroy(id, between_.now());
        own_.under_test.stop_listening(listener_, between_.now());
    }

    unsigned established = 0;

 private:
    std::uint32_t any_id()
    {
        if (known_.empty())
            return 0;
        return *std::next(known_.begin(), static_cast<std::ptrdiff_t>(between_.random()() % known_.size()));
    }

    end& own_;
    end& peer_;
    wire& between_;
    std::uint32_t listener_ = 0;
    std::set<std::uint32_t> known_;
    std::set<std::pair<std::uint32_t, int>> once_;
};

TEST(CmWire, UsersThatDoAnythingOnAWireThatDoesAnything)
{
    unsigned established = 0;
    for (unsigned seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        settings few = usual(1), few_there = usual(2);
        few.most_connections = few_there.most_connections = 30;
        end one(1, few), other(2, few_there);
        wire between(one, other, {.lost = 0.1 * (seed % 4), .twice = 0.2, .longest = 5 * ms}, seed);
        user here(one, other, between), there(other, one, between);
        for (int step = 0; step < 1500; ++step) {
            (between.random()() % 2 == 0 ? here : there).act();
            between.step(between.now() + 1 + between.random()() % (10 * ms));
            ASSERT_NO_FATAL_FAILURE(here.hear());
            ASSERT_NO_FATAL_FAILURE(there.hear());
            ASSERT_LE(one.under_test.size(), 30u);
            ASSERT_LE(other.under_test.size(), 30u);
        }
        established += here.established + there.established;
        here.forget_all();
        there.forget_all();
        while (between.step(between.now() + 10'000 * ms)) {
        }
        EXPECT_EQ(one.under_test.size() + other.under_test.size(), 0u);
        EXPECT_EQ(one.under_test.next_deadline() + other.under_test.next_deadline(), 0u);
        EXPECT_TRUE(one.silent() && other.silent());
    }
    EXPECT_GT(established, 300u);
}

} // namespace
