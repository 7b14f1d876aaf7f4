// Random binds, accesses and invalidations, beside a model of keys and memory.
#include <cstdlib>

#include "window_world.hpp"

namespace weftio::test {

namespace {

/// The steps have come to all of the reasons that they can come to.
void expect_all_outcomes(const window_world& world)
{
    using enum refusal;
    for (const refusal why : {none, not_a_window, wrong_window_key, wrong_window_type, window_free, window_not_free,
                              window_of_other_queue, window_domain, window_region, no_bind, window_zero_based,
                              window_local_write, window_as_lkey, window_outside_region, window_without_bytes})
        EXPECT_TRUE(world.seen().contains({false, why})) << to_string(why) << ", to which no lender came";
    for (const refusal why : {none, unknown_key, other_domain, outside_region, misaligned_word, no_remote_write,
                              no_remote_read, not_invalidated, not_a_window, window_free, wrong_window_type,
                              window_of_other_queue, window_domain, window_atomic})
        EXPECT_TRUE(world.seen().contains({true, why})) << to_string(why) << ", to which no accessor came";
}

} // namespace

class RdmaWindowsModel : public testing::TestWithParam<std::tuple<ends_at, const char*>> {
 protected:
    static unsigned of_environment(const char* name, unsigned otherwise)
    {
        const char* const text = std::getenv(name);
        return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
    }
};

TEST_P(RdmaWindowsModel, LetsPeersDoWhatKeysAllowAndNothingElse)
{
    const unsigned seed = of_environment("WEFTIO_WINDOW_SEED", 1), steps = of_environment("WEFTIO_WINDOW_STEPS", 3000);
    window_world world(std::get<0>(GetParam()), seed, std::get<1>(GetParam()));
    for (unsigned step = 0; step != steps && !HasFailure(); ++step)
        world.step();
    EXPECT_FALSE(HasFailure()) << "WEFTIO_WINDOW_SEED=" << seed;
    expect_all_outcomes(world);
}

const auto name = [](const auto& of) { return name_of(std::get<0>(of.param)) + "_" + std::get<1>(of.param); };

INSTANTIATE_TEST_SUITE_P(At, RdmaWindowsModel,
                         testing::Combine(testing::Values(ends_at(true), ends_at(false), ends_at(true, true),
                                                          ends_at(true, false, 2), ends_at(false, false, 2)),
                                          testing::Values("cpu")),
                         name);
INSTANTIATE_TEST_SUITE_P(OfOpencl, RdmaWindowsModel,
                         testing::Combine(testing::Values(ends_at(true), ends_at(false, false, 2)),
                                          testing::Values("opencl")),
                         name);

} // namespace weftio::test
