// What users make does the same on every NIC behind nic/backend.hpp.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "cable_nic.hpp"
#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"
#include "nic_case.hpp"
#include "seam_kernels.h"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(sends_numbers, "unit/seam/seam_kernels.h");
WEFTIO_DEFINE_KERNEL(sends_by_key, "unit/seam/seam_kernels.h");
WEFTIO_DEFINE_KERNEL(sees_numbers, "unit/seam/seam_kernels.h");

namespace weftio::test {
namespace {

[[maybe_unused]] const bool added = (add_cable_nic(), true);

constexpr std::uint16_t even = 0x88b5, odd = 0x88b6; // for experiments: IEEE 802

class EveryNic : public testing::TestWithParam<nic_case> {
 protected:
    ~EveryNic() override
    {
        const port_counters seen = counters_when_idle();
        EXPECT_EQ(seen.received, seen.delivered + seen.dropped_total());
        EXPECT_EQ(seen.held, 0u);
        const eth_txq_counters sent = out.counters();
        EXPECT_EQ(sent.enqueued, sent.sent + sent.waited + sent.failed + sent.flushed);
    }
    /// Turns where nobody else runs them.
    void turn()
    {
        if (GetParam().mode == engine_mode::inline_worker)
            port_.turn();
    }
    bool eventually_here(const std::function<bool()>& condition)
    {
        return eventually([&] {
            turn();
            return condition();
        });
    }
    port_counters counters_when_idle()
    {
        eventually_here([&] { return port_.counters().received >= out.counters().sent; });
        return port_.counters();
    }
    /// Sends frames, some at a time, and waits until they have left: a NIC that nobody drives does nothing meanwhile.
    void send(std::uint32_t count)
    {
        constexpr std::uint32_t most = 50;
        for (; count != 0 && !HasFailure(); ++launches) {
            const std::uint32_t some = std::min(count, most);
            const std::uint64_t before = out.counters().sent;
            auto kernel = cpu_.launch(sends_numbers_kernel, {.blocks = 1, .lanes = 1}, out, frames, some,
                                      std::uint32_t{even}, std::uint32_t{odd});
            EXPECT_TRUE(kernel.wait_for(patience));
            EXPECT_TRUE(eventually_here([&] { return out.counters().sent == before + some; }));
            count -= some;
        }
    }
    running_kernel receive(const eth_rxq& queue, const shared_words& seen)
    {
        return cpu_.launch(sees_numbers_kernel, {.blocks = 1, .lanes = 1}, queue, seen.on_device());
    }

    device cpu_ = device::open("cpu");
    port port_ = port::open(GetParam().spec, {.mode = GetParam().mode});
    eth_txq out{port_, cpu_, {.entries = 128}};
    buf_arr frames{port_, cpu_, {.count = 64, .buffer_bytes = 64}};
    std::uint32_t launches = 0; ///< of send()
};

TEST_P(EveryNic, CarriesFramesInOrderOnce)
{
    constexpr std::uint32_t count = 70'000; // indices of 16 bits begin again
    eth_rxq in(port_, cpu_, {.packets = 256});
    flow all(port_, {}, flow_action::to(in));
    shared_words seen(cpu_, 2);
    running_kernel receives = receive(in, seen);
    std::uint32_t sent = 0;
    while (sent < count && !HasFailure()) {
        send(200);
        sent += 200;
        ASSERT_TRUE(eventually_here([&] { return seen[0] == sent; })) << seen[0] << " of " << sent;
    }
    EXPECT_EQ(seen[1], launches - 1) << "each launch begins at number 0";
    EXPECT_EQ(out.counters().sent, sent);
    EXPECT_EQ(in.counters().delivered, sent);
    EXPECT_EQ(all.hits().packets, sent);
    EXPECT_EQ(all.hits().bytes, std::uint64_t{sent} * 64);
    receives.stop();
    EXPECT_TRUE(receives.wait_for(patience));
}

TEST_P(EveryNic, FollowsItsRules)
{
    eth_rxq in(port_, cpu_, {.packets = 256});
    std::vector<flow> rules =
        flow::install(port_, {{.match = {.ether_type = even}, .action = flow_action::to(in), .priority = 1},
                              {.match = {.ether_type = odd}, .action = flow_action::drop(), .priority = 1}});
    const flow &evens = rules[0], &odds = rules[1];
    const flow rest(port_, {}, flow_action::to(in), 2);
    send(100);
    ASSERT_TRUE(eventually_here([&] { return odds.hits().packets == 50; }));
    rules.pop_back();
    send(100);
    ASSERT_TRUE(eventually_here([&] { return rest.hits().packets == 50; }));
    EXPECT_EQ(evens.hits().packets, 100u);
    EXPECT_EQ(in.counters().delivered, 150u);
    EXPECT_EQ(counters_when_idle().dropped[static_cast<std::size_t>(drop_reason::dropped_by_flow)], 50u);
}

TEST_P(EveryNic, CountsWhatItDrops)
{
    std::optional<eth_rxq> in(std::in_place, port_, cpu_, eth_rxq_options{.packets = 64});
    flow all(port_, {}, flow_action::to(*in));
    send(100);
    ASSERT_TRUE(eventually_here([&] { return all.hits().packets == 100; }));
    EXPECT_EQ(in->counters().delivered, 64u);
    EXPECT_EQ(in->counters().out_of_buffer, 36u);
    in.reset();
    send(10);
    ASSERT_TRUE(eventually_here([&] { return all.hits().packets == 110; }));
    const port_counters seen = counters_when_idle();
    EXPECT_EQ(seen.dropped[static_cast<std::size_t>(drop_reason::out_of_buffer)], 36u);
    EXPECT_EQ(seen.dropped[static_cast<std::size_t>(drop_reason::queue_closed)], 10u);
}

TEST_P(EveryNic, FillsTheCallersSlotsOneBehindTheOtherWithZerosBehindPackets)
{
    constexpr std::uint32_t packets = 64, stride = 100, offset = 33, zeroed = 20;
    const memory own = cpu_.allocate(offset + packets * stride, memory_kind::cpu_device);
    const memory_region region(own);
    eth_rxq in(port_, cpu_,
               {.packets = packets,
                .max_packet_bytes = 80,
                .region = &region,
                .offset_bytes = offset,
                .stride_bytes = stride,
                .consecutive = true,
                .zeroed_bytes = zeroed});
    flow all(port_, {}, flow_action::to(in));
    for (std::uint32_t round = 0; round < 3; ++round) {
        std::memset(own.cpu_address(), 0xff, own.bytes());
        send(40); // not a divisor of 64
        ASSERT_TRUE(eventually_here([&] { return in.counters().delivered == (round + 1) * 40; }));
        for (std::uint32_t frame = 0; frame < 40; ++frame) {
            const auto* at = static_cast<const std::uint8_t*>(own.cpu_address()) + offset +
                             std::size_t{(round * 40 + frame) % packets} * stride;
            ASSERT_EQ(at[14], frame) << round;
            EXPECT_THAT(std::vector(at + 64, at + 64 + zeroed), testing::Each(0)) << frame;
        }
        weftio_u32 count = 0, first = 0;
        ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), 40, 0, &count, &first), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_rxq_release(in.handle(), first, count), WEFTIO_DEV_OK);
    }
    EXPECT_EQ(*static_cast<const std::uint8_t*>(own.cpu_address()), 0xff) << "in front of the slots";
}

TEST_P(EveryNic, HasAllButOneOfSixtyFiveThousandSlots)
{
    constexpr std::uint32_t packets = 65536;
    const eth_rxq in(port_, cpu_, {.packets = packets, .max_packet_bytes = 64});
    flow all(port_, {}, flow_action::to(in));
    send(packets + 10);
    ASSERT_TRUE(eventually_here([&] { return all.hits().packets == packets + 10; }));
    EXPECT_EQ(in.counters().delivered, packets - 1);
    weftio_u32 count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), packets - 1, 0, &count, &first), WEFTIO_DEV_OK);
    EXPECT_EQ(count, packets - 1);
    ASSERT_EQ(weftio_dev_eth_rxq_release(in.handle(), first, 5), WEFTIO_DEV_OK);
    send(10);
    ASSERT_TRUE(eventually_here([&] { return all.hits().packets == packets + 20; }));
    EXPECT_EQ(in.counters().delivered, packets + 4);
}

TEST_P(EveryNic, RefusesTheKeyOfARegionThatIsGone)
{
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(out, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    const memory own = cpu_.allocate(4096, memory_kind::cpu_device);
    std::optional<memory_region> region(std::in_place, port_, own);
    const auto send_by_key = [&, key = region->lkey()] {
        auto kernel = cpu_.launch(sends_by_key_kernel, {.blocks = 1, .lanes = 1}, out,
                                  static_cast<weftio_u8*>(own.device_address()), key);
        EXPECT_TRUE(kernel.wait_for(patience));
    };
    flow all(port_, {}, flow_action::drop());
    send_by_key();
    ASSERT_TRUE(eventually_here([&] { return out.counters().sent == 1; }));
    region.reset();
    send_by_key();
    ASSERT_TRUE(eventually_here([&] { return progress.progress() != 0; }));
    ASSERT_EQ(reported.size(), 1u);
    EXPECT_EQ(reported[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(reported[0].position, 1u);
    EXPECT_TRUE(out.failed());
    EXPECT_EQ(out.counters().failed, 1u);
    EXPECT_EQ(all.hits().packets, 1u);
}

TEST_P(EveryNic, SaysItsKeyOfARegion)
{
    const memory own = cpu_.allocate(4096, memory_kind::cpu_device);
    memory_region region(own);
    const error refused = error_of([&] { (void)region.lkey(port_); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::HasSubstr("it is not registered with port " + port_.spec()));
    region.register_with(port_);
    EXPECT_EQ(region.lkey(port_), region.lkey());
    EXPECT_EQ(weftio_swap32(region.buffer().lkey_be), region.lkey());
    const buf_arr buffers(port_, cpu_, {.count = 1, .buffer_bytes = 64});
    EXPECT_NE(buffers.lkey(), region.lkey());
    const port same = port::open(GetParam().spec), other = port::open("loopback");
    const std::uint32_t key = region.lkey(port_);
    region.register_with(same);
    region.register_with(other);
    EXPECT_EQ(region.lkey(), key) << "of the first";
    EXPECT_EQ(region.lkey(port_), key);
}

TEST_P(EveryNic, KnowsARegionThatHasChangedByItsNewKeyOnly)
{
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(out, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    const memory own = cpu_.allocate(4096, memory_kind::cpu_device);
    memory_region region(port_, own);
    const auto send_by = [&](std::uint32_t key, std::uint64_t address) {
        auto kernel = cpu_.launch(sends_by_key_kernel, {.blocks = 1, .lanes = 1}, out,
                                  reinterpret_cast<weftio_u8*>(address), key);
        EXPECT_TRUE(kernel.wait_for(patience));
    };
    flow all(port_, {}, flow_action::drop());
    const std::uint32_t before = region.lkey();
    send_by(before, region.iova());
    ASSERT_TRUE(eventually_here([&] { return out.counters().sent == 1; }));
    const std::uint64_t at = region.iova();
    region.rereg({.iova = at + 0x10000}, 1024, 1024);
    send_by(region.lkey(), at + 0x10000);
    ASSERT_TRUE(eventually_here([&] { return out.counters().sent == 2; }));
    send_by(before, at);
    ASSERT_TRUE(eventually_here([&] { return progress.progress() != 0; }));
    ASSERT_EQ(reported.size(), 1u);
    EXPECT_EQ(reported[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_EQ(reported[0].position, 2u);
    EXPECT_EQ(all.hits().packets, 2u);
}

TEST_P(EveryNic, RefusesTheKeyOfAnotherDomain)
{
    const protection_domain domain = protection_domain::make();
    const memory own = cpu_.allocate(4096, memory_kind::cpu_device);
    const memory_region ours(port_, own), theirs(port_, own, {.domain = domain});
    eth_txq their_queue(port_, cpu_, {.entries = 128, .domain = domain});
    flow all(port_, {}, flow_action::drop());
    const auto send_by_key = [&](const eth_txq& queue, const memory_region& region) {
        auto kernel = cpu_.launch(sends_by_key_kernel, {.blocks = 1, .lanes = 1}, queue,
                                  static_cast<weftio_u8*>(own.device_address()), region.lkey());
        EXPECT_TRUE(kernel.wait_for(patience));
    };
    send_by_key(out, ours);
    send_by_key(their_queue, theirs);
    ASSERT_TRUE(eventually_here([&] { return out.counters().sent == 1 && their_queue.counters().sent == 1; }));
    send_by_key(out, theirs);
    send_by_key(their_queue, ours);
    ASSERT_TRUE(eventually_here([&] { return out.failed() && their_queue.failed(); }));
    EXPECT_EQ(out.counters().sent, 1u);
    EXPECT_EQ(their_queue.counters().sent, 1u);
    EXPECT_TRUE(eventually_here([&] { return all.hits().packets == 2; }));
}

TEST_P(EveryNic, GoesOnBehindAReset)
{
    eth_rxq in(port_, cpu_, {.packets = 256});
    flow all(port_, {}, flow_action::to(in));
    for (std::uint32_t round = 1; round <= 3; ++round) {
        shared_words seen(cpu_, 2);
        running_kernel receives = receive(in, seen);
        send(100);
        ASSERT_TRUE(eventually_here([&] { return seen[0] == 100; }));
        receives.stop();
        ASSERT_TRUE(receives.wait_for(patience));
        const auto before = detail::internals::line(in), sends_before = detail::internals::line(out);
        in.reset();
        out.reset();
        before->quiesce(); // as the watchdog of an earlier kernel does: the new rings go on
        sends_before->quiesce();
        EXPECT_NE(before->describe().find("reset or closed meanwhile"), std::string::npos) << before->describe();
        EXPECT_EQ(detail::internals::line(in)->describe().find("reset or closed meanwhile"), std::string::npos)
            << detail::internals::line(in)->describe();
        EXPECT_EQ(in.counters().delivered, 100 * round);
    }
}

TEST_P(EveryNic, RefusesAnEngineThatItHasNot)
{
    eth_rxq in(port_, cpu_);
    EXPECT_EQ(error_of([&] { in.move_to(7); }).code(), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { out.move_to(7); }).code(), errc::invalid_argument);
    for (const int engine : {7, -2}) {
        EXPECT_EQ(error_of([&] { eth_rxq(port_, cpu_, {.engine = engine}); }).code(), errc::invalid_argument);
        EXPECT_EQ(error_of([&] { eth_txq(port_, cpu_, {.engine = engine}); }).code(), errc::invalid_argument);
    }
    EXPECT_NO_THROW(in.move_to(0));
    EXPECT_EQ(out.engine(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryNic, testing::ValuesIn(every_nic), name_of_nic);

TEST(SecondNic, RefusesInASentenceWhatItCannotDo)
{
    const port cable = port::open("cable:ethernet");
    nic::backend& nic = detail::internals::backend(cable);
    for (const error& refusal : {error_of([&] { nic.make_rdma_queue({}, rdma_service::reliable); }),
                                 error_of([&] { nic.make_completion_queue({}); }),
                                 error_of([&] { rdma_device(cable, {.address = "10.0.0.1"}); })}) {
        EXPECT_EQ(refusal.code(), errc::not_supported);
        EXPECT_THAT(refusal.what(), testing::HasSubstr("the NIC of port cable:ethernet has no RDMA; open a port"));
    }
}

TEST(SecondNic, HasKeysOfItsOwn)
{
    const device cpu = device::open("cpu");
    port software = port::open("loopback"), again = port::open("loopback"), cable = port::open("cable:1");
    const dma_engine engine;
    const memory own = cpu.allocate(4096, memory_kind::cpu_device);
    memory_region region(software, own);
    const std::uint32_t key = region.lkey();
    region.register_with(cable);
    region.register_with(again);
    region.register_with(engine);
    EXPECT_EQ(region.lkey(), key);
    for (const std::uint32_t at : {region.lkey(software), region.lkey(again), region.lkey(engine)})
        EXPECT_EQ(at, key) << "one for all software NICs";
    EXPECT_NE(region.lkey(cable), key);
    flow all(cable, {}, flow_action::drop());
    eth_txq by_own(cable, cpu), by_other(cable, cpu);
    const auto send_by = [&](const eth_txq& queue, std::uint32_t named) {
        auto kernel = cpu.launch(sends_by_key_kernel, {.blocks = 1, .lanes = 1}, queue,
                                 static_cast<weftio_u8*>(own.device_address()), named);
        EXPECT_TRUE(kernel.wait_for(patience));
    };
    send_by(by_own, region.lkey(cable));
    EXPECT_TRUE(eventually([&] { return by_own.counters().sent == 1; }));
    send_by(by_other, key);
    EXPECT_TRUE(eventually([&] { return by_other.failed(); }));
    EXPECT_EQ(all.hits().packets, 1u);
    memory_region first_there(cable, own);
    EXPECT_EQ(first_there.lkey(), first_there.lkey(cable));
    first_there.register_with(software);
    EXPECT_NE(first_there.lkey(software), first_there.lkey(cable));
}

TEST(SecondNic, SaysWhatItIs)
{
    const port cable = port::open("cable:1");
    EXPECT_EQ(cable.spec(), "cable:1");
    EXPECT_EQ(cable.driver(), "cable");
    EXPECT_EQ(flow(cable, {}, flow_action::drop()).where(), flow_place::driver);
    EXPECT_EQ(error_of([&] { (void)flow(cable, {.vlan = 7}, flow_action::drop()); }).code(), errc::not_supported);
    port other = port::open("loopback");
    const eth_rxq here(other, device::open("cpu"));
    EXPECT_EQ(error_of([&] { (void)flow(cable, {}, flow_action::to(here)); }).code(), errc::invalid_argument);
}

} // namespace
} // namespace weftio::test
