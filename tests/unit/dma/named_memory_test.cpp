// Copies from and to regions that are named by addresses of their own, and that change.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "core/undying.hpp"
#include "dma_fixture.hpp"
#include "keys/key_table.hpp"

namespace weftio::test {

namespace {

class DmaNamedMemory : public Dma {};

} // namespace

TEST_P(DmaNamedMemory, IsCopiedFromAndToItsIova)
{
    for (const std::uint64_t iova : {std::uint64_t{0}, std::uint64_t{0x123457}, std::uint64_t(-4096)}) {
        modelled_memory from(engine, cpu, 4096, {.rights = access::none, .iova = iova});
        modelled_memory to(engine, cpu, 4096, {.iova = iova});
        ASSERT_EQ(copy(from, 100, to, 3996, 100), WEFTIO_DEV_OK);
        ASSERT_EQ(copy(from, 0, to, 0, 1), WEFTIO_DEV_OK);
        ASSERT_EQ(done(), WEFTIO_DEV_OK);
        std::memcpy(&to.model[3996], &from.model[100], 100);
        to.model[0] = from.model[0];
        EXPECT_TRUE(to.as_modelled()) << iova;
    }
}

TEST_P(DmaNamedMemory, IsRefusedByTheKeyBefore)
{
    std::vector<send_failure> reported;
    progress_engine notifier;
    notifier.attach(queue, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    const weftio_dev_buf before = one.region.buffer();
    one.region.rereg({.rights = access::none}, 4096, 100);
    ASSERT_EQ(weftio_dev_dma_memcpy(handle(), one.region.buffer(), 0, other.buffer(), 0, 100, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    std::memcpy(&other.model[0], &one.model[4096], 100);
    EXPECT_TRUE(other.as_modelled());
    const auto expect_refused = [&](const weftio_dev_buf& from, const weftio_dev_buf& to, refusal why) {
        reported.clear();
        ASSERT_EQ(weftio_dev_dma_memcpy(handle(), from, 0, to, 0, 100, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_TRUE(eventually([&] { return notifier.progress() != 0; }));
        ASSERT_EQ(reported.size(), 1u);
        EXPECT_THAT(reported[0].text, testing::EndsWith(explain(why)));
        queue.reset();
    };
    weftio_dev_buf behind = one.region.buffer();
    behind.address += 1;
    expect_refused(before, other.buffer(), refusal::unknown_key);
    expect_refused(other.buffer(), before, refusal::unknown_key);
    expect_refused(other.buffer(), one.region.buffer(), refusal::no_local_write);
    expect_refused(behind, other.buffer(), refusal::outside_region);
    EXPECT_TRUE(one.as_modelled());
    EXPECT_TRUE(other.as_modelled());
}

/// Each copy is of one entry's memory or of the other's, whole.
TEST_P(DmaNamedMemory, ChangesInPlaceUnderCopies)
{
    constexpr std::size_t count = 64;
    const memory halves = cpu.allocate(2 * count, memory_kind::cpu_device);
    auto* const begin = static_cast<std::byte*>(halves.cpu_address());
    std::memset(begin, 0xaa, count);
    std::memset(begin + count, 0xbb, count);
    const memory_region region(engine, halves, {.rights = access::none, .iova = 0});
    auto& table = core::undying<keys::key_table>();
    const auto half = [&](std::size_t which) {
        return keys::key_entry{.cpu = begin + which * count, .base = 0, .bytes = count, .rights = access::none};
    };
    ASSERT_TRUE(table.change(region.lkey(), half(0)));
    std::atomic<bool> ended{false};
    std::thread changes([&] {
        for (std::size_t which = 0; !ended; which ^= 1)
            table.change(region.lkey(), half(which));
    });
    const memory target = cpu.allocate(count, memory_kind::cpu_device);
    const memory_region to(engine, target);
    const auto* const seen = static_cast<const std::byte*>(target.cpu_address());
    for (unsigned round = 0; round < 2000; ++round) {
        ASSERT_EQ(weftio_dev_dma_memcpy(handle(), region.buffer(), 0, to.buffer(), 0, count, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(done(), WEFTIO_DEV_OK);
        ASSERT_TRUE(seen[0] == std::byte{0xaa} || seen[0] == std::byte{0xbb});
        ASSERT_TRUE(std::all_of(seen, seen + count, [&](std::byte each) { return each == seen[0]; }));
    }
    ended = true;
    changes.join();
}

INSTANTIATE_TEST_SUITE_P(Modes, DmaNamedMemory, testing::Values(engine_mode::thread, engine_mode::inline_worker));

} // namespace weftio::test
