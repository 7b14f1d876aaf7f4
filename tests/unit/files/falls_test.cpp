// Falls that no other test of files reaches.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>

#include "near_device.hpp"
#include "scratch_file.hpp"
#include "storage/synchronous.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

/// What is known of memory is told with the operation, by every way, and fails a strict engine's.
TEST(Falls, ThoseOfMemoryAreTold)
{
    const scratch_file scratch;
    std::vector<std::byte> bytes = pattern(100, 1);
    for (const file_fall fall : {file_fall::managed_memory, file_fall::system_memory}) {
        for (const bool strict : {false, true}) {
            const file_engine engine({.strict = strict, .only = file_way::posix});
            const file file(engine, scratch.descriptor());
            const storage::place memory{
                .cpu = bytes.data(), .bytes = bytes.size(), .block = near_block(bytes), .fall = fall};
            const file_result result =
                storage::transfer(detail::internals::share(file), storage::io::kind::write, memory, bytes.size(), 0);
            EXPECT_EQ(result.fall, fall);
            EXPECT_EQ(result.error, strict ? ENOTSUP : 0);
            EXPECT_EQ(engine.counters().of(fall), 1U);
        }
    }
}

TEST(Falls, WithoutASecondDescriptorAlignedTransfersGoThroughThePageCache)
{
    const scratch_file scratch;
    const file_engine engine({.only = file_way::posix, .part_bytes = 4096, .reopen_direct = true});
    const file file(engine, scratch.descriptor());
    alignas(4096) static std::array<std::byte, 8192> bytes;
    const int next = dup(scratch.descriptor());
    close(next);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const file_result result = file.write(bytes.data(), bytes.size(), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(result.bytes, 8192);
    EXPECT_EQ(result.fall, file_fall::no_o_direct);
    EXPECT_EQ(engine.counters().of(file_fall::no_o_direct), 1U);
}

} // namespace

} // namespace weftio::test
