// Slots in memory that goes away: the receive queue stops, its packets are dropped, and everything else goes on.
#include <gmock/gmock.h>

#include "fleeting_memory.hpp"
#include "injected_port.hpp"
#include "weftio/log.hpp"

namespace weftio::test {
namespace {

struct slots_case {
    const char* name;
    leaving way;
    eth_rxq_options options;
    bool all_to_it; ///< the only rule gives it every packet
};

class GoneSlots : public testing::TestWithParam<slots_case> {
 protected:
    ~GoneSlots() override { set_log_sink({}); }

    eth_rxq_options in_region() const
    {
        eth_rxq_options options = GetParam().options;
        options.packets = 64;
        options.max_packet_bytes = 512;
        options.region = &region;
        return options;
    }

    device cpu = device::open("cpu");
    injected_port port;
    fleeting_memory fleeting{GetParam().way};
    memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    memory_region region{port.get(), adopted};
};

TEST_P(GoneSlots, StopTheirQueueOnly)
{
    std::vector<std::string> lines;
    set_log_sink([&](log_level, std::string_view line) { lines.emplace_back(line); });
    eth_rxq queue(port.get(), cpu, in_region()), neighbor(port.get(), cpu, {.packets = 64});
    const flow rule(port.get(), GetParam().all_to_it ? flow_match{} : flow_match{.ether_type = 0x88b5},
                    flow_action::to(queue), 1);
    const flow rest(port.get(), {}, flow_action::to(neighbor), 9);
    fake_kernel kernel(queue), beside(neighbor);
    for (std::uint32_t number = 0; number < 10; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number, 60 + 40 * number)));
    port.run_dry();
    EXPECT_EQ(queue.counters().delivered, 10u);
    for (const weftio_dev_packet& packet : kernel.receive())
        EXPECT_TRUE(is_intact(packet));
    fleeting.go();
    for (std::uint32_t number = 0; number < 10; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number, 60 + 40 * number)));
    if (!GetParam().all_to_it) {
        ASSERT_TRUE(port.send(frames::udp4(1, 7)));
    }
    port.run_dry();
    EXPECT_EQ(queue.counters().delivered, 10u);
    EXPECT_EQ(dropped(port.counters(), drop_reason::queue_closed), 10u);
    EXPECT_EQ(neighbor.counters().delivered, GetParam().all_to_it ? 0u : 1u);
    EXPECT_TRUE(all_accounted(port.counters(), GetParam().all_to_it ? 20 : 21));
    EXPECT_THAT(lines, testing::Contains(
                           testing::HasSubstr("memory of its slots cannot be accessed any more: it was unmapped")));
    EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.find("slots") != line.npos; }), 1);
    fleeting.come_back();
    queue.reset();
    ASSERT_TRUE(port.send(numbered_frame(3)));
    port.run_dry();
    EXPECT_EQ(queue.counters().delivered, 11u);
}

const slots_case slots[] = {
    {"Unmapped", leaving::unmapped, {}, false},
    {"UnmappedAllToIt", leaving::unmapped, {.verify_checksums = false}, true},
    {"UnmappedChecked", leaving::unmapped, {}, true},
    {"UnmappedZeroed", leaving::unmapped, {.zeroed_bytes = 64}, false},
    {"TruncatedInOrder", leaving::truncated, {.consecutive = true}, false},
    {"TruncatedAllToIt", leaving::truncated, {.verify_checksums = false}, true},
};

INSTANTIATE_TEST_SUITE_P(Are, GoneSlots, testing::ValuesIn(slots),
                         [](const testing::TestParamInfo<slots_case>& info) { return std::string(info.param.name); });

} // namespace
} // namespace weftio::test
