// Datagrams that no honest peer sends: they are counted, and have no further effect.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <malloc.h>

#include "datagram_ends.hpp"
#include "net/checksum.hpp"
#include "net/icrc.hpp"
#include "sanitized.hpp"
#include "software_nic.hpp"
#include "weftio/shared_receives.hpp"

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

namespace {

/// The frame with other lengths, so that its payload has `bytes`; less than 0: it lacks a part of its headers.
frame resized(frame of, int bytes)
{
    const auto set = [&](std::size_t at, std::size_t length) {
        of[at] = static_cast<std::uint8_t>(length >> 8);
        of[at + 1] = static_cast<std::uint8_t>(length);
    };
    of.resize(static_cast<std::size_t>(static_cast<int>(deth_at) + 8 + bytes + 4));
    set(ip_at + 2, of.size() - ip_at);
    set(udp_at + 4, of.size() - udp_at);
    return of;
}

/// What the port has counted of the datagrams that nobody accepts.
struct counted {
    std::uint64_t refused = 0, ignored = 0, malformed = 0, for_nobody = 0, wrong_ip = 0, wrong_icrc = 0;
    bool operator==(const counted&) const = default;
};
void PrintTo(const counted& what, std::ostream* out)
{
    *out << what.refused << " refused, " << what.ignored << " ignored, " << what.malformed << " malformed, "
         << what.for_nobody << " for nobody, " << what.wrong_ip << " and " << what.wrong_icrc << " damaged";
}

/// A kind of datagram, and the count that it belongs to.
struct hostile {
    std::uint64_t counted::*as;
    frame bytes;
};

/// The entries of a shared ring in the order of their indices, which is that in which the program frees them.
class shared_program {
 public:
    shared_program(const rdma_device& at, const device& cpu) : made(at, cpu, {.entries = entries}) {}
    void post(const segment& piece)
    {
        auto* const entry = static_cast<std::uint32_t*>(made.ring()) + posted_ % entries * words;
        for (std::uint32_t word = 0; word != 4; ++word)
            weftio_store_relaxed_u32(entry + 4 + word, weftio_swap32(piece.words[word]));
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(made.record()), weftio_swap32(++posted_ & 0xffff));
    }

    static constexpr std::uint32_t entries = 64;
    shared_receives made;

 private:
    static constexpr std::uint32_t words = 8;
    std::uint32_t posted_ = 0;
};

/// Port 1 has an honest queue pair of datagrams, an honest one with a connection, and one that takes its receives from
/// a shared ring. Anybody may send datagrams to the first and the last.
class DatagramFlood : public testing::Test {
 protected:
    static constexpr std::uint32_t message = 40, burst = 64, slot = 256, waiting = 8;
#ifdef WEFTIO_TEST_SANITIZED
    static constexpr std::uint32_t datagrams = 50'000;
#else
    static constexpr std::uint32_t datagrams = 1'000'000;
#endif
    enum at_port_1 : std::size_t { honest, connected, sharing };

    void SetUp() override
    {
        ends.start();
        for (unsigned end = 0; end != 2; ++end)
            rc[end].emplace(*ends.devices[end], ends.cpu, rc_completions[end], rc_completions[end],
                            queue_pair_options{});
        for (unsigned end = 0; end != 2; ++end) {
            posted_pair& of = *rc[end];
            of->modify(rdma_state::init, init_attributes());
            of->modify(rdma_state::ready_to_receive, receive_attributes((*rc[1 - end])->address().peer()));
            of->modify(rdma_state::ready_to_send, send_attributes(rdma_service::reliable));
        }
        flooded->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .queue_key = usual_key});
        flooded->modify(rdma_state::ready_to_receive);
        for (std::uint32_t each = 0; each != waiting; ++each)
            post_all(each);
        make_hostile(ends.pair(1)->number());
        make_hostile(flooded->number());
    }
    /// A receive of each queue pair at port 1.
    void post_all(std::uint32_t round)
    {
        ends.pair(1).post_receive(place(honest, round));
        rc[1]->post_receive(place(connected, round));
        shared.post(place(sharing, round));
    }
    std::size_t offset(std::size_t of, std::uint32_t round) const
    {
        return (of * waiting + round % waiting + 1) * slot;
    }
    segment place(std::size_t of, std::uint32_t round)
    {
        return ends.memory(1).local(offset(of, round), slot);
    }

    /// Each kind of datagram for the queue pair with this number.
    void make_hostile(std::uint32_t number)
    {
        datagram_peer to = ends.peer(1);
        to.queue = number;
        ends.send_to(to, message);
        ends.at(0).turn();
        const frame good = ends.ports.take(1).at(0);
        const auto put = [&](std::uint64_t counted::*as, frame bad, const std::function<void(frame&)>& change) {
            change(bad);
            kinds.push_back({as, sealed(bad)});
        };
        put(&counted::refused, good, [](frame& bad) { bad[deth_at + 3] ^= 0x10; });
        put(&counted::refused, resized(good, 0), [](frame& bad) { bad[deth_at] ^= 0x80; });
        put(&counted::ignored, resized(good, -8), [](frame&) {});
        put(&counted::ignored, resized(good, 0), [](frame& bad) { bad[bth_at + 1] |= 0x30; }); // a pad of nothing
        put(&counted::ignored, resized(good, 1100), [](frame&) {});
        put(&counted::ignored, good, [](frame& bad) { bad[bth_at + 3] ^= 1; }); // of another partition
        put(&counted::malformed, resized(good, -12), [](frame&) {});
        put(&counted::malformed, good, [](frame& bad) { bad[ip_at + 3] += 4; });
        put(&counted::malformed, good, [](frame& bad) { bad[udp_at + 5] += 4; });
        put(&counted::malformed, good, [](frame& bad) { bad[udp_at + 5] -= 4; });
        put(&counted::for_nobody, good, [](frame& bad) { bad[bth_at + 6] ^= 0x30; });
        put(&counted::for_nobody, good, [](frame& bad) { bad[bth_at + 5] ^= 0xff; });
        kinds.push_back({&counted::wrong_ip, good});
        kinds.back().bytes[ip_at + 10] ^= 1;
        kinds.push_back({&counted::wrong_icrc, good});
        kinds.back().bytes.back() ^= 1;
    }
    void flood(std::uint32_t count)
    {
        for (; count != 0; --count, ++sent) {
            const hostile& one = kinds[sent % kinds.size()];
            ++(expected.*one.as);
            ends.ports.send_to(1, one.bytes);
        }
    }
    /// Honest messages of one round, among hostile ones. All arrive, and take one receive each.
    void exchange(std::uint32_t round)
    {
        std::fill_n(ends.memory(0).data(), message, static_cast<std::uint8_t>(round));
        datagram_peer to_shared = ends.peer(1);
        to_shared.queue = flooded->number();
        ends.send_to(ends.peer(1), message);
        ends.send_to(to_shared, message);
        rc[0]->post(WEFTIO_OPCODE_SEND, {ends.memory(0).local(0, message)});
        flood(burst / 2);
        ends.at(0).turn();
        flood(burst / 2);
        ends.run();
        expect_one(*ends.completions[1], honest, round);
        expect_one(rc_completions[1], connected, round);
        expect_one(completions, sharing, round);
        std::array<completion, waiting> own;
        ASSERT_EQ(ends.completions[0]->poll(own), round == 0 ? 4u : 2u); // with those of make_hostile()
        ASSERT_EQ(rc_completions[0].poll(own), 1u);
        post_all(round);
    }
    void expect_one(completion_queue& of, std::size_t which, std::uint32_t round)
    {
        const std::size_t header = which == connected ? 0 : datagram_ends::header_bytes;
        std::array<completion, waiting> all;
        ASSERT_EQ(of.poll(all), 1u) << "of " << which << " in round " << round;
        ASSERT_EQ(all[0].opcode, reported_as::received);
        ASSERT_EQ(all[0].bytes, header + message);
        const std::uint8_t* const came = ends.memory(1).data() + offset(which, round) + header;
        ASSERT_TRUE(
            std::all_of(came, came + message, [&](auto byte) { return byte == static_cast<std::uint8_t>(round); }))
            << "of " << which << " in round " << round;
    }
    counted count()
    {
        const nic::soft::roce_arrivals& came = software_nic(ends.at(1)).rdma().arrivals();
        const rdma_counters one = ends.pair(1)->counters(), other = flooded->counters();
        return {.refused = one.refused + other.refused,
                .ignored = one.ignored + other.ignored,
                .malformed = came.malformed.value(),
                .for_nobody = came.for_nobody.value(),
                .wrong_ip = came.wrong_ip_checksum.value(),
                .wrong_icrc = came.rx_icrc_encapsulated.value()};
    }
    std::size_t under_way()
    {
        return software_nic(ends.at(1)).rdma().bytes_under_way();
    }
    static std::size_t memory_in_use()
    {
        return mallinfo2().uordblks;
    }

    datagram_ends ends{false};
    shared_program shared{*ends.devices[1], ends.cpu};
    completion_queue completions{ends.at(1), ends.cpu};
    std::array<completion_queue, 2> rc_completions{{{ends.at(0), ends.cpu}, {ends.at(1), ends.cpu}}};
    std::array<std::optional<posted_pair>, 2> rc;
    posted_pair flooded{*ends.devices[1],
                        ends.cpu,
                        completions,
                        completions,
                        {.service = rdma_service::datagram, .shared = &shared.made}};
    std::vector<hostile> kinds;
    counted expected;
    std::uint32_t sent = 0;
};

} // namespace

TEST_F(DatagramFlood, TakesNothingFromAnybody)
{
    std::uint32_t round = 0;
    for (; sent < 16 * burst; ++round)
        exchange(round);
    const std::size_t before = memory_in_use(), under_way_before = under_way();
    for (; sent < datagrams && !HasFatalFailure(); ++round)
        exchange(round);
    EXPECT_EQ(count(), expected);
    EXPECT_LE(memory_in_use(), before);
    EXPECT_EQ(under_way(), under_way_before);
    for (const rdma_dump& dump : {ends.pair(1)->dump(), flooded->dump()}) {
        ASSERT_EQ(dump.refused_by.size(), 1u);
        EXPECT_EQ(dump.refused_by[0].reason, refusal::wrong_queue_key);
        EXPECT_EQ(dump.refused_by[0].count, dump.counters.refused);
        EXPECT_EQ(dump.counters.executed, round);
        EXPECT_EQ(dump.counters.not_ready, 0u);
        EXPECT_EQ(dump.receives_posted, waiting);
    }
    EXPECT_EQ((*rc[1])->dump().receives_posted, waiting);
}

} // namespace weftio::test
