// Deadlines of queues, against a plain model; and how long an engine may wait for one on the spot.
#include "nic/soft/engine/deadlines.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "nic/soft/engine/spin.hpp"

namespace weftio::test {
namespace {

using nic::soft::deadlines;
using nic::soft::spin;

TEST(Deadlines, GiveTheEarliestAsAnOrderedMapDoes)
{
    constexpr std::uint32_t queues = 40;
    std::mt19937 random(5);
    deadlines heap;
    heap.reserve(queues / 2);
    heap.reserve(queues);
    std::map<std::uint32_t, std::uint64_t> model;
    for (int step = 0; step < 50000; ++step) {
        const std::uint32_t queue = static_cast<std::uint32_t>(1 + random() % queues);
        const std::uint64_t ns = random() % 3 == 0 ? 0 : 1 + random() % 1000;
        heap.set(queue, ns);
        model.erase(queue);
        if (ns != 0)
            model[queue] = ns;
        ASSERT_EQ(heap.empty(), model.empty());
        if (model.empty())
            continue;
        const auto earliest = std::min_element(model.begin(), model.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
        ASSERT_EQ(heap.first_ns(), earliest->second);
        ASSERT_EQ(model[heap.first_queue()], heap.first_ns());
    }
}

TEST(Deadlines, GoInOrder)
{
    deadlines heap;
    heap.reserve(100);
    for (std::uint32_t queue = 1; queue <= 100; ++queue)
        heap.set(queue, 1 + queue * 37 % 101);
    std::uint64_t last = 0;
    for (; !heap.empty(); heap.set(heap.first_queue(), 0)) {
        EXPECT_GT(heap.first_ns(), last);
        last = heap.first_ns();
    }
}

/// Turns of `turn_ns` each, with a deadline `ahead_ns` after the beginning of each. Returns which share of the time
/// spins take.
double share_of_spins(std::uint64_t turn_ns, std::uint64_t ahead_ns, bool busy)
{
    spin spin;
    std::uint64_t now_ns = 1'000'000'000, spun_ns = 0;
    const std::uint64_t begin_ns = now_ns;
    spin.ended(now_ns);
    for (int turn = 0; turn < 10000; ++turn) {
        now_ns += turn_ns;
        spin.turn_began(now_ns);
        if (!spin.begins(now_ns + ahead_ns, now_ns, busy))
            continue;
        now_ns += ahead_ns;
        spun_ns += ahead_ns;
        spin.ended(now_ns);
    }
    return static_cast<double>(spun_ns) / static_cast<double>(now_ns - begin_ns);
}

TEST(Spin, TakesItsShareOfABusyEngineAndNoMore)
{
    for (std::uint64_t turn_ns : {300u, 1500u, 9000u})
        for (std::uint64_t ahead_ns : {200u, 1000u, 1900u}) {
            const double share = share_of_spins(turn_ns, ahead_ns, true);
            const double all = static_cast<double>(ahead_ns) / static_cast<double>(ahead_ns + turn_ns);
            EXPECT_LE(share, 1.0 / spin::share) << turn_ns << " " << ahead_ns;
            EXPECT_GE(share, std::min(0.5 / spin::share, 0.9 * all)) << turn_ns << " " << ahead_ns;
        }
}

TEST(Spin, WaitsForWhatIsNearWhenNobodyElseHasAnythingToDo)
{
    EXPECT_GT(share_of_spins(300, spin::shortest_ns, false), 0.8);
    EXPECT_EQ(share_of_spins(300, spin::shortest_ns + 1, false), 0);
    EXPECT_GT(share_of_spins(5000, 10000, false), 0.6);
    EXPECT_EQ(share_of_spins(100'000, spin::longest_ns + 1, false), 0);
}

/// The time that a spin takes must not make the next one longer.
TEST(Spin, IsNoPartOfATurn)
{
    spin spin;
    spin.ended(1'000'000);
    spin.turn_began(1'000'500);
    ASSERT_TRUE(spin.begins(1'002'400, 1'000'500, false));
    spin.ended(1'002'400);
    spin.turn_began(1'002'900);
    EXPECT_FALSE(spin.begins(1'002'900 + spin::shortest_ns + 1, 1'002'900, false));
}

} // namespace
} // namespace weftio::test
