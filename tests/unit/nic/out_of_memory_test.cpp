// What is refused for want of memory leaves nothing behind.
#include <cstdlib>
#include <new>

#include "injected_port.hpp"
#include "nic/soft/soft_port.hpp"
#include "sanitized.hpp"

namespace {

[[maybe_unused]] thread_local int allocations_left = -1; ///< before one fails; -1: none does

} // namespace

#ifndef WEFTIO_TEST_SANITIZED // which have operators of their own
// Not inlined: GCC would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes)
{
    void* room = allocations_left >= 0 && allocations_left-- == 0 ? nullptr : std::malloc(bytes ? bytes : 1);
    if (!room)
        throw std::bad_alloc();
    return room;
}

[[gnu::noinline]] void operator delete(void* room) noexcept
{
    std::free(room);
}

[[gnu::noinline]] void operator delete(void* room, std::size_t) noexcept
{
    std::free(room);
}
#endif

namespace weftio::test {
namespace {

std::uint32_t keys_in_use()
{
    return core::undying<keys::key_table>().in_use();
}

TEST(OutOfMemory, AtAnyPointOfMakingAReceiveQueueLeavesNoKeyAndNoQueue)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: allocations that fail, which the sanitizer's own operators do not; a plain build has it";
#endif
    injected_port port;
    device cpu = device::open("cpu");
    const std::uint32_t keys = keys_in_use();
    int refusals = -1;
    for (bool made = false; !made; ++refusals) {
        try {
            allocations_left = refusals + 1;
            eth_rxq queue(port.get(), cpu, {.packets = 64});
            allocations_left = -1;
            made = true;
            EXPECT_EQ(queue.number(), 0u);
        } catch (const std::bad_alloc&) {
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), errc::out_of_memory);
        }
        allocations_left = -1;
        ASSERT_EQ(keys_in_use(), keys) << refusals;
    }
    EXPECT_GT(refusals, 3);
}

class no_copies final : public devices::copy_queue {
 public:
    void copy(void*, const void*, const rows&) noexcept override {}
    void fill(void*, std::uint32_t, std::size_t) noexcept override {}
    bool failed() const noexcept override { return false; }
    void mark(std::uint32_t) noexcept override {}
    std::uint32_t completed() const noexcept override { return 0; }
};

TEST(OutOfMemory, AtAnyPointOfAResetLeavesAQueueWhosePacketsAreCopiedOnAsItWas)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: allocations that fail, which the sanitizer's own operators do not; a plain build has it";
#endif
    constexpr std::uint32_t depth = 64;
    std::vector<weftio_cqe> before(depth), after(depth);
    const std::uint32_t record = weftio_swap32(depth);
    std::vector<std::byte> slots(depth * 64);
    nic::soft::rx_ring ring{.completions = before.data(),
                            .dbrec = &record,
                            .slots = slots.data(),
                            .depth = depth,
                            .stride_bytes = 64,
                            .slot_bytes = 64,
                            .staged = {.copies = std::make_shared<no_copies>(), .slots = slots.data()}};
    nic::soft::receiver receiver({}, nullptr, false, "");
    receiver.reserve(0);
    receiver.add(0, ring);
    ring.completions = after.data();
    int refusals = -1;
    for (bool reset = false; !reset; ++refusals) {
        try {
            allocations_left = refusals + 1;
            receiver.restart(0, ring);
            reset = true;
        } catch (const std::bad_alloc&) {
        }
        allocations_left = -1;
        ASSERT_EQ(receiver.queue(0).ring().completions, reset ? after.data() : before.data()) << refusals;
        ASSERT_FALSE(receiver.queue(0).stopped()) << refusals;
        ASSERT_EQ(receiver.queue(0).flushed.value(), reset ? depth : 0u) << refusals;
    }
    EXPECT_GT(refusals, 0);
}

} // namespace
} // namespace weftio::test
