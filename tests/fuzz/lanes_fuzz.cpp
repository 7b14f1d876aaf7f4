// The same sequence of calls by one lane and by many, in any order of their turns: the rings must hold the same bytes.
//
// OpenCL is compared by differential_test, from seeds: PoCL compiles kernels at run time, by code that no sanitizer and
// no coverage knows, and takes a thousand times as long to start one.
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "in_lanes.hpp"
#include "raw_entry.hpp"
#include "unit/differential/sequence.hpp"

namespace weftio::fuzz {

namespace {

std::vector<sequence_step> steps_of(numbers in)
{
    std::vector<sequence_step> steps;
    while (!in.empty() && steps.size() < SEQUENCE_STEPS) {
        sequence_step step{};
        step.operation = in.byte() % SEQUENCE_OPERATIONS;
        step.a = in.half();
        step.b = in.half();
        step.c = in.byte();
        steps.push_back(step);
    }
    return steps;
}

void compare(numbers in)
{
    static constexpr std::uint32_t shapes[] = {2, 7, 32, 33, 64, 100},
                                   starts[] = {0, 0x10000 - 40, 0u - 40, 0x1234'5678};
    static const auto one = std::make_unique<sequence_world>(), many = std::make_unique<sequence_world>();
    const std::uint8_t how = in.byte(), shuffle = in.byte();
    const std::vector<sequence_step> steps = steps_of(in);
    test::prepare(*one, steps, starts[how & 3], nullptr);
    test::prepare(*many, steps, starts[how & 3], nullptr);
    in_lanes(1, {}, [] { run_sequence(one.get()); });
    in_lanes(shapes[(how >> 2) % 6], shuffle ? std::optional<std::uint64_t>(shuffle) : std::nullopt,
             [] { run_sequence(many.get()); });
    const std::string different = test::difference(*one, *many);
    std::fputs(different.c_str(), stderr);
    expect(different.empty(), "one lane and many leave the same bytes");
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::compare({data, bytes});
    return 0;
}
