// A program outside Weftio's tree: ./consumer [DEVICE]
#include <cstdio>
#include <exception>

#include "counting.hpp"

int main(int argc, char** argv)
{
    try {
        return count_builtin(argc > 1 ? argv[1] : "cpu") ? 0 : 1;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
