// Datagrams that no honest peer sends: they are counted, and have no further effect.
#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "datagram_ends.hpp"
#include "net/checksum.hpp"
#include "net/icrc.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t ip_at = 14, udp_at = ip_at + 20, bth_at = udp_at + 8, deth_at = bth_at + 12;
using frame = std::vector<std::uint8_t>;

/// The frame with right checksums.
frame sealed(frame of)
{
    net::fill_checksums(of, true, false);
    net::store_icrc(&of[of.size() - 4], net::icrc_of(std::span(of).subspan(ip_at, of.size() - ip_at - 4)));
    return of;
}

class HostileDatagrams : public testing::Test {
 protected:
    void SetUp() override
    {
        ends.start();
        ends.receive(1);
        ends.send_to(ends.peer(1), 40);
        ends.at(0).turn();
        const std::vector<frame> sent = ends.ports.take(1);
        ASSERT_EQ(sent.size(), 1u);
        good = sent[0];
    }
    void send(const std::function<void(frame&)>& change)
    {
        frame bad = good;
        change(bad);
        ends.ports.send_to(1, sealed(bad));
        ends.run();
    }
    /// The receive is still posted, and the next honest datagram fills it.
    void TearDown() override
    {
        EXPECT_TRUE(ends.poll(1).empty());
        EXPECT_EQ(ends.pair(1)->dump().receives_posted, 1u);
        EXPECT_EQ(ends.pair(1)->state(), rdma_state::ready_to_send);
        send([](frame&) {});
        EXPECT_EQ(ends.poll(1).size(), 1u);
    }
    rdma_counters count() { return ends.pair(1)->counters(); }

    datagram_ends ends{false};
    frame good;
};

} // namespace

TEST_F(HostileDatagrams, WithAnyWrongBitOfTheKeyAreRefused)
{
    for (std::size_t bit = 0; bit != 32; ++bit)
        send([&](frame& bad) { bad[deth_at + bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8); });
    EXPECT_EQ(count().refused, 32u);
}

TEST_F(HostileDatagrams, OfOtherServicesAndUnknownOpcodesAreIgnored)
{
    unsigned sent = 0;
    for (unsigned opcode = 0; opcode != 256; ++opcode) {
        if (opcode == 0x64)
            continue;
        send([&](frame& bad) { bad[bth_at] = static_cast<std::uint8_t>(opcode); });
        sent += opcode != 0x65 && opcode >> 5 != 4; // those of congestion reach no queue pair
    }
    // 0x65 takes four bytes of the payload as an immediate: an honest datagram, which fills the receive.
    EXPECT_EQ(count().ignored, sent);
    EXPECT_EQ(count().executed, 1u);
    EXPECT_EQ(ends.poll(1).size(), 1u);
    ends.receive(1);
}

TEST_F(HostileDatagrams, OfAnotherPartitionAreIgnored)
{
    send([](frame& bad) { bad[bth_at + 3] ^= 1; });
    EXPECT_EQ(count().ignored, 1u);
    EXPECT_EQ(count().executed, 0u);
}

TEST_F(HostileDatagrams, ToUnknownNumbersReachNobody)
{
    for (const std::uint32_t number : {0u, 1u, 15u, ends.pair(1)->number() + 1, 0xfffffeu, 0xffffffu})
        send([&](frame& bad) {
            bad[bth_at + 5] = static_cast<std::uint8_t>(number >> 16);
            bad[bth_at + 6] = static_cast<std::uint8_t>(number >> 8);
            bad[bth_at + 7] = static_cast<std::uint8_t>(number);
        });
    EXPECT_EQ(count().requests, 0u);
}

TEST_F(HostileDatagrams, ToAnotherMacOrAddressAreNotTaken)
{
    send([](frame& bad) { bad[5] ^= 1; });
    send([](frame& bad) { bad[ip_at + 19] ^= 1; });
    EXPECT_EQ(count().requests, 0u);
}

TEST_F(HostileDatagrams, ToAGroupWithTheNumberOfAQueuePairAreIgnored)
{
    ends.pair(1)->attach("239.0.0.1");
    send([](frame& bad) {
        const std::uint8_t group[] = {239, 0, 0, 1}, mac[] = {1, 0, 0x5e, 0x6f, 0, 1};
        std::copy_n(group, 4, bad.begin() + ip_at + 16);
        std::copy_n(mac, 6, bad.begin());
    });
    EXPECT_EQ(count().ignored, 1u);
}

TEST_F(HostileDatagrams, ThatAreCutAnywhereAreNotTaken)
{
    for (std::size_t bytes = ip_at; bytes != good.size(); ++bytes) {
        ends.ports.send_to(1, frame(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)));
        ends.run();
    }
    EXPECT_EQ(count().requests, 0u);
}

TEST_F(HostileDatagrams, WhoseLengthsLieAreNotExecuted)
{
    for (std::size_t at : {ip_at + 2, ip_at + 3, udp_at + 4, udp_at + 5, bth_at + 1})
        for (unsigned bit = 0; bit != 8; ++bit)
            if (at != bth_at + 1 || (bit != 7 && bit != 6)) // solicited and migrated are no lie
                send([&](frame& bad) {
                    bad[at] ^= static_cast<std::uint8_t>(1u << bit);
                    if (at == bth_at + 1 && (bit == 4 || bit == 5))
                        bad[deth_at] ^= 0xff; // a pad is a shorter payload; with the wrong key
                });
    EXPECT_EQ(count().executed, 0u);
}

} // namespace weftio::test
