// What a semaphore says of itself in reports of kernels.
#include "fixture.hpp"

namespace weftio::test {
namespace {

TEST(SemaphoreDescription, CountsItemsByStatus)
{
    semaphore items(device::open("cpu"), {.items = 8});
    items.set_status(1, semaphore_status::ready);
    items.set_status(2, semaphore_status::ready);
    items.set_status(3, semaphore_status::hold);
    items.set_status(7, semaphore_status::ready); // builds that check transitions take ERROR from READY or HOLD only
    items.set_status(7, semaphore_status::hold);
    items.set_status(7, semaphore_status::error);
    EXPECT_EQ(detail::internals::line(items)->describe(),
              "semaphore of 8 items: 4 FREE, 2 READY, 1 HOLD, 0 DONE, 1 ERROR");
}

} // namespace
} // namespace weftio::test
