// Ports on a wire in shared memory.
#include <chrono>
#include <thread>

#include "patience.hpp"
#include "weftio/log.hpp"
#include "wire_end.hpp"

namespace weftio::test {

namespace {

TEST(WirePort, CarriesFramesToPortsOfItsWire)
{
    const wired_end one, two;
    EXPECT_EQ(one.at.driver(), "wire");
    EXPECT_EQ(one.at.mtu(), 4200);
    EXPECT_TRUE(one.at.link_up());
    EXPECT_NE(one.at.mac(), two.at.mac());
    for (std::uint64_t number = 0; number != 300; ++number) {
        const frame there = numbered(two.at.mac(), number, 60 + number * 4154 / 299),
                    back = numbered(everybody, number, 60);
        one.send(there);
        ASSERT_EQ(two.receive(), there);
        two.send(back);
        ASSERT_EQ(one.receive(), back);
    }
    EXPECT_EQ(one.at.counters().tx_dropped, 0u);
    one.send(numbered({2, 0x57, 0, 0, 1, 9}, 1, 60));
    EXPECT_EQ(one.at.counters().tx_dropped, 1u);
}

TEST(WirePort, CarriesFramesOfTheMtuThatItIsOpenedWith)
{
    const wired_end one({.mtu = 8000}), two({.mtu = 8000}), less;
    EXPECT_EQ(one.at.mtu(), 8000);
    const frame sent = numbered(two.at.mac(), 1, 8014);
    one.send(sent);
    EXPECT_EQ(two.receive(), sent);
    one.send(numbered(less.at.mac(), 1, 8014));
    one.send(numbered(less.at.mac(), 2, 4214));
    EXPECT_EQ(less.receive(), numbered(less.at.mac(), 2, 4214));
    EXPECT_EQ(less.at.counters().driver_missed, 1u) << "one was longer than its MTU";
}

TEST(WirePort, RefusesWhatAWireIsNot)
{
    const auto refused = [](const std::string& spec, const port_options& options, errc code, const char* words) {
        try {
            port::open(spec, options);
            ADD_FAILURE() << spec;
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), code) << refusal.what();
            EXPECT_NE(std::string(refusal.what()).find(words), std::string::npos) << refusal.what();
        }
    };
    refused("wire:", {}, errc::invalid_argument, "port wire:: a wire's name has 1 to 64 characters");
    refused("wire:a/b", {}, errc::invalid_argument,
            "port wire:a/b: a wire's name may have only letters, digits and . _ -");
    refused("wire:x", {.engines = 2}, errc::not_supported, "port wire:x: engines is 2, but a port of a wire has one");
    refused("wire:x,loss=2", {}, errc::invalid_argument, "port wire:x,loss=2: loss=2 is not a number from 0 to 1");
    refused("wire:x,loss=", {}, errc::invalid_argument, "loss= is not a number from 0 to 1");
    refused("wire:x,loss=nan", {}, errc::invalid_argument, "loss=nan is not a number from 0 to 1");
    refused("wire:x,seed=-1", {}, errc::invalid_argument, "seed=-1 is not a number from 0 to");
    refused("wire:x,lost=1", {}, errc::invalid_argument, "\"lost=1\" is not an option of a wire");
    EXPECT_FALSE(std::filesystem::exists(wires::path_of("", "x")));
}

TEST(WirePort, LosesTheFramesThatItsSeedFixes)
{
    constexpr unsigned frames = 400;
    const auto lost_of = [](const std::string& words) {
        const wired_end end({}, words), other;
        std::vector<bool> lost;
        for (unsigned each = 0; each != frames; ++each) {
            const std::uint64_t before = end.at.counters().tx_dropped;
            end.send(numbered(other.at.mac(), each, 60));
            lost.push_back(end.at.counters().tx_dropped != before);
            if (!lost.back()) {
                EXPECT_EQ(other.receive(), numbered(other.at.mac(), each, 60));
            }
        }
        return lost;
    };
    const std::vector<bool> some = lost_of(",loss=0.25,seed=7");
    const auto count = std::ranges::count(some, true);
    EXPECT_GT(count, frames / 4 - 40);
    EXPECT_LT(count, frames / 4 + 40);
    EXPECT_EQ(lost_of(",seed=7,loss=0.25"), some);
    EXPECT_NE(lost_of(",loss=0.25,seed=8"), some);
    EXPECT_EQ(std::ranges::count(lost_of(",loss=1"), true), frames);
    EXPECT_EQ(std::ranges::count(lost_of(""), true), 0);
}

TEST(WirePort, CarriesRdmaWithNumbersThatDoNotMeet)
{
    const wired_end one, two;
    rdma_end here(one, 1), there(two, 2);
    EXPECT_EQ(here.queue.address().peer().queue, 16u);
    EXPECT_EQ(there.queue.address().peer().queue, 16u + 16384);
    here.queue.connect(there.queue.address());
    there.queue.connect(here.queue.address());
    here.write_all(there);
    const auto members = software_nic(one.at).device().shared()->member().members();
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[1].first_queue, 16u + 16384);
    EXPECT_EQ(members[1].queues, 16384u);
    EXPECT_EQ(members[1].first_address, (wires::gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}));
}

TEST(WirePort, FindsTheMacOfAMemberThatDoesNotAnswer)
{
    const wired_end one({}, ",loss=1"), two({}, ",loss=1");
    const rdma_end here(one, 1), there(two, 2);
    EXPECT_EQ(here.device.mac_of("10.0.0.2"), two.at.mac());
}

TEST(WirePort, LosesPacketsBetweenItsOwnQueuePairs)
{
    std::vector<std::string> lines;
    set_log_sink([&](log_level level, std::string_view line) {
        if (level == log_level::info)
            lines.emplace_back(line);
    });
    const wired_end end({}, ",loss=1");
    set_log_sink({});
    EXPECT_THAT(lines,
                testing::Contains(testing::HasSubstr(",loss=1: loses frames, also between queue pairs of this ")));
    rdma_end here(end, 1), there(end, 2);
    here.queue.connect(there.queue.address());
    there.queue.connect(here.queue.address());
    *static_cast<std::uint8_t*>(here.memory.cpu_address()) = 1;
    weftio_dev_rdma* const rdma = here.queue.handle();
    ASSERT_EQ(weftio_dev_rdma_write(rdma, remote_region::of(there.region).on_device(), 0, here.region.buffer(), 0, 1,
                                    WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    weftio_dev_rdma_commit(rdma);
    for (const auto until = std::chrono::steady_clock::now() + patience;
         here.queue.counters().packets < 2 && std::chrono::steady_clock::now() < until;) // it is repeated
        std::this_thread::yield();
    EXPECT_GE(here.queue.counters().packets, 2u);
    EXPECT_EQ(there.queue.counters().requests, 0u);
    EXPECT_EQ(*static_cast<std::uint8_t*>(there.memory.cpu_address()), 0);
    EXPECT_GE(end.at.counters().tx_dropped, 2u);
}

TEST(WirePort, RefusesAnAddressThatAnotherMemberHas)
{
    const wired_end one, two;
    {
        const rdma_device first(one.at, {.address = "10.0.0.1"});
        try {
            const rdma_device second(two.at, {.address = "10.0.0.1"});
            ADD_FAILURE();
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), errc::in_use);
            EXPECT_THAT(refusal.what(), testing::HasSubstr(fmt::format("process {} already has the address 10.0.0.1 "
                                                                       "on this wire",
                                                                       getpid())));
        }
        const rdma_device other(two.at, {.address = "10.0.0.2"});
    }
    const rdma_device later(two.at, {.address = "10.0.0.1"});
}

} // namespace

} // namespace weftio::test
