// What is refused for want of memory leaves nothing behind.
#include <cstdlib>
#include <new>

#include "injected_port.hpp"
#include "nic/soft_port.hpp"
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

/// Index of the key that the port would hand out next.
std::uint32_t next_key(const port& port)
{
    std::uint32_t key = port.backend().keys().add({});
    port.backend().keys().remove(key);
    return key >> 8;
}

TEST(OutOfMemory, AtAnyPointOfMakingAReceiveQueueLeavesNoKeyAndNoQueue)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: allocations that fail, which the sanitizer's own operators do not; a plain build has it";
#endif
    injected_port port;
    device cpu = device::open("cpu");
    const std::uint32_t key = next_key(port.get());
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
        ASSERT_EQ(next_key(port.get()), key) << refusals;
    }
    EXPECT_GT(refusals, 3);
}

} // namespace
} // namespace weftio::test
