// `weftio-files bench`: what it counts, what it verifies, and what it leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/bench_file.hpp"
#include "bench/fio.hpp"
#include "bench/pattern.hpp"
#include "recorded.hpp"
#include "weftio/error.hpp"

namespace weftio::files {

namespace {

using ::testing::HasSubstr;
using load = bench_options::load;

void nothing(const std::string&) {}

TEST(Pattern, IsTheSameFromAnyOffset)
{
    std::vector<std::byte> all(100), part(61);
    fill_pattern(all, 1000);
    fill_pattern(part, 1013);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 13));
    EXPECT_FALSE(first_wrong(all, 1000));
    EXPECT_TRUE(first_wrong(all, 1008)) << "bytes of another place";
    for (std::size_t at = 0; at < all.size(); ++at) {
        all[at] ^= std::byte{1};
        EXPECT_EQ(first_wrong(all, 1000), at);
        all[at] ^= std::byte{1};
    }
}

class Bench : public ::testing::Test {
 protected:
    bench_options small(load what)
    {
        return {.path = folder_.root() / "file",
                .sizes = {4096, 10'000},
                .file_bytes = 1 << 20,
                .workers = 2,
                .seconds = 0.01,
                .rounds = 1,
                .what = what,
                .verify = true};
    }

    storage::recorded_machine folder_;
};

TEST_F(Bench, VerifiesEveryLoadBothWaysAndRemovesItsFile)
{
    for (const load what : {load::read, load::write, load::mixed})
        for (const bool random : {false, true}) {
            bench_options options = small(what);
            options.random = random;
            const auto runs = run_bench(options, nothing);
            ASSERT_EQ(runs.size(), 4u);
            EXPECT_TRUE(is_clean(runs)) << to_table(runs);
            for (const bench_run& run : runs) {
                EXPECT_GE(run.operations, 2u);
                EXPECT_EQ(run.bytes, run.operations * run.size);
            }
            std::uint64_t counted = 0;
            for (const auto& way : runs[0].counters.ways)
                counted += way.operations();
            EXPECT_EQ(counted, runs[0].operations);
            EXPECT_FALSE(std::filesystem::exists(options.path));
        }
}

TEST_F(Bench, FindsAWrongByte)
{
    bench_options options = small(load::read);
    options.sizes = {1 << 19};
    const auto runs = run_bench(options, [&](const std::string& step) {
        if (step.find("posix") != std::string::npos)
            std::fstream(options.path).seekp(700'000).put('\xa5');
    });
    EXPECT_EQ(runs[0].wrong, 0u);
    EXPECT_EQ(runs[1].wrong, 1u);
    EXPECT_EQ(runs[1].complaint, "byte 700000 of the file was read incorrectly");
    EXPECT_FALSE(is_clean(runs));
    EXPECT_THAT(to_table(runs), HasSubstr("  0 errors, 1 wrong: byte 700000"));
}

TEST_F(Bench, FindsAWrongByteThatWasWrittenInTheFileItself)
{
    bench_options options = small(load::write);
    options.sizes = {4096};
    options.file_bytes = (1 << 20) + 4096; // two workers reach all but the last bytes
    const auto runs =
        run_bench(options, [&](const std::string&) { std::fstream(options.path).seekp((1 << 20) + 4095).put('\xa5'); });
    EXPECT_THAT(runs.back().complaint, HasSubstr("byte 1052671 is wrong"));
}

TEST_F(Bench, TellsOperationsThatAreShortOrFail)
{
    bench_options options = small(load::read);
    options.sizes = {4096};
    const auto runs = run_bench(options, [&](const std::string&) { std::filesystem::resize_file(options.path, 100); });
    for (const bench_run& run : {runs[0], runs[1]}) {
        EXPECT_GE(run.errors, 1u);
        EXPECT_THAT(run.complaint, testing::MatchesRegex("read of 4096 bytes at [0-9]+: only [0-9]+ bytes"));
    }
}

TEST_F(Bench, LeavesAFileOfOthersAlone)
{
    bench_options options = small(load::read);
    std::ofstream(options.path) << std::string(50'000, 'x');
    EXPECT_THROW(run_bench(options, nothing), error) << "it cannot be verified";
    options.verify = false;
    options.what = load::write;
    EXPECT_THROW(run_bench(options, nothing), error);
    options.what = load::read;
    options.file_bytes = 0;
    const auto runs = run_bench(options, nothing);
    EXPECT_TRUE(is_clean(runs));
    EXPECT_THAT(to_json(options, runs), HasSubstr("\"file_bytes\": 50000"));
    EXPECT_EQ(std::filesystem::file_size(options.path), 50'000u);
    options.workers = 100;
    EXPECT_THROW(run_bench(options, nothing), error) << "the file is too small for them";
}

/// The text of the refusal; empty: there is none.
std::string refusal(const bench_options& options)
{
    try {
        const bench_file made(options);
    } catch (const error& why) {
        return why.what();
    }
    return {};
}

TEST_F(Bench, UsesAllOfAFileThatIsThereOrItsFirstPart)
{
    bench_options options{.path = folder_.root() / "sparse", .sizes = {1 << 30}, .workers = 3};
    std::ofstream(options.path).flush();
    std::filesystem::resize_file(options.path, std::uint64_t{3} << 30);
    EXPECT_EQ(bench_file(options).bytes(), std::uint64_t{3} << 30);
    options.workers = 4;
    EXPECT_EQ(refusal(options), "weftio-files: " + options.path +
                                    ": 4 workers with operations of 1073741824 bytes each exceed its 3221225472 bytes; "
                                    "give a smaller --size, fewer --workers or a larger file");
    options.sizes = {4096};
    options.file_bytes = 1 << 20;
    EXPECT_EQ(bench_file(options).bytes(), 1u << 20);
    options.file_bytes = std::uint64_t{4} << 30;
    EXPECT_THAT(refusal(options),
                HasSubstr("sparse: already exists and has 3221225472 bytes, fewer than the 4294967296 of --file-size"));
}

TEST_F(Bench, MakesNoFileThatIsTooSmallForItsWorkers)
{
    bench_options options{.path = folder_.root() / "new", .sizes = {4096, 1 << 30}};
    EXPECT_THAT(refusal(options), HasSubstr("new: 4 workers with operations of 1073741824 bytes each exceed its "
                                            "268435456 bytes; give a smaller --size, fewer --workers or a larger "
                                            "--file-size"));
    EXPECT_FALSE(std::filesystem::exists(options.path));
}

TEST_F(Bench, NamesThePathThatItCannotUse)
{
    EXPECT_EQ(refusal({.path = "/dev/null"}),
              "weftio-files: /dev/null: neither a regular file nor a block device; name one");
    const std::string link = folder_.root() / "link";
    std::filesystem::create_symlink("nowhere", link);
    EXPECT_EQ(refusal({.path = link}),
              "weftio-files: " + link + ": a symbolic link to nowhere, which does not exist; name a file");
}

TEST_F(Bench, MakesAFileOfItsOwnInAFolderAndRemovesItAlsoOnErrors)
{
    bench_options options = small(load::read);
    options.path = folder_.root();
    options.device = "none";
    EXPECT_THROW(run_bench(options, nothing), error);
    options.device = "cpu";
    EXPECT_TRUE(is_clean(run_bench(options, nothing)));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.root()));
    options.path = folder_.root() / "none" / "file";
    EXPECT_THROW(run_bench(options, nothing), error);
}

TEST_F(Bench, RoundsOfAllWaysAlternate)
{
    bench_options options = small(load::read);
    options.sizes = {4096};
    options.rounds = 2;
    std::vector<std::string> steps;
    const auto runs = run_bench(options, [&](const std::string& step) { steps.push_back(step); });
    EXPECT_THAT(steps,
                testing::ElementsAre("weftio, 4096 bytes, round 1 of 2", "posix + copy, 4096 bytes, round 1 of 2",
                                     "weftio, 4096 bytes, round 2 of 2", "posix + copy, 4096 bytes, round 2 of 2"));
    for (const bench_run& run : runs)
        EXPECT_EQ(std::accumulate(run.progress.begin(), run.progress.end(), std::uint64_t{0}), run.bytes);
}

TEST_F(Bench, IsBesideFio)
{
    bench_options options = small(load::mixed);
    options.verify = false;
    options.fio = true;
    options.sizes = {4096};
    options.rounds = 2;
    options.seconds = 0.2; // on a machine that does other things fio's threads need some of it to begin
    options.path = folder_.root() / "a:b c\\d"; // as a name in fio's list of files
    if (const std::string why = why_no_fio(options); !why.empty())
        GTEST_SKIP() << "fio: " << why;
    const auto runs = run_bench(options, nothing);
    ASSERT_EQ(runs.size(), 3u);
    const bench_run& fio = runs[2];
    EXPECT_EQ(fio.how, "fio");
    EXPECT_EQ(fio.complaint, "");
    EXPECT_GE(fio.operations, 1u);
    EXPECT_EQ(fio.bytes, fio.operations * 4096);
    EXPECT_GT(fio.latency.max_ns(), 0u);
    EXPECT_EQ(fio.progress.size(), 2u);
    EXPECT_TRUE(is_clean(runs));
    EXPECT_THAT(to_table(runs), HasSubstr("x of fio"));
    EXPECT_THAT(to_json(options, runs), HasSubstr("\"of_fio\": 1.0"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.root()));
}

TEST_F(Bench, IsNotBesideFioWhereFioDoesSomethingElse)
{
    bench_options options = small(load::write);
    options.fio = true;
    EXPECT_THAT(why_no_fio(options), HasSubstr("the pattern that is verified"));
    options.device = "cuda:0";
    EXPECT_THAT(why_no_fio(options), HasSubstr("host memory only"));
}

TEST(Fio, SaysWhyItSaysNothing)
{
    bench_run run;
    for (const char* said : {"", "fio: unknown option", "{", "{\"jobs\": []}", "{\"jobs\": [{\"error\": 0}]}", "[1]"})
        EXPECT_EQ(add_fio_report(said, run), "unknown format of its report") << said;
    EXPECT_EQ(add_fio_report(R"({"jobs": [{"error": 28}]})", run), "No space left on device");
    EXPECT_EQ(run.operations, 0u);
    EXPECT_EQ(add_fio_report("fio: a warning\n"
                             R"({"jobs": [{"error": 0, "mixed": {"total_ios": 3, "io_bytes": 12288,
                                "runtime": 500, "lat_ns": {"bins": {"1000": 2, "9000": 1}}}}]})",
                             run),
              "");
    EXPECT_EQ(run.bytes, 12288u);
    EXPECT_EQ(run.latency.max_ns(), 9000u);
    EXPECT_DOUBLE_EQ(run.seconds, 0.5);
}

TEST(BenchPlot, HasADiagramForEachSizeAndACurveForEachWay)
{
    std::vector<bench_run> runs;
    for (const std::uint64_t size : {4096u, 65536u})
        for (const char* how : {"weftio", "posix + copy", "fio"})
            runs.push_back({.how = how, .size = size, .progress = {1 << 20, 0, 3 << 20}});
    runs.push_back({.how = "weftio", .size = 1}); // nothing was moved
    const std::string svg = to_svg({.seconds = 3, .device = "a<b"}, runs);
    const auto count = [&](std::string_view what) {
        std::size_t seen = 0;
        for (std::size_t at = 0; (at = svg.find(what, at)) != std::string::npos; ++at)
            ++seen;
        return seen;
    };
    EXPECT_EQ(count("class=\"title\""), 3u);
    EXPECT_EQ(count("<path"), 7u);
    EXPECT_EQ(count(">fio</text>"), 2u);
    EXPECT_EQ(count("a&#60;b"), 3u);
    EXPECT_EQ(count("nan") + count("inf"), 0u);
}

TEST_F(Bench, WritesJson)
{
    bench_options options = small(load::mixed);
    const auto runs = run_bench(options, nothing);
    const std::string json = to_json(options, runs);
    EXPECT_THAT(json, HasSubstr("\"load\": \"mixed\""));
    EXPECT_THAT(json, HasSubstr("\"how\": \"posix + copy\""));
    EXPECT_THAT(json, HasSubstr("\"ways\": {"));
}

} // namespace

} // namespace weftio::files
