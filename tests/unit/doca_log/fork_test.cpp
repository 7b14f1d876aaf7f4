// Children of a program without devices, which may call everything.
#include <atomic>
#include <thread>

#include "child.hpp"
#include "doca_argp.h"
#include "doca_mmap.h"

namespace weftio::test {
namespace {

int use_objects()
{
    alarm(20);
    doca_mmap* mmap = nullptr;
    if (doca_mmap_create(&mmap) != DOCA_SUCCESS || doca_mmap_destroy(mmap) != DOCA_SUCCESS)
        return 6;
    return doca_argp_init("child", nullptr) == DOCA_SUCCESS && doca_argp_destroy() == DOCA_SUCCESS ? 5 : 7;
}

TEST(DocaFork, WhileAnotherThreadUsesTheLibraryLeavesLocksFree)
{
    std::atomic<bool> stops = false;
    std::thread other([&] {
        while (!stops) {
            doca_mmap* mmap = nullptr;
            doca_mmap_create(&mmap);
            doca_mmap_destroy(mmap);
            doca_mmap_destroy(mmap); // fails, and looks for a log
        }
    });
    for (int child = 0; child < 50; ++child) {
        const int status = in_child(use_objects).status;
        EXPECT_EQ(status, 5);
        if (status != 5)
            break; // one that hangs takes 20 s
    }
    stops = true;
    other.join();
}

} // namespace
} // namespace weftio::test
