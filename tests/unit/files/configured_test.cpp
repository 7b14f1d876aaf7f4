// What an engine does for the keys of its configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "near_device.hpp"
#include "storage/requirements.hpp"
#include "vendor.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Configured : public testing::Test {
 protected:
    file_engine engine(const std::string& json, file_engine_options options = {})
    {
        const text_file file(json);
        options.configuration = file.path();
        return file_engine(options);
    }

    const scratch_file scratch;
    std::vector<std::byte> bytes = pattern(100'000, 1);
    const memory near = detail::internals::make_memory(near_block(bytes));
};

TEST_F(Configured, DepthAndThreadsAreThoseOfTheProgramThenOfTheFileThenTheDefaults)
{
    const char* const json = R"({"execution": {"max_io_queue_depth": 17, "max_io_threads": 3}})";
    EXPECT_EQ(engine("{}").options().depth, file_engine_options::default_depth);
    EXPECT_EQ(engine("{}").options().threads, file_engine_options::default_threads);
    EXPECT_EQ(engine(json).options().depth, 17U);
    EXPECT_EQ(engine(json).options().threads, 3U);
    EXPECT_EQ(engine(json, {.depth = 5, .threads = 2}).options().depth, 5U);
    EXPECT_EQ(engine(json, {.depth = 5, .threads = 2}).options().threads, 2U);
}

TEST_F(Configured, ForcedCompatibilityIsPosixUnlessTheProgramHasChosen)
{
    const char* const json = R"({"properties": {"force_compat_mode": true}})";
    const file_engine forced = engine(json);
    EXPECT_EQ(forced.options().only, file_way::posix);
    EXPECT_FALSE(forced.has(file_way::uring));
    const environment_variable asked("WEFTIO_CUFILE_LIBRARY", WEFTIO_VENDOR_STAND_IN);
    EXPECT_FALSE(engine(json).has(file_way::cufile));
    log_lines lines;
    EXPECT_TRUE(engine(json, {.only = file_way::cufile}).has(file_way::cufile));
    EXPECT_EQ(lines.with("the program requires the way cufile", log_level::warning), 1U);
}

TEST_F(Configured, WithoutCompatibilityMemoryOfAGpuIsNotStaged)
{
    const file_engine strict = engine(R"({"properties": {"allow_compat_mode": false}})");
    const file file(strict, scratch.descriptor());
    EXPECT_EQ(file.write(bytes.data(), 100, 0).bytes, 100) << "host memory";
    const file_result result = file.write(near, 100, 0);
    EXPECT_EQ(result.error, ENOTSUP);
    EXPECT_EQ(result.way, file_way::none);
    EXPECT_EQ(result.fall, file_fall::no_direct);
}

/// What weftio-files --check prints is what an engine does.
TEST_F(Configured, TheRulesNameTheWayThatIsTaken)
{
    const storage::place_facts place{.mount = *storage::mount_of_descriptor("/", scratch.descriptor())};
    for (const bool asked : {false, true})
        for (const char* json :
             {"{}", R"({"properties": {"force_compat_mode": true}})", R"({"properties": {"allow_compat_mode": false}})",
              R"({"properties": {"allow_compat_mode": false, "force_compat_mode": true}})"}) {
            const environment_variable library("WEFTIO_CUFILE_LIBRARY", asked ? WEFTIO_VENDOR_STAND_IN : "");
            const file_engine made = engine(json);
            const storage::rules rules({}, place, storage::parse_configuration(json, "json"),
                                       {.device_memory = true,
                                        .uring = made.has(file_way::uring),
                                        .vendor_library = made.has(file_way::cufile)});
            const file_way taken = file(made, scratch.descriptor()).write(near, 100, 0).way;
            const storage::rule* const chosen = rules.chosen();
            if (chosen && chosen->way == file_way::uring) // or by threads, through the page cache
                EXPECT_TRUE(taken == file_way::uring || taken == file_way::posix) << json << asked;
            else
                EXPECT_EQ(taken, chosen ? chosen->way : file_way::none) << json << asked;
        }
}

TEST_F(Configured, SmallTransfersOfBatchesGoByPosix)
{
    const file_engine made = engine(R"({"fs": {"generic": {"posix_gds_min_kb": 4}}})");
    if (!made.has(file_way::uring))
        GTEST_SKIP() << "no io_uring";
    const file file(made, scratch.descriptor());
    file_batch batch(made, 2);
    const std::array<file_operation, 2> asked{
        file_operation{file_operation::kind::write, &file, bytes.data(), 4096, 0, nullptr},
        file_operation{file_operation::kind::write, &file, bytes.data(), 4097, 8192, this}};
    ASSERT_TRUE(batch.submit(asked));
    std::array<file_event, 2> events;
    ASSERT_EQ(batch.status(2, events, 10s), 2U);
    for (const file_event& each : events) {
        EXPECT_EQ(each.result.way, each.cookie ? file_way::uring : file_way::posix);
        EXPECT_EQ(each.result.fall, each.cookie ? file_fall::none : file_fall::too_small);
        EXPECT_TRUE(each.result.ok());
    }
}

TEST_F(Configured, LoggingLevelKeepsLinesBackAndTraceHasEachOperation)
{
    const auto lines_at = [&](const std::string& level) {
        log_lines lines;
        const file_engine made = engine(R"({"logging": {"level": ")" + level + R"("}, "nonsense": {}})");
        const file file(made, scratch.descriptor());
        for (int i = 0; i < 2; ++i)
            EXPECT_TRUE(file.write(near, 100, 0).ok());
        return std::array{lines.with("nonsense"), lines.with("files: no_direct: "),
                          lines.with("by posix, fallback no_direct")};
    };
    EXPECT_EQ(lines_at("ERROR"), (std::array<std::size_t, 3>{0, 0, 0}));
    EXPECT_EQ(lines_at("WARN"), (std::array<std::size_t, 3>{1, 0, 0}));
    EXPECT_EQ(lines_at("INFO"), (std::array<std::size_t, 3>{1, 1, 0})) << "a condition is told once";
    EXPECT_EQ(lines_at("TRACE"), (std::array<std::size_t, 3>{1, 1, 2}));
}

TEST_F(Configured, KeysWithoutEffectAreToldWithTheReason)
{
    log_lines lines;
    (void)engine(R"({"properties": {"use_poll_mode": true, "rdma_dynamic_routing": true}, "profile": {"nvtx": true}})");
    EXPECT_EQ(lines.with("use_poll_mode: has no effect on file engines: no kernel driver polls"), 1U);
    EXPECT_EQ(lines.with("rdma_dynamic_routing: has no effect on file engines: only weftio-files --check uses it"), 1U);
    EXPECT_EQ(lines.with("has no effect"), 3U);
}

TEST_F(Configured, OptionsThatNoThreadCanHaveAreRefused)
{
    const auto said = [](file_engine_options options) -> std::string {
        try {
            (void)file_engine(options);
            return "made";
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), errc::invalid_argument);
            return refused.what();
        }
    };
    EXPECT_THAT(said({.mode = static_cast<engine_mode>(7)}), HasSubstr("file_engine: mode is 7; set one of"));
    EXPECT_THAT(said({.idle = static_cast<idle_policy>(9)}), HasSubstr("file_engine: idle is 9; set one of"));
    EXPECT_THAT(said({.core = -2}), HasSubstr("file_engine: core is -2"));
    EXPECT_THAT(said({.realtime = 100}), HasSubstr("file_engine: realtime is 100"));
}

} // namespace

} // namespace weftio::test
