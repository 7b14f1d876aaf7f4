// Queue pairs of ports with several engines: where they are, and packets that arrive at another engine than theirs.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "nic/soft/receive/inbox.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

using nic::soft::rdma_unit;

class RdmaEngines : public testing::Test {
 protected:
    /// WRITEs of `bytes` from end 0 to end 1.
    static void write(two_ends& ends, std::uint32_t count, std::uint32_t bytes)
    {
        for (std::uint32_t each = 0; each < count; ++each)
            ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, bytes)});
        ends.queue(0).push();
    }
    /// Expects that no packet is anywhere, and that each was counted once.
    static void expect_all_counted(two_ends& ends)
    {
        std::uint64_t claimed = 0, packets = 0;
        for (unsigned number = 0; number < 2; ++number)
            for (unsigned engine = 0; engine < 2; ++engine) {
                const rdma_unit& unit = software_nic(ends.ports.get(number)).rdma(engine);
                expect_conserved(unit);
                claimed += unit.arrivals().claimed.value();
                packets += unit.sent().sent.value() - unit.sent().copied.value();
            }
        EXPECT_EQ(claimed, packets);
    }
    static bool done(two_ends& ends)
    {
        return ends.queue(0).sent().position == ((ends.queue(0).posted() - 1) & 0xffff);
    }
};

} // namespace

TEST_F(RdmaEngines, HaveAsManyQueuePairsEach)
{
    const port four = port::open("null", {.mode = engine_mode::inline_worker, .engines = 4});
    std::vector<std::unique_ptr<fake_pair>> pairs;
    for (unsigned each = 0; each < 8; ++each) {
        pairs.push_back(std::make_unique<fake_pair>(four));
        EXPECT_EQ(pairs.back()->nic().dump().engine, each % 4);
        EXPECT_EQ(pairs.back()->number(), pairs.front()->number() + each) << "numbers are the port's";
    }
    pairs[2].reset();
    EXPECT_EQ(fake_pair(four).nic().dump().engine, 2u);
}

TEST_F(RdmaEngines, HandPacketsToTheEngineOfTheirQueuePair)
{
    two_ends ends(ends_at(false, false, 2));
    ends.connect();
    write(ends, 1, 4096);
    ends.run();
    EXPECT_TRUE(done(ends));
    EXPECT_EQ(std::memcmp(ends.memory(0).data(), ends.memory(1).data(), 4096), 0);
    nic::soft::soft_port& receiving = software_nic(ends.at(1));
    EXPECT_EQ(receiving.rdma(ends.engine(1)).arrivals().delivered.value(), 4u);
    EXPECT_EQ(receiving.rdma(1 - ends.engine(1)).arrivals().claimed.value(), 0u);
    expect_all_counted(ends);
}

TEST_F(RdmaEngines, MeetByPacketsWithinAPort)
{
    two_ends ends(ends_at(true, false, 2));
    ends.connect();
    EXPECT_NE(ends.engine(0), ends.engine(1));
    write(ends, 1, 4096);
    ends.run();
    EXPECT_TRUE(done(ends));
    EXPECT_TRUE(ends.queue(0).nic().dump().same_port);
    EXPECT_EQ(ends.unit(0).sent().sent.value(), 4u);
    EXPECT_EQ(ends.unit(0).sent().copied.value(), 0u);
    EXPECT_EQ(ends.unit(1).arrivals().delivered.value(), 4u);
    EXPECT_TRUE(ends.ports.take(1).empty()) << "nothing passes the driver";
    expect_all_counted(ends);
}

/// Queue pairs of a port with two engines, by engine.
struct pairs_of_engines {
    explicit pairs_of_engines(const port& port)
    {
        for (unsigned each = 0; each < 2 * 80; ++each) {
            auto made = std::make_unique<fake_pair>(port, 32, 1);
            const unsigned engine = made->nic().dump().engine;
            at[engine].push_back(std::move(made));
        }
    }
    std::array<std::vector<std::unique_ptr<fake_pair>>, 2> at;
};

/// Many queue pairs of both ports send to the second engine of the first port, which stands still meanwhile.
class RdmaStandstill : public RdmaEngines {
 protected:
    static constexpr unsigned couples = 40, entries = 8;
    /// Their windows fit the inbox: what arrives when it is full is lost.
    static constexpr unsigned couples_on_wire = 6;

    RdmaStandstill() { ends.timeout = 0; }

    void begin_to_send(fake_pair& from, unsigned end, fake_pair& to)
    {
        nic::rdma_connection there = ends.connection(end), back = ends.connection(0);
        there.path.destination_mac = ends.mac_of(0);
        there.path.destination = ends.address_of(0);
        back.path.destination_mac = ends.mac_of(end);
        back.path.destination = ends.address_of(end);
        there.peer_queue = to.number();
        back.peer_queue = from.number();
        there.receive_psn = back.send_psn;
        back.receive_psn = there.send_psn;
        from.connect(there);
        to.connect(back);
        for (unsigned entry = 0; entry < entries; ++entry)
            from.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(0).remote_at(0), ends.memory(end).local(32768, 32000)});
        from.push();
    }
    std::uint64_t sent()
    {
        return software_nic(ends.at(0)).rdma(0).sent().sent.value() +
               software_nic(ends.at(1)).rdma(1).sent().sent.value();
    }
    /// Returns how many packets have been sent in all.
    std::uint64_t turn_the_others()
    {
        for (std::uint64_t before = sent();; before = sent()) {
            for (unsigned turn = 0; turn < 50; ++turn) {
                ends.at(1).turn(1);
                ends.at(0).turn(0);
            }
            if (sent() == before)
                return before;
        }
    }

    two_ends ends{ends_at(false, false, 2)};
    pairs_of_engines here{ends.at(0)}, there{ends.at(1)};
};

/// Packets from the port itself wait for room in the inbox.
TEST_F(RdmaStandstill, LosesNothing)
{
    for (unsigned each = 0; each < couples_on_wire; ++each)
        begin_to_send(*there.at[1][each], 1, *here.at[1][couples + each]);
    EXPECT_LE(turn_the_others(), nic::soft::inbox::capacity);
    for (unsigned each = 0; each < couples; ++each)
        begin_to_send(*here.at[0][each], 0, *here.at[1][each]);
    EXPECT_GT(turn_the_others(), nic::soft::inbox::capacity);
    EXPECT_EQ(software_nic(ends.at(0)).rdma(1).arrivals().claimed.value(), 0u);
    EXPECT_TRUE(ends.run_until([&] {
        return std::all_of(here.at[0].begin(), here.at[0].begin() + couples,
                           [](const auto& each) { return each->nic().counters().done == entries; });
    }));
    std::vector<const fake_pair*> senders;
    for (unsigned each = 0; each < couples; ++each)
        senders.push_back(here.at[0][each].get());
    for (unsigned each = 0; each < couples_on_wire; ++each)
        senders.push_back(there.at[1][each].get());
    for (const fake_pair* sender : senders) {
        EXPECT_EQ(sender->nic().counters().repeated, 0u);
        EXPECT_EQ(sender->nic().counters().done, entries);
    }
    for (unsigned engine = 0; engine < 2; ++engine)
        EXPECT_EQ(software_nic(ends.at(0)).rdma(engine).arrivals().inbox_full.value(), 0u);
}

TEST_F(RdmaEngines, DropPacketsOnTheirWayToAQueuePairThatIsClosed)
{
    for (const bool one_port : {true, false}) {
        two_ends ends(ends_at(one_port, false, 2));
        ends.connect();
        const unsigned home = ends.engine(1);
        rdma_unit& unit = ends.unit(1);
        write(ends, 1, 3000);
        for (unsigned turn = 0; turn < 3; ++turn)
            ends.at(0).turn(ends.engine(0));
        if (!one_port)
            ends.at(1).turn(1 - home);
        EXPECT_EQ(unit.arrivals().claimed.value(), 0u);
        ends.queues[1].reset();
        ends.at(1).turn(home);
        EXPECT_EQ(unit.arrivals().claimed.value(), 3u);
        EXPECT_EQ(unit.arrivals().for_nobody.value(), 3u);
        ends.queue(0).nic().stop_sending();
        ends.run();
        expect_all_counted(ends);
    }
}

TEST_F(RdmaEngines, EndInAnyOrderWithPacketsUnderWay)
{
    using step = std::function<void(two_ends&)>;
    const std::array<step, 5> steps{[](two_ends& ends) { ends.queues[0].reset(); },
                                    [](two_ends& ends) { ends.queues[1].reset(); },
                                    [](two_ends& ends) { software_nic(ends.at(0)).rdma(0).port_lost(); },
                                    [](two_ends& ends) { software_nic(ends.at(1)).rdma(1).port_lost(); },
                                    [](two_ends& ends) { ends.at(1).turn(1); }};
    for (const bool one_port : {true, false})
        for (std::size_t first = 0; first < steps.size(); ++first)
            for (std::size_t second = 0; second < steps.size(); ++second) {
                two_ends ends(ends_at(one_port, false, 2));
                ends.connect();
                write(ends, 4, 3000);
                for (unsigned turn = 0; turn < 3; ++turn)
                    ends.at(0).turn(0);
                ends.at(1).turn(0);
                steps[first](ends);
                steps[second](ends);
                for (unsigned engine = 0; engine < 2; ++engine)
                    for (unsigned number = 0; number < 2; ++number)
                        expect_conserved(software_nic(ends.ports.get(number)).rdma(engine));
            }
}

TEST_F(RdmaEngines, AnswerQuestionsForAddressesThatArriveAtAnyEngine)
{
    wired_ports ports(engine_mode::thread, false, 2); // all that one sends arrives at the second engine of the other
    const rdma_device one(ports.get(0), {.address = "10.0.0.1"}), two(ports.get(1), {.address = "10.0.0.2"});
    const device cpu = device::open("cpu");
    rdma_queue here(one, cpu), there(two, cpu);
    rdma_peer peer = there.address().peer();
    const auto mac = peer.mac;
    peer.mac.reset();
    here.connect(rdma_address::of(peer));
    EXPECT_EQ(here.dump().peer_mac, mac);
    EXPECT_EQ(software_nic(ports.get(1)).rdma(0).arrivals().neighbor.value(), 1u);
    EXPECT_EQ(software_nic(ports.get(1)).rdma(1).arrivals().neighbor.value(), 0u);
}

} // namespace weftio::test
