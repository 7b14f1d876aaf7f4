// Indices run freely: round the ring, round the 16 bits of the doorbell record, round 32 bits.
#include <thread>

#include "fake_nic.hpp"
#include "injected_port.hpp"

namespace weftio::test {
namespace {

TEST(ReceiveIndices, GoRoundTheDoorbellRecordManyTimes)
{
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq queue(port.get(), cpu, {.packets = 64, .max_packet_bytes = 64});
    flow everything(port.get(), {}, flow_action::to(queue));
    fake_kernel kernel(queue);
    constexpr std::uint32_t total = 65536 * 4 + 1000;
    std::uint32_t sent = 0, seen = 0;
    while (seen < total) {
        for (std::uint32_t end = std::min(total, sent + 1 + sent % 61); sent < end; ++sent)
            ASSERT_TRUE(port.send(numbered_frame(sent, 18)));
        for (const weftio_dev_packet& packet : kernel.receive())
            ASSERT_EQ(number_of(packet), seen++);
        kernel.release(kernel.held());
    }
    EXPECT_EQ(queue.counters().delivered, total);
    EXPECT_EQ(port.counters().dropped_total(), 0u);
}

TEST(ReceiveIndices, GoRoundTheDoorbellRecordWithTheDeepestRing)
{
    device cpu = device::open("cpu");
    injected_port port({.mode = engine_mode::inline_worker, .hold_when_full = port_options::hold::on});
    eth_rxq queue(port.get(), cpu, {.packets = 32768, .max_packet_bytes = 64});
    flow everything(port.get(), {}, flow_action::to(queue));
    fake_kernel kernel(queue);
    std::uint32_t sent = 0, seen = 0;
    for (std::uint32_t filling = 32768; sent < 32768 * 5; filling = 32768) {
        for (; filling != 0; --filling) { // to the brim, so that record - filled is 0 and 32768 in turn
            ASSERT_TRUE(port.send(numbered_frame(sent++, 18)));
            if (filling % 1024 == 1)
                port.run_dry();
        }
        EXPECT_EQ(port.counters().held, 0u);
        for (const weftio_dev_packet& packet : kernel.receive())
            ASSERT_EQ(number_of(packet), seen++);
        kernel.release(kernel.held());
    }
    EXPECT_EQ(seen, sent);
}

/// First index of a ring; the runs below go past 2^32 from all of them.
class ReceiveIndicesNearTheirEnd : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ReceiveIndicesNearTheirEnd, WrapWithoutLosingAPacket)
{
    fake_nic nic(device::open("cpu"), 64, GetParam());
    constexpr std::uint32_t total = 20000;
    bool all_published = false;
    std::thread network([&] { all_published = nic.publish(total); });

    weftio_dev_eth_rxq* rxq = nic.handle();
    std::uint32_t seen = 0, wrong = 0;
    while (seen < total && wrong == 0) {
        std::uint32_t count = 0, first = 0;
        weftio_dev_eth_rxq_receive_thread(rxq, 1 + seen % 64, 1'000'000, &count, &first);
        for (std::uint32_t i = 0; i < count; ++i) {
            weftio_dev_packet packet{};
            std::uint32_t index = GetParam() + seen + i;
            bool there = first + i == index && weftio_dev_eth_rxq_packet(rxq, index, &packet) == WEFTIO_DEV_OK;
            wrong +=
                !there || packet.bytes != fake_nic::bytes_of(index) ||
                packet.timestamp_ns != fake_nic::time_ns_of(index) ||
                *reinterpret_cast<std::uint32_t*>(packet.address) != fake_nic::first_word_of(index) ||
                *reinterpret_cast<std::uint32_t*>(packet.address + packet.bytes - 4) != fake_nic::last_word_of(index);
        }
        seen += count;
        EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first, count), WEFTIO_DEV_OK);
    }
    network.join();
    EXPECT_TRUE(all_published);
    EXPECT_EQ(seen, total);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rxq->received, GetParam() + total);
}

INSTANTIATE_TEST_SUITE_P(From, ReceiveIndicesNearTheirEnd,
                         testing::Values(0u, 0xffffff00u, 0xffffffc0u, 0xffffffbfu, 0xffffffffu, 0x7ffffff0u, 0xfff0u));

TEST(ReceiveRing, ShowsNothingOfAPassThatIsStillToCome)
{
    fake_nic nic(device::open("cpu"), 64, 0xffffffc0u);
    ASSERT_TRUE(nic.publish(64));
    std::uint32_t count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(nic.handle(), 64, 0, &count, &first), WEFTIO_DEV_OK);
    weftio_dev_packet packet{};
    EXPECT_EQ(weftio_dev_eth_rxq_packet(nic.handle(), 0xffffffc0u, &packet), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_rxq_packet(nic.handle(), 0u, &packet), WEFTIO_DEV_NOT_FOUND);
    EXPECT_EQ(weftio_dev_eth_rxq_packet(nic.handle(), 0xffffff80u, &packet), WEFTIO_DEV_NOT_FOUND);
}

TEST(ReceiveRing, RefusesToReleaseWhatIsNotHeld)
{
    fake_nic nic(device::open("cpu"), 64, 0xfffffff0u);
    weftio_dev_eth_rxq* rxq = nic.handle();
    ASSERT_TRUE(nic.publish(40));
    std::uint32_t count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(rxq, 32, 0, &count, &first), WEFTIO_DEV_OK);
    ASSERT_EQ(count, 32u);
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first + 1, 1), WEFTIO_DEV_OUT_OF_ORDER);
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first, 33), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first, 0xffffffffu), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(nic.free_slots(), 24u);
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first, 32), WEFTIO_DEV_OK);
    EXPECT_EQ(nic.free_slots(), 56u);
    EXPECT_EQ(weftio_dev_eth_rxq_release(rxq, first, 1), WEFTIO_DEV_OUT_OF_ORDER);
}

} // namespace
} // namespace weftio::test
