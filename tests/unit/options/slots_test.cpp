// Where packets lie: in the caller's memory, one behind the other, with zeros behind them, in a ring as deep as can be.
#include <cstring>

#include "fixture.hpp"
#include "options_kernels.h"

WEFTIO_DEFINE_KERNEL(sends_array, "options_kernels.h");
WEFTIO_DEFINE_KERNEL(reports_slots, "options_kernels.h");

namespace weftio::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint32_t burst = 64, frame_bytes = 61; // no whole words

/// Where a kernel looks for packets.
slot_report slots_at(void* slots, std::uint32_t stride_bytes, std::uint32_t packets, std::uint32_t zeroed_bytes = 0)
{
    slot_report wanted{};
    wanted.slots = static_cast<weftio_u8*>(slots);
    wanted.stride_bytes = stride_bytes;
    wanted.packets = packets;
    wanted.zeroed_bytes = zeroed_bytes;
    return wanted;
}

class Slots : public OnEachDevice {
 protected:
    /// Kernels send `total` frames, which another looks at in slots at `slots`, `hold` of which it always keeps.
    slot_report crossed(const eth_rxq& in, const slot_report& wanted, std::uint32_t total, std::uint32_t hold = 0)
    {
        const flow all(port_, {}, flow_action::to(in));
        memory report = where().allocate(sizeof wanted, memory_kind::cpu_device);
        report.upload(&wanted, sizeof wanted);
        running_kernel looks =
            where().launch(reports_slots_kernel, {.blocks = 1, .lanes = 1}, in,
                           static_cast<slot_report*>(report.device_address()), std::uint32_t{total}, hold);
        send(in, total, *static_cast<const slot_report*>(report.cpu_address()));
        EXPECT_TRUE(looks.wait_for(patience));
        slot_report seen;
        std::memcpy(&seen, report.cpu_address(), sizeof seen);
        EXPECT_EQ(seen.received, total);
        EXPECT_EQ(seen.outside, 0u);
        EXPECT_EQ(seen.out_of_order, 0u);
        return seen;
    }
    /// A quarter of the ring at a time: what the other kernel has looked at it may not have given back yet.
    void send(const eth_rxq& in, std::uint32_t total, const slot_report& seen)
    {
        const std::uint32_t most = std::min(burst, in.packets() / 4);
        eth_txq out(port_, where(), {.entries = 64});
        buf_arr frames(port_, where(), {.count = burst, .buffer_bytes = frame_bytes});
        for (std::uint32_t frame = 0; frame < burst; ++frame)
            std::memset(frames.cpu_address(frame), 2, frame_bytes);
        const shared_words refused(where(), 1);
        for (std::uint32_t sent = 0; sent < total && !HasFailure();) {
            const std::uint32_t some = std::min(most, total - sent);
            running_kernel sends = where().launch(sends_array_kernel, {.blocks = 1, .lanes = 1}, out, frames, some,
                                                  sent + 1, refused.on_device());
            EXPECT_TRUE(sends.wait_for(patience));
            sent += some;
            EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(&seen.received) == sent; }));
        }
        EXPECT_EQ(refused[0], 0u);
        EXPECT_EQ(in.counters().out_of_buffer, 0u);
    }
};

TEST_P(Slots, LieInTheCallersRegionAtAnyOffsetAndStride)
{
    constexpr std::uint32_t packets = 64, stride = 1003, offset = 77, most = 256;
    constexpr std::size_t bytes = offset + (packets - 1) * stride + most;
    const memory own = where().allocate(bytes + 1, memory_kind::cpu_device);
    auto* const begin = static_cast<std::uint8_t*>(own.cpu_address());
    std::memset(begin, 0xc5, bytes + 1);
    std::optional<memory_region> region(std::in_place, own);
    const eth_rxq in(port_, where(),
                     {.packets = packets,
                      .max_packet_bytes = most,
                      .region = &*region,
                      .offset_bytes = offset,
                      .stride_bytes = stride});
    region.reset(); // the queue has the bytes
    auto* const slots = static_cast<std::uint8_t*>(own.device_address()) + offset;
    const slot_report seen = crossed(in, slots_at(slots, stride, packets), 3 * packets, 10);
    EXPECT_EQ(seen.received, 3 * packets);
    EXPECT_THAT(std::vector(begin, begin + offset), Each(0xc5));
    for (std::uint32_t slot = 0; slot < packets; ++slot)
        for (std::size_t at = offset + std::size_t{slot} * stride + most; at < bytes && at % stride != offset; ++at)
            ASSERT_EQ(begin[at], 0xc5) << "byte " << at;
    EXPECT_EQ(begin[bytes], 0xc5);
}

TEST_P(Slots, AreFilledOneBehindTheOtherIfWanted)
{
    constexpr std::uint32_t packets = 64, stride = 128;
    const memory own = where().allocate(packets * stride, memory_kind::cpu_device);
    const memory_region region(own);
    auto* const slots = static_cast<std::uint8_t*>(own.device_address());
    for (const bool plain : {false, true}) {
        const eth_rxq in(port_, where(),
                         {.packets = packets,
                          .max_packet_bytes = stride,
                          .verify_checksums = !plain,
                          .region = &region,
                          .consecutive = true});
        const slot_report seen = crossed(in, slots_at(slots, stride, packets), 1000, 10);
        EXPECT_EQ(seen.misplaced, 0u) << (plain ? "plain" : "verified");
    }
}

TEST_P(Slots, OfTheQueuesOwnAreFilledOneBehindTheOtherToo)
{
    constexpr std::uint32_t packets = 64;
    const eth_rxq in(port_, where(), {.packets = packets, .verify_checksums = false, .consecutive = true});
    weftio_dev_eth_rxq handle;
    std::memcpy(&handle, in.handle(), sizeof handle);
    const slot_report wanted = slots_at(handle.slots, handle.stride_bytes, packets);
    EXPECT_EQ(crossed(in, wanted, 1000, 10).misplaced, 0u);
}

TEST_P(Slots, HaveZerosBehindPackets)
{
    constexpr std::uint32_t packets = 64, zeroed = 67, stride = frame_bytes + zeroed;
    const memory own = where().allocate(packets * stride, memory_kind::cpu_device);
    const memory_region region(own);
    const eth_rxq_options callers{
        .packets = packets, .max_packet_bytes = 64, .region = &region, .stride_bytes = 131, .zeroed_bytes = zeroed};
    EXPECT_EQ(error_of([&] { eth_rxq(port_, where(), callers); }).code(), errc::invalid_argument)
        << "no room for zeros";
    for (const bool verified : {false, true}) {
        const eth_rxq in(port_, where(), {.packets = packets, .verify_checksums = verified, .zeroed_bytes = zeroed});
        weftio_dev_eth_rxq handle;
        std::memcpy(&handle, in.handle(), sizeof handle);
        for (std::uint32_t slot = 0; slot < packets; ++slot)
            std::memset(handle.slots + std::size_t{slot} * handle.stride_bytes, 0xff, handle.slot_bytes + zeroed);
        const slot_report wanted = slots_at(handle.slots, handle.stride_bytes, packets, zeroed);
        EXPECT_EQ(crossed(in, wanted, 500).dirty, 0u);
        EXPECT_EQ(handle.slots[frame_bytes + zeroed], 0xff) << "that is far enough";
    }
}

TEST_P(Slots, AreSixtyFiveThousandOfWhichOneIsHeldBack)
{
    constexpr std::uint32_t packets = 65536, stride = 64, rounds = 2;
    const memory own = where().allocate(packets * stride, memory_kind::cpu_device);
    const memory_region region(own);
    const eth_rxq in(port_, where(),
                     {.packets = packets, .max_packet_bytes = stride, .region = &region, .consecutive = true});
    auto* const slots = static_cast<std::uint8_t*>(own.device_address());
    const slot_report wanted = slots_at(slots, stride, packets);
    EXPECT_EQ(crossed(in, wanted, rounds * packets + 100, 1000).misplaced, 0u);
}

TEST_P(Slots, OfThoseSixtyFiveThousandAllButOneHoldAPacket)
{
    constexpr std::uint32_t packets = 65536;
    const eth_rxq in(port_, where(), {.packets = packets, .max_packet_bytes = 64, .verify_checksums = false});
    const flow all(port_, {}, flow_action::to(in));
    eth_txq out(port_, where(), {.entries = 64});
    const buf_arr frames(port_, where(), {.count = burst, .buffer_bytes = frame_bytes});
    const shared_words refused(where(), 1);
    for (std::uint32_t sent = 0; sent < packets + burst && !HasFailure(); sent += burst) {
        running_kernel sends = where().launch(sends_array_kernel, {.blocks = 1, .lanes = 1}, out, frames,
                                              std::uint32_t{burst}, 0u, refused.on_device());
        EXPECT_TRUE(sends.wait_for(patience));
        EXPECT_TRUE(eventually([&] { return all.hits().packets == sent + burst; }));
    }
    EXPECT_EQ(in.counters().delivered, packets - 1);
    EXPECT_EQ(in.counters().out_of_buffer, burst + 1);
}

TEST_P(Slots, OfARegionOnAnotherDeviceAreRefused)
{
    const device other = device::open(std::string(GetParam()) == "cpu" ? "opencl" : "cpu");
    const memory theirs = other.allocate(8192, memory_kind::cpu_device);
    const memory_region region(theirs);
    const eth_rxq_options options{.packets = 64, .max_packet_bytes = 64, .region = &region};
    EXPECT_EQ(error_of([&] { eth_rxq(port_, where(), options); }).code(), errc::not_reachable);
    EXPECT_EQ(error_of([&] { buf_arr(region, where(), {.count = 1, .buffer_bytes = 1}); }).code(), errc::not_reachable);
}

INSTANTIATE_TEST_SUITE_P(On, Slots, testing::Values("cpu", "opencl"));

class SlotOptions : public testing::Test {
 protected:
    std::string refused(const eth_rxq_options& options, std::error_code why = errc::invalid_argument)
    {
        const error thrown = error_of([&] { eth_rxq(port_, cpu_, options); });
        EXPECT_EQ(thrown.code(), why) << thrown.what();
        return thrown.what();
    }

    port port_ = port::open("null");
    device cpu_ = device::open("cpu");
    memory own_ = cpu_.allocate(64 * 128, memory_kind::cpu_device);
    memory_region region_{own_};
};

TEST_F(SlotOptions, AreRefusedWhereSlotsDoNotFitTheRegion)
{
    eth_rxq_options options{.packets = 64, .max_packet_bytes = 128, .region = &region_};
    EXPECT_NO_THROW(eth_rxq(port_, cpu_, options));
    options.offset_bytes = 1;
    EXPECT_THAT(refused(options), HasSubstr("at offset 1"));
    options.offset_bytes = SIZE_MAX;
    EXPECT_THAT(refused(options), HasSubstr("8192 bytes"));
    options.offset_bytes = 0;
    options.zeroed_bytes = 1;
    EXPECT_THAT(refused(options), HasSubstr("129 bytes"));
    options.zeroed_bytes = 0;
    options.stride_bytes = 127;
    EXPECT_THAT(refused(options), HasSubstr("stride_bytes is 127"));
    options.stride_bytes = UINT32_MAX;
    EXPECT_THAT(refused(options), HasSubstr("exceed the region"));
}

TEST_F(SlotOptions, AreRefusedThatCannotBeHonored)
{
    const memory_region read_only(own_, {.rights = access::none});
    EXPECT_THAT(refused({.packets = 64, .max_packet_bytes = 64, .region = &read_only}), HasSubstr("local_write"));
    EXPECT_THAT(refused({.offset_bytes = 64}), HasSubstr("offset_bytes is 64"));
    EXPECT_THAT(refused({.stride_bytes = 64}), HasSubstr("stride_bytes 64"));
    EXPECT_THAT(refused({.zeroed_bytes = 4097}), HasSubstr("zeroed_bytes is 4097"));
    EXPECT_THAT(refused({.packets = 131072}), HasSubstr("packets is 131072"));
    EXPECT_THAT(
        refused({.packets = 64, .max_packet_bytes = 64, .domain = protection_domain::make(), .region = &region_}),
        HasSubstr("together with region"));
}

} // namespace
} // namespace weftio::test
