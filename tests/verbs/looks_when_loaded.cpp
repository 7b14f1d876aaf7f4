// A library that accesses a device in its constructor.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
int seen_when_loaded = 2;
__attribute__((constructor)) void look_when_loaded()
{
    seen_when_loaded = ::access("/dev/infiniband/uverbs0", F_OK);
    ::access("/dev/infiniband/uverbs1", F_OK);
    if (std::getenv("WEFTIO_TEST_SAYS") != nullptr)
        std::printf("seen: %d\n", seen_when_loaded);
}
}
