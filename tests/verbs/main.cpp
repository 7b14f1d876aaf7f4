// Runs the tests as a program that weftio-run has started: with the preloaded library, and a small engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv)
{
    const char* const preloaded = std::getenv("LD_PRELOAD");
    if (preloaded == nullptr || std::string(preloaded).find(WEFTIO_PRELOAD) == std::string::npos) {
        ::setenv("LD_PRELOAD", WEFTIO_PRELOAD, 1);
        ::setenv("WEFTIO_RUN_ENGINE", WEFTIO_TOY_ENGINE, 1);
        ::execv("/proc/self/exe", argv);
        return 1;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
