// The same frames and rules with a driver that offloads and with one that does not.
#include <optional>

#include <fmt/format.h>

#include "random_rules.hpp"
#include "world.hpp"

namespace weftio::test {
namespace {

/// Two queues and some rules on a port, and a kernel that takes all packets.
struct side {
    explicit side(const device& cpu) : a(world.get(), cpu), b(world.get(), cpu) {}

    std::vector<bytes> take_from(fake_kernel& kernel)
    {
        std::vector<bytes> all;
        const std::vector<weftio_dev_packet> packets = kernel.receive();
        for (const weftio_dev_packet& packet : packets)
            all.push_back(content(packet));
        kernel.release(static_cast<std::uint32_t>(packets.size()));
        return all;
    }
    void add(const flow_match& match, std::uint32_t action, std::uint32_t priority)
    {
        rules.emplace_back(world.get(), match,
                           action == 0   ? flow_action::to(a)
                           : action == 1 ? flow_action::to(b)
                                         : flow_action::drop(),
                           priority);
    }
    std::vector<std::pair<std::uint64_t, std::uint64_t>> hits() const
    {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
        for (const flow& rule : rules)
            all.emplace_back(rule.hits().packets, rule.hits().bytes);
        return all;
    }

    offload_world world;
    eth_rxq a, b;
    fake_kernel of_a{a}, of_b{b};
    std::vector<flow> rules;
};

class OffloadDifferential : public testing::TestWithParam<unsigned> {
 protected:
    OffloadDifferential()
    {
        without.world.driver().can.unknown_actions = {RTE_FLOW_ACTION_TYPE_DROP};
        in_both([](side& each) { each.add({.vlan = 4000}, 0, 9); }); // without a rule a port receives nothing
    }
    template <class Do>
    void in_both(Do&& what)
    {
        what(with);
        what(without);
    }
    void change_rules()
    {
        if (random.below(3) != 0 && with.rules.size() < 6) {
            const flow_match match = random.match();
            const std::uint32_t action = random.below(4), priority = random.below(3);
            in_both([&](side& each) { each.add(match, action, priority); });
        } else if (with.rules.size() > 1) {
            const auto at = 1 + random.below(static_cast<std::uint32_t>(with.rules.size()) - 1);
            in_both([&](side& each) { each.rules.erase(each.rules.begin() + at); });
        }
    }
    void send()
    {
        for (unsigned count = 0; count < 20; ++count, ++sent) {
            const bytes frame = random.frame();
            in_both([&](side& each) { each.world.arrive(frame); });
        }
    }

    device cpu = device::open("cpu");
    side with{cpu}, without{cpu};
    random_rules random{GetParam()};
    std::uint64_t sent = 0;
};

TEST_P(OffloadDifferential, DeliversAndCountsTheSame)
{
    for (unsigned round = 0; round < 2000; ++round) {
        change_rules();
        send();
        ASSERT_EQ(with.take_from(with.of_a), without.take_from(without.of_a)) << "round " << round;
        ASSERT_EQ(with.take_from(with.of_b), without.take_from(without.of_b)) << "round " << round;
        ASSERT_EQ(with.hits(), without.hits()) << "round " << round;
    }
    const port_counters counters = with.world.get().counters();
    EXPECT_TRUE(conserves(counters));
    EXPECT_EQ(counters.received + with.world.driver().dropped(), sent);
    EXPECT_GT(with.world.driver().dropped(), sent / 20) << "the driver had little to do";
    EXPECT_GT(with.world.driver().made(), 100u);
    EXPECT_EQ(without.world.driver().dropped(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seed, OffloadDifferential, testing::Range(1u, 7u));

} // namespace
} // namespace weftio::test
