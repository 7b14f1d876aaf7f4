// The way `cufile`: NVIDIA's library, for which another stands in that reads and writes memory that the CPU sees.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "near_device.hpp"
#include "sanitized.hpp"
#include "vendor.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"
#include "weftio/file_queue.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// A file of 300,000 bytes, and as many of a device whose memory the CPU does not see.
class Vendor : public testing::Test {
 protected:
    static constexpr std::size_t span = 300'000;

    Vendor()
    {
        control.reset();
        EXPECT_EQ(pwrite(scratch.descriptor(), content.data(), span, 0), static_cast<ssize_t>(span));
    }
    /// What the constructor of such an engine says; empty: nothing.
    static std::string refusal(const file_engine_options& options = {.only = file_way::cufile})
    try {
        (void)file_engine(options);
        return {};
    } catch (const error& said) {
        EXPECT_EQ(said.code(), errc::not_supported);
        return said.what();
    }
    std::vector<std::byte> in_file() const
    {
        std::vector<std::byte> seen(span);
        EXPECT_EQ(pread(scratch.descriptor(), seen.data(), span, 0), static_cast<ssize_t>(span));
        return seen;
    }

    vendor_control& control = control_of(WEFTIO_VENDOR_STAND_IN);
    const environment_variable named{"WEFTIO_CUFILE_LIBRARY", WEFTIO_VENDOR_STAND_IN};
    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(span, 3);
    std::vector<std::byte> bytes = std::vector<std::byte>(span);
    const memory near = detail::internals::make_memory(near_block(bytes));
};

TEST_F(Vendor, ReadsAndWritesAndIsCountedAsAWayOfItsOwn)
{
    const file_engine engine({.only = file_way::cufile});
    EXPECT_TRUE(engine.has(file_way::cufile));
    EXPECT_FALSE(engine.has(file_way::uring));
    EXPECT_FALSE(engine.has(file_way::posix));
    {
        const file file(engine, scratch.descriptor());
        const file_result read = file.read(near, 1000, 77);
        EXPECT_EQ(read.bytes, 1000);
        EXPECT_EQ(read.way, file_way::cufile);
        EXPECT_EQ(read.fall, file_fall::none);
        EXPECT_EQ(read.position, 1077U);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 1000, content.begin() + 77));
        EXPECT_EQ(file.write(file_memory(near, 5), 200, 1).way, file_way::cufile);
        std::array<std::byte, 16> host;
        EXPECT_EQ(file.read(host.data(), host.size(), 0).way, file_way::cufile) << "the one way";
        EXPECT_EQ(file.sync().way, file_way::posix);
        EXPECT_EQ(control.files, 1) << "registered once, when first needed";
    }
    EXPECT_EQ(control.files, 0);
    EXPECT_EQ(in_file()[1], content[82]);
    EXPECT_THAT(control.calls(),
                ElementsAre("read 1000 at 77 memory+0", "write 200 at 1 memory+0", "read 16 at 0 memory+0"));
    EXPECT_EQ(engine.counters().of(file_way::cufile).reads, 2U);
    EXPECT_EQ(engine.counters().of(file_way::cufile).write_bytes, 200U);
    EXPECT_EQ(engine.counters().of(file_fall::none), 4U);
}

TEST_F(Vendor, KnowsRegisteredMemoryByItsFirstByte)
{
    const file_engine engine({.only = file_way::cufile});
    const file file(engine, scratch.descriptor());
    {
        const file_buffer buffer(engine, near);
        EXPECT_EQ(control.memories, 1);
        EXPECT_EQ(file.read(file_memory(near, 4096), 512, 0).bytes, 512);
        EXPECT_EQ(file.read(file_memory(buffer, 100), 512, 512).bytes, 512);
    }
    EXPECT_EQ(control.memories, 0);
    control.refuse_memory = 5036;
    log_lines lines;
    const file_buffer refused(engine, near);
    const file_engine other({.only = file_way::cufile});
    const file_buffer again(other, near);
    EXPECT_EQ(file.read(refused, 8, 0).bytes, 8) << "transfers do without";
    EXPECT_EQ(lines.with("cuFileBufRegister failed with 5036"), 1U);
    EXPECT_THAT(control.calls(),
                ElementsAre("register 300000", "read 512 at 0 memory+4096", "read 512 at 512 memory+100",
                            "register 300000", "register 300000", "read 8 at 0 memory+0"));
}

TEST_F(Vendor, TakesMemoryOfAGpuWhereItIsAskedFor)
{
    const text_file json("{\"weftio\": {\"cufile_library\": \"" WEFTIO_VENDOR_STAND_IN "\"}}");
    unsetenv("WEFTIO_CUFILE_LIBRARY");
    EXPECT_FALSE(file_engine().has(file_way::cufile)) << "not asked for";
    const file_engine engine({.part_bytes = 65536, .configuration = json.path()});
    EXPECT_TRUE(engine.has(file_way::posix));
    const file file(engine, scratch.descriptor());
    std::vector<std::byte> host(span);
    EXPECT_EQ(file.read(host.data(), span, 0).way, file_way::posix);
    const file_result large = file.read(near, span, 0);
    EXPECT_EQ(large.way, file_way::cufile);
    EXPECT_EQ(large.bytes, static_cast<std::int64_t>(span));
    EXPECT_EQ(control.reads, 5) << "by parts, on the threads of the engine";
    EXPECT_TRUE(host == content && bytes == content);
}

TEST_F(Vendor, SharesBatchesWithOtherWays)
{
    const file_engine engine({.depth = 5, .part_bytes = 16384});
    const file file(engine, scratch.descriptor());
    std::vector<std::byte> host(span);
    std::vector<file_operation> asked;
    constexpr std::size_t count = 20, each = span / count;
    for (std::size_t i = 0; i < count; ++i)
        asked.push_back({.on = &file,
                         .memory = i % 2 == 0 ? file_memory(near, i * each) : file_memory(&host[i * each]),
                         .bytes = each,
                         .offset = i * each,
                         .cookie = reinterpret_cast<void*>(i)});
    file_batch batch(engine, count);
    ASSERT_TRUE(batch.submit(asked));
    std::array<file_event, count> events;
    ASSERT_EQ(batch.status(count, events, 10s), count);
    const file_way other = engine.has(file_way::uring) ? file_way::uring : file_way::posix;
    for (const file_event& event : events) {
        EXPECT_EQ(event.result.bytes, static_cast<std::int64_t>(each));
        const auto number = reinterpret_cast<std::uintptr_t>(event.cookie);
        EXPECT_EQ(event.result.way, number % 2 == 0 ? file_way::cufile : other);
        const auto& seen = number % 2 == 0 ? bytes : host;
        EXPECT_EQ(std::memcmp(&seen[number * each], &content[number * each], each), 0);
    }
}

TEST_F(Vendor, GoesOnBehindShortReadsAndEndsWithTheFile)
{
    control.most = 700;
    for (const std::size_t part : {std::size_t{1} << 20, std::size_t{4096}}) {
        const file_engine engine({.only = file_way::cufile, .part_bytes = part});
        const file file(engine, scratch.descriptor());
        std::fill(bytes.begin(), bytes.end(), std::byte{});
        const file_result result = file.read(near, 50'000, span - 40'000);
        EXPECT_EQ(result.bytes, 40'000);
        EXPECT_EQ(result.error, 0);
        EXPECT_EQ(result.position, span);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 40'000, content.end() - 40'000));
    }
}

TEST_F(Vendor, TellsItsErrorsAsErrnoWithTheirPosition)
{
    struct {
        long result;
        int with_errno, expected;
    } const failures[] = {{-1, ENOSPC, ENOSPC}, {-1, 0, EIO},       {-EDQUOT, 0, EDQUOT},  {-5008, 0, ENOTSUP},
                          {-5014, 0, EFAULT},   {-5022, 0, EINVAL}, {-5027, 0, EBADF},     {-5043, 0, ENOMEM},
                          {-5025, 0, EACCES},   {-5999, 0, EIO},    {-5006, 0, ESHUTDOWN}, {-5044, 0, EIO},
                          {5000, 0, EIO}};
    const file_engine engine({.only = file_way::cufile});
    const file file(engine, scratch.descriptor());
    for (const auto& each : failures) {
        control.most = 100;
        control.fail_after = 3;
        control.failure = each.result;
        control.failure_errno = each.with_errno;
        const file_result result = file.write(near, 1000, 50);
        EXPECT_EQ(result.error, each.expected) << each.result;
        EXPECT_EQ(result.bytes, 300);
        EXPECT_EQ(result.position, 350U);
        EXPECT_EQ(result.way, file_way::cufile);
    }
    control.fail_after = 0;
    control.failure = -1;
    control.failure_errno = EINTR;
    EXPECT_EQ(file.read(near, 100, 0).bytes, 100) << "called again after a signal";
    EXPECT_EQ(engine.counters().of(file_way::cufile).write_errors, std::size(failures));
}

TEST_F(Vendor, FilesThatItRefusesAreStagedAndCounted)
{
    control.refuse_files = 5030;
    log_lines lines;
    const file_engine engine;
    for (int i = 0; i < 2; ++i) {
        const file file(engine, scratch.descriptor());
        const file_result result = file.read(near, 5000, 0);
        EXPECT_EQ(result.bytes, 5000);
        EXPECT_EQ(result.fall, file_fall::no_vendor_library);
        EXPECT_NE(result.way, file_way::cufile);
    }
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 5000, content.begin()));
    EXPECT_EQ(lines.with("cuFileHandleRegister failed with 5030"), 1U);
    EXPECT_EQ(lines.with("no_vendor_library"), 1U) << "told once";
    EXPECT_EQ(engine.counters().of(file_fall::no_vendor_library), 2U);
    for (const file_engine& strict : {file_engine({.strict = true}), file_engine({.only = file_way::cufile})}) {
        const file file(strict, scratch.descriptor());
        const file_result result = file.read(near, 5000, 0);
        EXPECT_EQ(result.error, ENOTSUP);
        EXPECT_EQ(result.way, file_way::none);
        EXPECT_EQ(result.fall, file_fall::no_vendor_library);
    }
}

TEST_F(Vendor, ALibraryThatIsNotThereIsAFallThatIsToldOnce)
{
    const environment_variable other("WEFTIO_CUFILE_LIBRARY", "/none/libcufile.so.0");
    log_lines lines;
    const file_engine engine;
    EXPECT_EQ(lines.with("/none/libcufile.so.0: cannot be loaded", log_level::warning), 1U);
    EXPECT_FALSE(engine.has(file_way::cufile));
    const file file(engine, scratch.descriptor());
    EXPECT_EQ(file.read(near, 5000, 0).fall, file_fall::no_vendor_library);
    EXPECT_EQ(file.read(near, 5000, 0).fall, file_fall::no_vendor_library);
    EXPECT_EQ(lines.with("no_vendor_library: NVIDIA's library is unavailable"), 1U);
    EXPECT_THAT(refusal({.strict = true}), HasSubstr("/none/libcufile.so.0: cannot be loaded"));
    EXPECT_EQ(refusal({.strict = true, .only = file_way::posix}), "") << "not asked for";
}

TEST_F(Vendor, WhatIsNotNvidiasLibraryIsRefusedInOneSentence)
{
    void* const mathematics = dlopen("libm.so.6", RTLD_NOW);
    link_map* another = nullptr;
    ASSERT_EQ(dlinfo(mathematics, RTLD_DI_LINKMAP, &another), 0) << dlerror();
    const std::string fifo = scratch.path() + ".fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const std::pair<std::string, const char*> wrong[] = {
        {"libcufile.so.0", "is not an absolute path; write one"},
        {"./libcufile.so.0", "is not an absolute path"},
        {WEFTIO_OWN_CUFILE, "is Weftio's own libcufile.so.0, which would call itself"},
        {scratch.path(), "cannot be loaded"},
        {fifo, "is not a regular file"},
        {"/tmp", "is not a regular file"},
        {another->l_name, "lacks function cuFileDriverOpen"},
    };
    for (const auto& [path, why] : wrong) {
        const environment_variable other("WEFTIO_CUFILE_LIBRARY", path);
        EXPECT_THAT(refusal(), HasSubstr(why)) << path;
        EXPECT_THAT(refusal(), MatchesRegex("weftio: files: NVIDIA's library [^\n]*"));
    }
    const stand_in_copy copy;
    const environment_variable other("WEFTIO_CUFILE_LIBRARY", copy.path());
    {
        const environment_variable refused("VENDOR_STAND_IN_DRIVER", "5011");
        EXPECT_THAT(refusal(), HasSubstr("cuFileDriverOpen failed with 5011"));
    }
    EXPECT_EQ(refusal(), "") << "another try, as one may have set the GPU free";
    dlclose(mathematics);
    unlink(fifo.c_str());
}

/// Through a link, and beside ours: neither is taken for NVIDIA's.
TEST_F(Vendor, IsNeverWeftiosOwnLibrary)
{
    ASSERT_NE(dlopen(WEFTIO_OWN_CUFILE, RTLD_NOW | RTLD_GLOBAL), nullptr);
    const std::string link = scratch.path() + ".link";
    ASSERT_EQ(symlink(WEFTIO_OWN_CUFILE, link.c_str()), 0);
    {
        const environment_variable other("WEFTIO_CUFILE_LIBRARY", link);
        EXPECT_THAT(refusal(), HasSubstr("is Weftio's own libcufile.so.0"));
    }
    unlink(link.c_str());
    const stand_in_copy copy;
    const environment_variable other("WEFTIO_CUFILE_LIBRARY", copy.path());
    const file_engine engine({.only = file_way::cufile});
    const file file(engine, scratch.descriptor());
    EXPECT_EQ(file.read(near, 100, 0).way, file_way::cufile);
    EXPECT_EQ(control_of(copy.path()).reads, 1);
#ifndef WEFTIO_TEST_SANITIZED // which refuse DEEPBIND
    EXPECT_EQ(control_of(copy.path()).version, 9990) << "it calls its own functions, though ours have the same names";
#endif
}

TEST_F(Vendor, IsNotTakenForWhatTheConfigurationDenies)
{
    for (const char* denied : {R"("denylist": {"mounts": ["/"]}, )", R"("denylist": {"filesystems": ["none"]}, )"}) {
        const bool root = std::string_view(denied).find("mounts") != std::string_view::npos;
        const text_file json(std::string("{") + denied + R"("logging": {"level": "ERROR"}})");
        const file_engine engine({.configuration = json.path()});
        const file file(engine, scratch.descriptor());
        struct stat of_root {
        }, of_file{};
        ASSERT_EQ(stat("/", &of_root) + fstat(scratch.descriptor(), &of_file), 0);
        if (root && of_root.st_dev != of_file.st_dev)
            continue;
        const file_result result = file.read(near, 5000, 0);
        EXPECT_EQ(result.way == file_way::cufile, !root);
        EXPECT_EQ(result.fall, root ? file_fall::no_direct : file_fall::none);
    }
}

TEST_F(Vendor, SmallTransfersGoByPosixAsTheConfigurationSays)
{
    const text_file json(R"({"fs": {"generic": {"posix_gds_min_kb": 8}}})");
    const file_engine engine({.configuration = json.path()});
    const file file(engine, scratch.descriptor());
    const file_result small = file.read(near, 8192, 0), larger = file.read(near, 8193, 0);
    EXPECT_EQ(small.way, file_way::posix);
    EXPECT_EQ(small.fall, file_fall::too_small);
    EXPECT_EQ(small.bytes, 8192);
    EXPECT_EQ(larger.way, file_way::cufile);
    EXPECT_EQ(larger.fall, file_fall::none);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 8193, content.begin()));
    const file_engine strict({.strict = true, .configuration = json.path()});
    EXPECT_EQ(weftio::file(strict, scratch.descriptor()).read(near, 8192, 0).error, ENOTSUP);
}

TEST_F(Vendor, FileQueuesAreRefusedWhereItIsTheOnlyWay)
{
    const file_engine engine({.only = file_way::cufile});
    const device cpu = device::open("cpu");
    try {
        file_queue queue(engine, cpu);
        FAIL() << "made";
    } catch (const error& said) {
        EXPECT_EQ(said.code(), errc::not_supported);
        EXPECT_THAT(said.what(), HasSubstr("only is cufile"));
    }
}

TEST_F(Vendor, ThreadsReadTogether)
{
    const file_engine engine({.threads = 3, .part_bytes = 16384});
    const file file(engine, scratch.descriptor());
    constexpr std::size_t count = 4, each = span / count;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round)
                EXPECT_EQ(file.read(file_memory(near, i * each), each, i * each).bytes,
                          static_cast<std::int64_t>(each));
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_TRUE(bytes == content);
    EXPECT_EQ(control.files_ever, 1);
}

TEST_F(Vendor, IsOfNoUseInAChild)
{
    const file_engine engine({.only = file_way::cufile});
    const pid_t child = fork();
    if (child == 0)
        _exit(refusal().find("was opened before fork()") == std::string::npos);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace

} // namespace weftio::test
