// Memory windows between two queues: what is lent can be reached, until it is taken back, and nothing else.
#include <cstring>

#include <gmock/gmock.h>

#include "public_pair.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t lent_at = 4096, lent_bytes = 1000;
constexpr std::uint64_t ample_ns = 10'000'000'000;

/// End 1 lends, end 0 accesses.
class RdmaWindows : public testing::TestWithParam<place_of_ends> {
 protected:
    RdmaWindows()
    {
        ends.memories[1].emplace(ends.ports.get(GetParam().one_port ? 0 : 1), ends.where, public_ends::memory_bytes,
                                 region_options{.rights = access::local_write | access::bind});
        for (unsigned end = 0; end < 2; ++end)
            window[end].emplace(*ends.devices[1], end == 0 ? window_type::type_1 : window_type::type_2);
        ends.connect();
    }
    weftio_dev_rdma* a() { return ends.queue(0).handle(); }
    weftio_dev_rdma* b() { return ends.queue(1).handle(); }
    memory_window& of(window_type type) { return *window[type == window_type::type_1 ? 0 : 1]; }
    weftio_dev_rdma_request bind_request(window_type type, std::uint32_t next)
    {
        return weftio_dev_rdma_bind_request(of(type).rkey(), next, static_cast<std::uint32_t>(type), ends.buffer(1),
                                            lent_at, lent_bytes,
                                            WEFTIO_DEV_RDMA_REMOTE_WRITE | WEFTIO_DEV_RDMA_REMOTE_READ);
    }
    std::int32_t run(weftio_dev_rdma* rdma, const weftio_dev_rdma_request& request)
    {
        EXPECT_EQ(weftio_dev_rdma_enqueue(rdma, request, 0), WEFTIO_DEV_OK);
        return weftio_dev_rdma_commit_wait(rdma, ample_ns);
    }
    /// Binds and returns what the peer is told.
    weftio_dev_remote lend(window_type type)
    {
        const std::uint32_t next = weftio_dev_rdma_next_rkey(of(type).rkey());
        EXPECT_EQ(run(b(), bind_request(type, next)), WEFTIO_DEV_OK);
        EXPECT_EQ(of(type).rkey(), next);
        EXPECT_TRUE(of(type).standing().bound);
        return {ends.memory(1).address(lent_at), lent_bytes, weftio_swap32(next), 0};
    }
    std::int32_t write(const weftio_dev_remote& to, std::uint64_t offset = 0, std::uint64_t bytes = 8)
    {
        weftio_dev_remote all = to;
        all.bytes = 1 << 20; // this end checks nothing
        return run(a(), weftio_dev_rdma_write_request(all, offset, ends.buffer(0), 0, bytes));
    }
    bool has_arrived(std::size_t offset, std::size_t bytes)
    {
        ends.queue(1).counters(); // synchronizes with the engine
        return std::memcmp(ends.memory(1).data() + lent_at + offset, ends.memory(0).data(), bytes) == 0;
    }

    public_pair ends{GetParam()};
    std::array<std::optional<memory_window>, 2> window;
};

} // namespace

TEST_P(RdmaWindows, LendBytesToThePeerUntilTheyAreTakenBack)
{
    for (const window_type type : {window_type::type_1, window_type::type_2}) {
        const weftio_dev_remote lent = lend(type);
        EXPECT_EQ(ends.memory(1).region.windows(), 1u);
        EXPECT_EQ(write(lent, 0, lent_bytes), WEFTIO_DEV_OK);
        EXPECT_TRUE(has_arrived(0, lent_bytes));
        const std::uint32_t rkey = weftio_swap32(lent.rkey_be);
        EXPECT_EQ(run(b(), type == window_type::type_1 ? weftio_dev_rdma_unbind_request(rkey)
                                                       : weftio_dev_rdma_invalidate_request(rkey)),
                  WEFTIO_DEV_OK);
        EXPECT_FALSE(of(type).standing().bound);
        EXPECT_EQ(ends.memory(1).region.windows(), 0u);
        const std::vector<std::uint8_t> before = ends.memory(1).copy();
        EXPECT_EQ(write(lent), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_EQ(ends.memory(1).copy(), before);
        ends.reset();
    }
}

TEST_P(RdmaWindows, EndWhereTheyWereBound)
{
    struct {
        std::uint64_t offset, bytes;
    } const beyond[] = {{lent_bytes - 7, 8}, {lent_bytes, 1}, {-std::uint64_t{1}, 8}, {-std::uint64_t{lent_at}, 8}};
    for (const auto& [offset, bytes] : beyond) {
        const weftio_dev_remote lent = lend(window_type::type_2);
        const std::vector<std::uint8_t> before = ends.memory(1).copy();
        weftio_dev_remote all = lent;
        all.address += offset;
        EXPECT_EQ(write(all, 0, bytes), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_EQ(ends.memory(1).copy(), before);
        ends.reset();
        EXPECT_EQ(run(b(), weftio_dev_rdma_invalidate_request(weftio_swap32(lent.rkey_be))), WEFTIO_DEV_OK);
    }
}

TEST_P(RdmaWindows, AreReturnedByASendWithInvalidate)
{
    const weftio_dev_remote lent = lend(window_type::type_2);
    weftio_dev_rdma_recv* const receives = ends.queue(1).receives().handle();
    ASSERT_EQ(weftio_dev_rdma_recv_post(receives, ends.buffer(1), 0, 64), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(receives), WEFTIO_DEV_OK);
    EXPECT_EQ(write(lent), WEFTIO_DEV_OK);
    const std::uint32_t rkey = weftio_swap32(lent.rkey_be);
    EXPECT_EQ(run(a(), weftio_dev_rdma_send_inval_request(ends.buffer(0), 0, 8, rkey)), WEFTIO_DEV_OK);
    EXPECT_FALSE(of(window_type::type_2).standing().bound);
    EXPECT_EQ(write(lent), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_P(RdmaWindows, OfARegionKeepItAsItIs)
{
    memory_region& region = ends.memory(1).region;
    const weftio_dev_remote lent = lend(window_type::type_2);
    const auto refused = [&](const std::function<void()>& call) {
        const error why = error_of(call);
        EXPECT_EQ(why.code(), errc::in_use);
        EXPECT_THAT(why.what(), testing::HasSubstr("1 memory window is bound to it"));
    };
    refused([&] { region.close(); });
    refused([&] { region.rereg({}); });
    refused([&] { region.replace(ends.memory(1).memory, {}); });
    EXPECT_EQ(write(lent), WEFTIO_DEV_OK);
    EXPECT_EQ(run(b(), weftio_dev_rdma_invalidate_request(weftio_swap32(lent.rkey_be))), WEFTIO_DEV_OK);
    region.rereg({.rights = access::local_write | access::bind});
    EXPECT_EQ(write(lend(window_type::type_2)), WEFTIO_DEV_OK);
}

TEST_P(RdmaWindows, FollowARingAroundItsEnd)
{
    for (unsigned round = 0; round != 100; ++round) {
        const weftio_dev_remote lent = lend(window_type::type_2);
        ASSERT_EQ(write(lent), WEFTIO_DEV_OK) << round;
        ASSERT_EQ(run(b(), weftio_dev_rdma_invalidate_request(weftio_swap32(lent.rkey_be))), WEFTIO_DEV_OK) << round;
    }
    const rdma_counters counters = ends.queue(1).counters();
    EXPECT_EQ(counters.done, 200u);
    EXPECT_EQ(counters.skipped, 0u);
}

/// A peer that had been told of success would not send the message again.
TEST_P(RdmaWindows, DoNotServeAsMemoryOfAReceive)
{
    const weftio_dev_remote lent = lend(window_type::type_2);
    weftio_dev_buf wrong = ends.buffer(1);
    wrong.lkey_be = lent.rkey_be;
    weftio_dev_rdma_recv* const receives = ends.queue(1).receives().handle();
    ASSERT_EQ(weftio_dev_rdma_recv_post(receives, wrong, lent_at, 64), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(receives), WEFTIO_DEV_OK);
    EXPECT_EQ(run(a(), weftio_dev_rdma_send_request(ends.buffer(0), 0, 8)), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(ends.queue(0).counters().done, 0u);
}

TEST_P(RdmaWindows, AreBoundInFrontOfASignal)
{
    const memory note = ends.where.allocate(8, memory_kind::cpu_device);
    const memory_region told(ends.ports.get(0), note, {.rights = all_rights});
    for (unsigned round = 0; round != 40; ++round) {
        const std::uint32_t next = weftio_dev_rdma_next_rkey(of(window_type::type_2).rkey());
        weftio_u32 position = 0;
        ASSERT_EQ(weftio_dev_rdma_write_signal_position(b(), bind_request(window_type::type_2, next),
                                                        remote_region::of(told).on_device(), 0, next, 0, &position),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_commit_wait(b(), ample_ns), WEFTIO_DEV_OK) << round;
        ASSERT_EQ(weftio_dev_rdma_wait(b(), position, ample_ns), WEFTIO_DEV_OK);
        EXPECT_EQ(of(window_type::type_2).rkey(), next);
        ASSERT_EQ(run(b(), weftio_dev_rdma_invalidate_request(next)), WEFTIO_DEV_OK);
    }
}

TEST_P(RdmaWindows, InWeakModeOverwriteNoCommittedEntry)
{
    const std::uint32_t rkey = of(window_type::type_2).rkey(), next = weftio_dev_rdma_next_rkey(rkey);
    weftio_u32 position = 0, mask = 0;
    weftio_dev_rdma_get_info(b(), &position, &mask);
    ASSERT_EQ(weftio_dev_rdma_enqueue_weak(b(), bind_request(window_type::type_2, next), position, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit_weak(b(), 3), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_wait(b(), position, ample_ns), WEFTIO_DEV_OK);
    const weftio_dev_rdma_request more = bind_request(window_type::type_2, weftio_dev_rdma_next_rkey(next));
    for (const weftio_u32 taken : {position, position + 1, position + 2, position + 3 + mask - 1})
        EXPECT_EQ(weftio_dev_rdma_enqueue_weak(b(), more, taken, 0), WEFTIO_DEV_INVALID_ARGUMENT) << taken;
    EXPECT_EQ(weftio_dev_rdma_enqueue_weak(b(), more, position + 3, 0), WEFTIO_DEV_OK);
}

TEST_P(RdmaWindows, OfNoTypeAreRefusedAndClosedRegionsSaySo)
{
    EXPECT_EQ(error_of([&] { memory_window(*ends.devices[1], static_cast<window_type>(3)); }).code(),
              errc::invalid_argument);
    memory_region& region = ends.memory(1).region;
    region.close();
    region.close();
    EXPECT_EQ(error_of([&] { region.rereg({}); }).code(), errc::closed);
    EXPECT_EQ(error_of([&] { region.replace(ends.memory(1).memory, {}); }).code(), errc::closed);
    EXPECT_EQ(error_of([&] { region.register_with(ends.ports.get(0)); }).code(), errc::closed);
}

INSTANTIATE_TEST_SUITE_P(On, RdmaWindows, testing::ValuesIn(places_of_ends),
                         [](const auto& of) { return name_of(of.param); });

} // namespace weftio::test
