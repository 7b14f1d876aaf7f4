// Which packets a port takes for its queue pairs, and which numbers they have.
#include <array>
#include <functional>

#include <gmock/gmock.h>

#include "net/checksum.hpp"
#include "two_ends.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

class RdmaPort : public testing::Test {
 protected:
    void SetUp() override
    {
        for (unsigned end = 0; end < 2; ++end)
            before[end] = ends.memory(end).copy();
    }
    /// Nothing was written at either end, and every entry counts once.
    void TearDown() override
    {
        for (unsigned end = 0; end < 2; ++end) {
            EXPECT_EQ(ends.memory(end).copy(), before[end]);
            if (ends.queues[end])
                expect_conserved(ends.queue(end).nic().counters());
            expect_conserved(ends.unit(end));
        }
    }
    /// The packet is on the way to the second end.
    void send_a_write()
    {
        ends.connect();
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
        a.push();
        ends.at(0).turn();
    }

    two_ends ends{false};
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    std::array<std::vector<std::uint8_t>, 2> before;
};

} // namespace

TEST_F(RdmaPort, DropsPacketsThatAreNotForAQueuePair)
{
    send_a_write();
    const std::vector<std::vector<std::uint8_t>> sent = ends.ports.take(1);
    ASSERT_EQ(sent.size(), 1u);
    const auto with = [&](std::size_t at, std::uint8_t change, bool sum) {
        std::vector<std::uint8_t> frame = sent[0];
        frame[at] ^= change;
        net::fill_checksums(frame, true, false);
        if (sum)
            net::store_icrc(&frame[frame.size() - 4], net::icrc_of(std::span(frame).subspan(14, frame.size() - 18)));
        ends.ports.send_to(1, frame);
    };
    constexpr std::size_t bth = 14 + 20 + 8, source = 14 + 12;
    with(sent[0].size() - 5, 1, false); // a byte of the payload
    with(bth + 7, 0x40, true);          // the queue's number
    with(source + 3, 0x40, true);       // from a stranger
    with(bth + 1, 0x0f, true);          // an unknown version
    ends.run();
    const nic::soft::rdma_unit& unit = ends.unit(1);
    EXPECT_EQ(unit.arrivals().rx_icrc_encapsulated.value(), 1u);
    EXPECT_EQ(unit.arrivals().for_nobody.value(), 1u);
    EXPECT_EQ(unit.arrivals().not_from_peer.value(), 1u);
    EXPECT_EQ(unit.arrivals().malformed.value(), 1u);
    EXPECT_EQ(b.nic().counters().requests, 0u);
    a.nic().stop_sending();
}

TEST_F(RdmaPort, LeavesOtherPacketsToTheRulesOfThePort)
{
    send_a_write();
    std::vector<std::uint8_t> frame = ends.ports.take(1).at(0);
    eth_rxq in(ends.at(1), ends.cpu, {.packets = 64});
    const flow all(ends.at(1), {}, flow_action::to(in));
    std::vector<std::uint8_t> to_another = frame, to_another_port = frame;
    to_another[14 + 19] = 99;
    to_another_port[14 + 20 + 3] ^= 1;
    ends.ports.send_to(1, to_another);
    ends.ports.send_to(1, to_another_port);
    ends.run();
    EXPECT_EQ(in.counters().delivered, 2u);
    EXPECT_EQ(ends.unit(1).arrivals().claimed.value(), 0u);
    b.close();
    ends.queues[1].reset();
    ends.ports.send_to(1, frame);
    ends.run();
    EXPECT_EQ(in.counters().delivered, 3u) << "nobody claims it any more";
    a.nic().stop_sending();
}

TEST_F(RdmaPort, TakesNothingFromTheDriverOnceAllAreClosed)
{
    send_a_write();
    a.nic().stop_sending();
    ends.queues[1].reset();
    ends.at(1).turn();
    EXPECT_EQ(ends.ports.take(1).size(), 1u) << "no rule is installed";
}

TEST(RdmaNumbers, Rest)
{
    const port wire = port::open("loopback", {.mode = engine_mode::inline_worker});
    std::uint32_t before = fake_pair(wire).number();
    const fake_pair kept(wire);
    EXPECT_EQ(kept.number(), before + 1);
    before = kept.number();
    using nic::soft::roce_directory;
    constexpr std::uint32_t first = roce_directory::least_number, last = first + roce_directory::numbers - 1;
    for (std::uint32_t made = 0; made < last; ++made) {
        const std::uint32_t number = fake_pair(wire).number();
        ASSERT_NE(number, kept.number());
        ASSERT_TRUE(number == before + 1 || (number > before && number == kept.number() + 1) ||
                    (before == last && number == first))
            << number << " after " << before;
        before = number;
    }
}

TEST(RdmaCapture, HasNoQueuePairs)
{
    const device cpu = device::open("cpu");
    const auto refused = [](const std::function<void()>& what, errc code, const char* words) {
        try {
            what();
            ADD_FAILURE() << "not refused: " << words;
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), code);
            EXPECT_THAT(refusal.what(), testing::HasSubstr(words));
        }
    };
    const port capture = port::open("pcap:builtin");
    refused([&] { fake_pair pair(capture); }, errc::not_supported, "cannot send");
}

} // namespace weftio::test
