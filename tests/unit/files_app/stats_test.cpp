// Statistics of engines: what each level counts, and that another process can read it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "recorded.hpp"
#include "stats.hpp"
#include "storage/statistics.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::storage {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<statistics_copy> own_pages()
{
    return read_statistics("/", static_cast<std::uint32_t>(::getpid()));
}

statistics_copy after_some(unsigned level)
{
    tally counts(level);
    const auto add = [&](io::kind what, std::int64_t bytes, int error, file_way way, int gpu) {
        measured how = counts.begin(static_cast<std::size_t>(bytes), {});
        how.gpu = gpu;
        counts.add(what, {.bytes = bytes, .error = error, .way = way, .fall = file_fall::size}, how);
    };
    add(io::kind::read, 4096, 0, file_way::uring, 1);
    add(io::kind::read, 4097, 0, file_way::uring, 1);
    add(io::kind::read, 8191, EIO, file_way::uring, -1);
    add(io::kind::write, 1, 0, file_way::posix, 20);
    add(io::kind::data_sync, 0, ENOSPC, file_way::posix, -1);
    return own_pages().at(0);
}

constexpr auto uring = static_cast<std::size_t>(file_way::uring);
constexpr auto posix = static_cast<std::size_t>(file_way::posix);

TEST(Statistics, CountOperationsErrorsBytesAndFallsAtEachLevel)
{
    for (const unsigned level : {0u, 1u, 2u, 3u}) {
        const statistics_copy page = after_some(level);
        EXPECT_EQ(page.level, level);
        EXPECT_THAT(page.ways[uring].operations, testing::ElementsAre(3, 0, 0));
        EXPECT_THAT(page.ways[uring].errors, testing::ElementsAre(1, 0, 0));
        EXPECT_THAT(page.ways[uring].bytes, testing::ElementsAre(4096 + 4097 + 8191, 0));
        EXPECT_THAT(page.ways[posix].operations, testing::ElementsAre(0, 1, 1));
        EXPECT_THAT(page.ways[posix].errors, testing::ElementsAre(0, 0, 1));
        EXPECT_EQ(page.falls[static_cast<std::size_t>(file_fall::size)], 5u);
    }
    EXPECT_TRUE(own_pages().empty()) << "the engines are gone";
}

TEST(Statistics, CountLatenciesFromLevelOneOn)
{
    EXPECT_EQ(after_some(0).ways[uring].latency_ns[0], 0u);
    const statistics_copy page = after_some(1);
    EXPECT_GT(page.ways[uring].latency_max_ns[0], 0u);
    EXPECT_GE(page.ways[uring].latency_ns[0], page.ways[uring].latency_max_ns[0]);
    EXPECT_LE(page.ways[uring].latency_ns[0], 3 * page.ways[uring].latency_max_ns[0]);
}

TEST(Statistics, CountSizesFromLevelTwoOn)
{
    EXPECT_EQ(after_some(1).sizes[uring][0][13], 0u);
    const statistics_copy page = after_some(2);
    EXPECT_EQ(least_of_size(13), 4096u);
    EXPECT_EQ(page.sizes[uring][0][13], 3u) << "4096 to 8191";
    EXPECT_EQ(page.sizes[posix][1][1], 1u);
}

TEST(Statistics, CountGpusAtLevelThree)
{
    EXPECT_EQ(after_some(2).gpus[1][uring].operations, 0u);
    const statistics_copy page = after_some(3);
    EXPECT_EQ(page.gpus[1][uring].operations, 2u);
    EXPECT_EQ(page.gpus[1][uring].bytes, 4096u + 4097);
}

TEST(Statistics, OfAnEngineAreThoseOfItsConfiguration)
{
    recorded_machine folder;
    folder.file("cufile.json", R"({"profile": {"cufile_stats": 2}})").file("data", std::string(10'000, 'x'));
    const file_engine engine({.configuration = folder.root() / "cufile.json"});
    const int descriptor = ::open((folder.root() / "data").c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<char> room(10'000);
    {
        const file opened(engine, descriptor);
        EXPECT_EQ(opened.read(room.data(), 10'000, 0).bytes, 10'000);
        EXPECT_EQ(opened.sync().error, 0);
    }
    ::close(descriptor);
    const auto pages = own_pages();
    ASSERT_EQ(pages.size(), 1u);
    std::uint64_t reads = 0, sized = 0;
    for (std::size_t way = 0; way < statistics_copy::ways_count; ++way) {
        reads += pages[0].ways[way].operations[0];
        sized += pages[0].sizes[way][0][14];
        EXPECT_EQ(pages[0].ways[way].operations[0], engine.counters().of(static_cast<file_way>(way)).reads);
    }
    EXPECT_EQ(reads, 1u);
    EXPECT_EQ(sized, 1u) << "8192 to 16383";
}

std::vector<std::uint64_t> registered_now()
{
    const auto registered = own_pages().at(0).registered;
    return {registered.files, registered.buffers, registered.buffer_bytes};
}

TEST(Statistics, HaveWhatIsRegisteredNow)
{
    using testing::ElementsAre;
    recorded_machine folder;
    folder.file("data", "x");
    const file_engine engine;
    const int descriptor = ::open((folder.root() / "data").c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<char> room(10'000);
    {
        const file first(engine, descriptor), second(engine, descriptor);
        const file_buffer buffer(engine, room.data(), 4096);
        file_buffer other(engine, room.data() + 5000, 100);
        EXPECT_THROW(file_buffer(engine, room.data() + 4000, 100), error) << "some of it is registered";
        EXPECT_THAT(registered_now(), ElementsAre(2, 2, 4196));
        const file_buffer moved = std::move(other);
        EXPECT_THAT(registered_now(), ElementsAre(2, 2, 4196));
        const std::string text = files::stats_to_text(own_pages());
        EXPECT_THAT(text, HasSubstr("  registered: 2 files, 2 buffers of 4196 bytes; with io_uring: 0 files, "));
        EXPECT_THAT(files::stats_to_json(own_pages()), HasSubstr("\"buffer_bytes\": 4196"));
    }
    EXPECT_THAT(registered_now(), ElementsAre(0, 0, 0));
    ::close(descriptor);
}

TEST(Statistics, OfRegistrationsAreNotChangedByAChild)
{
    const file_engine engine;
    std::vector<char> room(100);
    auto buffer = std::make_unique<file_buffer>(engine, room.data(), 100);
    const pid_t child = ::fork();
    if (child == 0) {
        buffer.reset();
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(registered_now(), testing::ElementsAre(0, 1, 100));
}

TEST(Statistics, OfAParentAreNotThoseOfItsChild)
{
    const tally counts(0);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool none = own_pages().empty();
        ::_exit(none ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(Statistics, CountWithoutADescriptorToShareThem)
{
    rlimit before{}, none{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    none.rlim_max = before.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &none);
    tally counts(1);
    ::setrlimit(RLIMIT_NOFILE, &before);
    counts.add(io::kind::read, {.bytes = 5, .way = file_way::posix}, counts.begin(5, {}));
    EXPECT_EQ(counts.read().of(file_way::posix).read_bytes, 5u);
    EXPECT_TRUE(own_pages().empty());
}

TEST(Statistics, OfNoProcessAreRefusedInOneSentence)
{
    recorded_machine machine;
    try {
        read_statistics(machine.root(), 7);
        FAIL();
    } catch (const error& thrown) {
        EXPECT_EQ(thrown.code(), errc::not_found);
        EXPECT_STREQ(thrown.what(), "weftio-files: process 7: no such process");
    }
    machine.file("proc/7/fd/x", "");
    EXPECT_TRUE(read_statistics(machine.root(), 7).empty());
}

TEST(Statistics, PagesOfAnotherFormatAreLeftOut)
{
    recorded_machine machine;
    machine.file("page", std::string(sizeof(statistics_copy), '\0'));
    std::filesystem::create_directories(machine.root() / "proc/7/fd");
    std::filesystem::copy(machine.root() / "page", machine.root() / statistics_name);
    std::filesystem::create_symlink(machine.root() / statistics_name, machine.root() / "proc/7/fd/3");
    EXPECT_TRUE(read_statistics(machine.root(), 7).empty());
    statistics_copy page{};
    page.process = 7;
    std::ofstream(machine.root() / statistics_name).write(reinterpret_cast<const char*>(&page), sizeof page);
    EXPECT_EQ(read_statistics(machine.root(), 7).size(), 1u);
    std::filesystem::resize_file(machine.root() / statistics_name, sizeof page - 1);
    EXPECT_TRUE(read_statistics(machine.root(), 7).empty());
}

TEST(Statistics, AreTablesAndJson)
{
    const std::string text = files::stats_to_text({after_some(3)});
    EXPECT_THAT(text, HasSubstr("engine 0, level 3\n"));
    EXPECT_THAT(text, HasSubstr("  uring   read                2         1             16384"));
    EXPECT_THAT(text, HasSubstr("  fallback (size): 5\n"));
    EXPECT_THAT(text, HasSubstr("              4096  uring   read                3\n"));
    EXPECT_THAT(text, HasSubstr("  1       uring                2         0              8193\n"));
    EXPECT_THAT(files::stats_to_text({after_some(0)}), Not(HasSubstr("GPU")));
    const std::string json = files::stats_to_json({after_some(3)});
    EXPECT_THAT(json, HasSubstr("\"bytes_from\": 4096"));
    EXPECT_THAT(json, HasSubstr("\"gpu\": 1"));
    EXPECT_THAT(files::stats_to_json({after_some(1)}), Not(HasSubstr("sizes")));
}

} // namespace

} // namespace weftio::storage
