// Checksums that a whole send queue asks for.
#include <cstring>

#include "fixture.hpp"
#include "options_kernels.h"
#include "unit/steering/frames.hpp"

WEFTIO_DEFINE_KERNEL(sends_array, "options_kernels.h");

namespace weftio::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t ipv4_at = 14, ipv4_sum_at = ipv4_at + 10, udp_sum_at = ipv4_at + 20 + 6;

class QueueChecksums : public OnEachDevice {
 protected:
    /// A frame whose sums are right, as it arrives when they were wrong and this queue has sent it.
    frames::bytes sent_by(const eth_txq& out)
    {
        frames::bytes frame = good;
        frames::set(frame, ipv4_sum_at, 0xdead);
        frames::set(frame, udp_sum_at, 0xbeef);
        const buf_arr array(port_, where(), {.count = 1, .buffer_bytes = static_cast<std::uint32_t>(frame.size())});
        std::memcpy(array.cpu_address(0), frame.data(), frame.size());
        const device cpu = device::open("cpu");
        const eth_rxq in(port_, cpu, {.packets = 64});
        const flow all(port_, {}, flow_action::to(in));
        const shared_words refused(where(), 1);
        running_kernel sends =
            where().launch(sends_array_kernel, {.blocks = 1, .lanes = 1}, out, array, 1u, 0u, refused.on_device());
        EXPECT_TRUE(sends.wait_for(patience));
        weftio_u32 count = 0, first = 0;
        EXPECT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
        EXPECT_EQ(count, 1u);
        const std::uint8_t* at = weftio_dev_eth_rxq_address(in.handle(), first);
        return {at, at + frame.size()};
    }

    const frames::bytes good = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1000, 2000, 40)));
};

TEST_P(QueueChecksums, AreInEveryFrameWithoutAFlag)
{
    const eth_txq both(port_, where(), {.checksums = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM});
    EXPECT_EQ(sent_by(both), good);
    const eth_txq l3(port_, where(), {.checksums = WEFTIO_DEV_SEND_L3_CHECKSUM});
    frames::bytes wanted = good;
    frames::set(wanted, udp_sum_at, 0xbeef);
    EXPECT_EQ(sent_by(l3), wanted);
    const eth_txq none(port_, where());
    frames::set(wanted, ipv4_sum_at, 0xdead);
    EXPECT_EQ(sent_by(none), wanted);
}

INSTANTIATE_TEST_SUITE_P(On, QueueChecksums, testing::Values("cpu", "opencl"));

TEST(QueueChecksumOptions, AreRefusedWithOtherBits)
{
    const port null = port::open("null");
    const error thrown = error_of([&] { eth_txq(null, device::open("cpu"), {.checksums = WEFTIO_DEV_SEND_NOTIFY}); });
    EXPECT_EQ(thrown.code(), errc::invalid_argument);
    EXPECT_THAT(thrown.what(), HasSubstr("checksums is 0x1"));
}

TEST(QueueChecksumOptions, AreInWaitlessInlineFramesToo)
{
    const port loop = port::open("loopback");
    const device cpu = device::open("cpu");
    eth_txq out(loop, cpu, {.checksums = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM});
    const eth_rxq in(loop, cpu, {.packets = 64});
    const flow all(loop, {}, flow_action::to(in));
    const frames::bytes good = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 32)));
    frames::bytes frame = good;
    frames::set(frame, udp_sum_at, 0xbeef);
    ASSERT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(out.handle(), frame.data(),
                                                            static_cast<weftio_u32>(frame.size()), 0),
              WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(out.handle());
    weftio_dev_eth_txq_push(out.handle());
    weftio_u32 count = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
    EXPECT_EQ(std::memcmp(weftio_dev_eth_rxq_address(in.handle(), first), good.data(), good.size()), 0);
}

} // namespace
} // namespace weftio::test
