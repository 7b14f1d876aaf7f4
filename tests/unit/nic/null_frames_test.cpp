// Frames of net_null, which asks nobody whether a buffer has room for them.
#include <algorithm>

#include <gmock/gmock.h>

#include "injected_port.hpp"

namespace weftio::test {
namespace {

TEST(NullFrames, ThatAreTooLongForABufferAreRefused)
{
    for (const char* spec : {"net_null4,size=9000,copy=1", "net_null4,size=2049", "net_null4,size=64,size=0x900"}) {
        const error refusal = error_of([&] { port::open(spec); });
        EXPECT_EQ(refusal.code(), errc::invalid_argument);
        EXPECT_THAT(refusal.what(), testing::HasSubstr(spec));
        EXPECT_THAT(refusal.what(), testing::HasSubstr("write size=2048 or less"));
    }
}

TEST(NullFrames, ThatFillABufferArriveWhole)
{
    device cpu = device::open("cpu");
    port port = port::open("net_null4,size=2048,copy=1", {.mode = engine_mode::inline_worker});
    eth_rxq queue(port, cpu, {.packets = 64, .max_packet_bytes = 2048});
    flow everything(port, {}, flow_action::to(queue));
    fake_kernel kernel(queue);
    for (std::uint32_t round = 0; round < 4; ++round) {
        std::vector<weftio_dev_packet> packets = kernel.receive();
        ASSERT_EQ(packets.size(), 64u);
        for (const weftio_dev_packet& packet : packets) {
            EXPECT_EQ(content(packet), bytes(2048)) << "the driver writes zeros over what was there";
            std::fill_n(packet.address, packet.bytes, std::uint8_t{0xff});
        }
        kernel.release(64);
    }
}

} // namespace
} // namespace weftio::test
