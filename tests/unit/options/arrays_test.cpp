// Buffer arrays in memory of the caller's.
#include <cstring>

#include "fixture.hpp"
#include "options_kernels.h"

WEFTIO_DEFINE_KERNEL(sends_array, "options_kernels.h");

namespace weftio::test {
namespace {

using testing::HasSubstr;

class Arrays : public OnEachDevice {};

TEST_P(Arrays, LieInARegionAtAnyOffsetAndStride)
{
    constexpr std::uint32_t count = 20, stride = 67, offset = 13, bytes = 61;
    const memory own = where().allocate(offset + (count - 1) * stride + bytes, memory_kind::cpu_device);
    const memory_region region(port_, own);
    const buf_arr frames(region, where(),
                         {.count = count, .buffer_bytes = bytes, .stride_bytes = stride, .offset_bytes = offset});
    auto* const begin = static_cast<std::byte*>(own.cpu_address());
    for (std::uint32_t frame = 0; frame < count; ++frame) {
        EXPECT_EQ(frames.cpu_address(frame), begin + offset + std::size_t{frame} * stride);
        std::memset(frames.cpu_address(frame), static_cast<int>(frame + 1), bytes);
    }
    EXPECT_EQ(frames.lkey(), region.lkey());
    EXPECT_EQ(frames.count(), count);
    const device cpu = device::open("cpu");
    const eth_rxq in(port_, cpu, {.packets = 64});
    const flow all(port_, {}, flow_action::to(in));
    eth_txq out(port_, where());
    const shared_words refused(where(), 1);
    running_kernel sends = where().launch(sends_array_kernel, {.blocks = 1, .lanes = 1}, out, frames,
                                          std::uint32_t{count}, 0u, refused.on_device());
    ASSERT_TRUE(sends.wait_for(patience));
    EXPECT_EQ(refused[0], 0u);
    weftio_u32 received = 0, first = 0;
    ASSERT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), count, patience_ns, &received, &first), WEFTIO_DEV_OK);
    ASSERT_EQ(received, count);
    for (std::uint32_t frame = 0; frame < count; ++frame)
        EXPECT_EQ(std::memcmp(weftio_dev_eth_rxq_address(in.handle(), frame), frames.cpu_address(frame), bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(On, Arrays, testing::Values("cpu", "opencl"));

class ArrayOptions : public testing::Test {
 protected:
    std::string refused(const memory_region& region, const buf_arr_options& options)
    {
        const error thrown = error_of([&] { buf_arr(region, cpu_, options); });
        EXPECT_EQ(thrown.code(), errc::invalid_argument);
        return thrown.what();
    }

    port port_ = port::open("null");
    device cpu_ = device::open("cpu");
    memory own_ = cpu_.allocate(1000, memory_kind::cpu_device);
};

TEST_F(ArrayOptions, AreRefusedWhereTheLastBufferReachesBehindTheRegion)
{
    const memory_region region(port_, own_);
    EXPECT_NO_THROW(buf_arr(region, cpu_, {.count = 10, .buffer_bytes = 90, .stride_bytes = 100, .offset_bytes = 10}));
    EXPECT_THAT(refused(region, {.count = 10, .buffer_bytes = 90, .stride_bytes = 100, .offset_bytes = 11}),
                HasSubstr("at offset 11"));
    EXPECT_THAT(refused(region, {.count = 11, .buffer_bytes = 90, .stride_bytes = 100}), HasSubstr("1000 bytes"));
    EXPECT_THAT(refused(region, {.count = UINT32_MAX, .buffer_bytes = 1, .stride_bytes = UINT32_MAX}),
                HasSubstr("exceed the region"));
    EXPECT_THAT(refused(region, {.count = 1, .buffer_bytes = 1, .domain = protection_domain::make()}),
                HasSubstr("domain is set"));
    const error thrown = error_of([&] { buf_arr(port_, cpu_, {.count = 1, .buffer_bytes = 1, .offset_bytes = 5}); });
    EXPECT_THAT(thrown.what(), HasSubstr("offset_bytes is 5"));
}

TEST_F(ArrayOptions, OutliveTheRegionWhoseKeyIsRefusedThen)
{
    std::optional<memory_region> region(std::in_place, port_, own_);
    const buf_arr frames(*region, cpu_, {.count = 2, .buffer_bytes = 64});
    eth_txq out(port_, cpu_);
    const auto send = [&] {
        const weftio_dev_buf buf = weftio_dev_buf_get(frames.handle(), 1);
        EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_strong(out.handle(), buf, 64, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(out.handle());
        weftio_dev_eth_txq_push(out.handle());
    };
    send();
    EXPECT_TRUE(eventually([&] { return out.counters().sent == 1; }));
    own_ = {};
    region.reset();
    std::memset(frames.cpu_address(1), 1, 64);
    send();
    EXPECT_TRUE(eventually([&] { return out.failed(); }));
    EXPECT_EQ(out.counters().sent, 1u);
}

} // namespace
} // namespace weftio::test
