// Drivers that fill the slots of a queue themselves: nothing is copied, nothing is lost, and nothing changes under a
// kernel.
#include <rte_mempool.h>

#include "capture_files.hpp"
#include "injected_port.hpp"
#include "nic/soft/receive/slot_pool.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;
constexpr std::uint16_t numbered_type = 0x88b5, other_type = 0x88b6;

/// Every third frame is of the other type; all are numbered.
std::vector<timed_frame> mixed_records(std::uint32_t count)
{
    std::vector<timed_frame> records;
    for (std::uint32_t number = 0; number < count; ++number) {
        records.push_back({1'700'000'000 + number, 0, numbered_frame(number, 60 + number % 1400)});
        if (number % 3 == 0)
            records.back().bytes[13] = other_type & 0xff;
    }
    return records;
}

class Lending : public testing::Test {
 protected:
    /// A capture as a port that the test drives.
    port open(const std::vector<timed_frame>& records, port_options::hold hold = port_options::hold::automatic)
    {
        return port::open("pcap:" + folder.write("a.pcap", pcap_file(records)),
                          {.mode = engine_mode::inline_worker, .hold_when_full = hold});
    }
    /// Takes all that comes; the numbers must follow each other, those of `skipped_type` left out.
    static std::uint32_t drain(port& from, eth_rxq& queue, bool every_third_is_missing)
    {
        fake_kernel kernel(queue);
        std::uint32_t received = 0, expected = 0;
        for (bool last = false; !last;) {
            last = from.exhausted();
            for (const weftio_dev_packet& packet : kernel.receive()) {
                if (every_third_is_missing && expected % 3 == 0)
                    ++expected;
                EXPECT_EQ(number_of(packet), expected++);
                EXPECT_TRUE(every_third_is_missing ? is_intact(packet) : packet.bytes == 60 + number_of(packet) % 1400);
                ++received;
            }
            kernel.release(kernel.held());
        }
        return received;
    }

    scratch_folder folder;
    device cpu = device::open("cpu");
};

TEST_F(Lending, CopiesNothing)
{
    port from = open(mixed_records(1000));
    eth_rxq queue(from, cpu, {.packets = depth});
    flow everything(from, {}, flow_action::to(queue));
    EXPECT_EQ(drain(from, queue, false), 1000u);
    EXPECT_EQ(from.counters().copied_bytes, 0u);
    EXPECT_TRUE(conserves(from.counters()));
}

TEST_F(Lending, GetsTheSlotsOfDroppedPacketsBack)
{
    port from = open(mixed_records(1000));
    eth_rxq queue(from, cpu, {.packets = depth});
    flow some(from, {.ether_type = numbered_type}, flow_action::to(queue));
    EXPECT_EQ(drain(from, queue, true), 666u);
    EXPECT_EQ(dropped(from.counters(), drop_reason::no_match), 334u);
    EXPECT_EQ(queue.counters().out_of_buffer, 0u);
}

TEST_F(Lending, NeverChangesAPacketThatIsNotReleased)
{
    port from = open(mixed_records(1000), port_options::hold::off);
    eth_rxq queue(from, cpu, {.packets = depth});
    flow everything(from, {}, flow_action::to(queue));
    while (!from.exhausted())
        from.turn();
    EXPECT_EQ(dropped(from.counters(), drop_reason::out_of_buffer), 1000u - depth);
    std::vector<weftio_dev_packet> held = fake_kernel(queue).receive();
    ASSERT_EQ(held.size(), depth);
    for (std::uint32_t number = 0; number < depth; ++number)
        EXPECT_EQ(content(held[number]), mixed_records(depth)[number].bytes);
}

TEST_F(Lending, DoesNotMakeANeighborWaitForALenderThatReleasesNothing)
{
    port from = open(mixed_records(3000), port_options::hold::off);
    eth_rxq lender(from, cpu, {.packets = depth}), neighbor(from, cpu, {.packets = 4096});
    flow third(from, {.ether_type = other_type}, flow_action::to(lender));
    flow rest(from, {.ether_type = numbered_type}, flow_action::to(neighbor));
    while (!from.exhausted())
        from.turn();
    EXPECT_EQ(lender.counters().delivered, depth);
    EXPECT_EQ(neighbor.counters().delivered, 2000u);
    for (const weftio_dev_packet& packet : fake_kernel(neighbor).receive())
        EXPECT_TRUE(is_intact(packet));
    EXPECT_TRUE(conserves(from.counters()));
}

TEST_F(Lending, CopiesWhereSlotsAreTooShortForTheDriver)
{
    port from = open({{1'700'000'000, 0, numbered_frame(0, 200)}});
    eth_rxq queue(from, cpu, {.packets = depth, .max_packet_bytes = 512});
    flow everything(from, {}, flow_action::to(queue));
    EXPECT_TRUE(is_intact(fake_kernel(queue).receive_one()));
    EXPECT_EQ(from.counters().copied_bytes, 200u);
}

/// A packet that waits for a neighbor's slot, and behind it packets in slots of the lender.
class LentSlotsInHand : public Lending {
 protected:
    static constexpr std::uint32_t count = 200, waiting = depth;

    LentSlotsInHand()
    {
        for (int turn = 0; turn < 10; ++turn)
            from.turn();
        EXPECT_EQ(neighbor.counters().delivered, depth);
        EXPECT_EQ(lender->counters().delivered, 0u);
        EXPECT_EQ(from.counters().held, 64u);
    }
    ~LentSlotsInHand() override { EXPECT_TRUE(conserves(from.counters())); }

    static std::vector<timed_frame> records()
    {
        std::vector<timed_frame> all;
        for (std::uint32_t number = 0; number < count; ++number) {
            all.push_back({1'700'000'000, 0, numbered_frame(number, 60 + number)});
            if (number <= waiting)
                all.back().bytes[13] = other_type & 0xff;
        }
        return all;
    }
    /// Lets the packet that waits go on.
    void release_neighbor()
    {
        fake_kernel kernel(neighbor);
        EXPECT_EQ(kernel.receive(depth).size(), depth);
        kernel.release(depth);
    }
    /// Reads to the end; everything behind the one that waited must come to `queue`, whole and in order.
    void expect_the_rest_in(eth_rxq& queue)
    {
        fake_kernel kernel(queue);
        std::uint32_t expected = waiting + 1;
        for (bool last = false; !last; kernel.release(kernel.held())) {
            last = from.exhausted();
            for (const weftio_dev_packet& packet : kernel.receive()) {
                EXPECT_EQ(number_of(packet), expected++);
                EXPECT_TRUE(is_intact(packet));
            }
        }
        EXPECT_EQ(expected, count);
    }

    port from = open(records());
    std::optional<eth_rxq> lender{std::in_place, from, cpu, eth_rxq_options{.packets = depth}};
    eth_rxq neighbor{from, cpu, {.packets = depth}};
    flow numbered{from, {.ether_type = numbered_type}, flow_action::to(*lender), 1};
    flow other{from, {.ether_type = other_type}, flow_action::to(neighbor)};
};

TEST_F(LentSlotsInHand, ArriveInTheNextLifeOfTheQueue)
{
    lender->reset();
    release_neighbor();
    expect_the_rest_in(*lender);
}

TEST_F(LentSlotsInHand, AreDroppedAsClosedWithTheQueue)
{
    lender.reset();
    release_neighbor();
    while (!from.exhausted())
        from.turn();
    EXPECT_EQ(dropped(from.counters(), drop_reason::queue_closed), count - depth - 1u);
}

TEST_F(LentSlotsInHand, AreDroppedWithoutMemoryForThemAndDecideNothingForTheNextOne)
{
    rte_mempool* own = software_nic(from).slots().of_queue(0)->own();
    ASSERT_TRUE(own);
    std::vector<rte_mbuf*> all;
    while (rte_mbuf* mbuf = rte_pktmbuf_alloc(own))
        all.push_back(mbuf);
    lender->reset();
    rte_pktmbuf_free_bulk(all.data(), static_cast<unsigned>(all.size()));
    EXPECT_EQ(dropped(from.counters(), drop_reason::queue_closed), 64u);
    EXPECT_EQ(from.counters().held, 0u);
    EXPECT_EQ(from.counters().received_bytes, 128u * 60 + 128 * 127 / 2);
    release_neighbor();
    from.turn();
    EXPECT_EQ(neighbor.counters().delivered, depth);
    EXPECT_EQ(lender->counters().delivered, 64u);
    EXPECT_EQ(numbered.hits().packets, 64u);
}

TEST_F(LentSlotsInHand, GoToAnotherQueueThatARuleNamesNow)
{
    eth_rxq next(from, cpu, {.packets = depth});
    flow before(from, {.ether_type = numbered_type}, flow_action::to(next), 0);
    lender.reset();
    release_neighbor();
    expect_the_rest_in(next);
}

} // namespace
} // namespace weftio::test
