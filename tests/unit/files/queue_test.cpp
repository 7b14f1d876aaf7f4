// Reads and writes of a queue beside what the file has, and all that is to be refused.
#include "queue_fixture.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <random>

#include "fleeting_memory.hpp"
#include "queue_kernels.h"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(moves_pieces, "queue_kernels.h");
WEFTIO_DEFINE_KERNEL(reads_weakly, "queue_kernels.h");

namespace weftio::test {

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const auto all = testing::Combine(testing::Values(engine_mode::thread, engine_mode::inline_worker),
                                  testing::Values(file_way::uring, file_way::posix));
std::string name_of(const testing::TestParamInfo<std::tuple<engine_mode, file_way>>& info)
{
    const auto [mode, way] = info.param;
    return std::string(mode == engine_mode::thread ? "Thread" : "Inline") + "By" + to_string(way);
}

} // namespace

TEST_P(FileQueue, MovesWhatPreadAndPwriteDo)
{
    std::minstd_rand random(7);
    std::vector<std::byte> model = content, in_memory(bytes);
    for (unsigned step = 0; step < 400; ++step) {
        const std::size_t count = 1 + random() % (random() % 8 ? 5000 : 400'000);
        const std::size_t offset = random() % (bytes - count), at = random() % (bytes - count);
        ASSERT_EQ(weftio_dev_file_wait_room(handle(), 1, 0), WEFTIO_DEV_OK);
        if (random() % 2) {
            std::memcpy(&in_memory[at], &model[offset], count);
            ASSERT_EQ(read(offset, at, count, WEFTIO_DEV_FILE_FENCE), WEFTIO_DEV_OK);
        } else {
            std::memcpy(&model[offset], &in_memory[at], count);
            ASSERT_EQ(write(offset, at, count, WEFTIO_DEV_FILE_FENCE), WEFTIO_DEV_OK);
        }
        ASSERT_EQ(weftio_dev_file_commit(handle()), WEFTIO_DEV_OK);
    }
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_TRUE(memory->has(in_memory, 0, bytes));
    std::vector<std::byte> in_file(bytes);
    ASSERT_EQ(pread(scratch.descriptor(), in_file.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(in_file == model);
    EXPECT_EQ(queue->counters().read + queue->counters().written, 400u);
    expect_all_counted();
}

TEST_P(FileQueue, SeveralReadsAreUnderWayAtOnceAndCompleteInOrder)
{
    for (unsigned each = 0; each < 32; ++each)
        ASSERT_EQ(read(each * 5000, each * 5000, 5000), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    for (unsigned each = 0; each < 32; ++each)
        EXPECT_EQ(result(each), 5000);
    EXPECT_TRUE(memory->has(content, 0, 32 * 5000));
    EXPECT_EQ(queue->counters().read_bytes, 32u * 5000);
}

TEST_P(FileQueue, ALongReadGoesInPartsAndArrivesWhole)
{
    ASSERT_EQ(read(1, 0, bytes - 1), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(result(0), static_cast<std::int64_t>(bytes) - 1);
    EXPECT_TRUE(memory->has(content, 1, bytes - 1));
}

TEST_P(FileQueue, TheEndOfTheFileIsAShortReadAndNoError)
{
    ASSERT_EQ(read(bytes - 300'000, 0, 500'000), WEFTIO_DEV_OK);
    ASSERT_EQ(read(bytes + 5, 0, 100), WEFTIO_DEV_OK);
    ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(result(0), 300'000);
    EXPECT_EQ(result(1), 0);
    EXPECT_EQ(result(2), 100);
    EXPECT_EQ(queue->counters().short_reads, 2u);
    EXPECT_EQ(queue->counters().read, 3u);
}

TEST_P(FileQueue, ASyncIsDoneBehindTheWritesBeforeIt)
{
    ASSERT_EQ(write(0, 0, 300'000), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_file_sync(handle(), one->key(), 0), WEFTIO_DEV_OK);
    ASSERT_EQ(read(0, 500'000, 300'000, WEFTIO_DEV_FILE_FENCE), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(result(1), 0);
    EXPECT_EQ(std::memcmp(memory->data(), memory->data() + 500'000, 300'000), 0);
    EXPECT_EQ(queue->counters().synced, 1u);
    EXPECT_EQ(engine().counters().of(std::get<1>(GetParam())).syncs, 1u);
}

TEST_P(FileQueue, SkipsNoOperations)
{
    ASSERT_EQ(read(0, 0, 4), WEFTIO_DEV_OK);
    weftio_dev_send_block(weftio_dev_send_parts_of(&handle()->queue.ring), 0)[0] &=
        weftio_swap32(0x00ffff00); // WEFTIO_OPCODE_NOP
    ASSERT_EQ(read(0, 0, 64), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(queue->counters().skipped, 1u);
    EXPECT_EQ(queue->counters().read_bytes, 64u);
    expect_all_counted();
}

TEST_P(FileQueue, ArgumentsThatReachBeyondABufferAreRefusedByTheKernelsSide)
{
    EXPECT_EQ(read(0, 0, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(read(0, 1, bytes), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(write(0, bytes + 1, 1), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(write(0, ~std::uint64_t{0}, 2), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_file_read_weak(handle(), 1, 0, memory->buffer(), 0, 1, 64, 0), WEFTIO_DEV_INVALID_ARGUMENT)
        << "the ring has 64 entries";
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(queue->counters().enqueued, 0u);
}

TEST_P(FileQueue, AnUnknownFileEndsTheQueueUntilItIsReset)
{
    ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_file_read(handle(), one->key() + 99, 0, memory->buffer(), 0, 100, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    ASSERT_TRUE(has_result(2));
    EXPECT_EQ(queue->counters().flushed, 1u);
    EXPECT_EQ(result(0), 100);
    EXPECT_EQ(result(1), -EBADF);
    EXPECT_EQ(result(2), -ECANCELED);
    EXPECT_THAT(failures(), ElementsAre(HasSubstr("entry at position 1 failed: no file of this engine has that key")));
    expect_all_counted();
    EXPECT_TRUE(queue->failed());
    queue->reset();
    ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(queue->counters().read, 2u);
}

TEST_P(FileQueue, MemoryThatAnEntryMayNotUseIsRefused)
{
    const file_bytes read_only(engine(), cpu, 4096, {.rights = weftio::access::none});
    const file_bytes others(engine(), cpu, 4096, {.domain = protection_domain::make()});
    weftio_dev_buf unknown = memory->buffer(), outside = memory->buffer();
    unknown.lkey_be = weftio_swap32(0x700);
    outside.address += bytes - 50;
    const std::vector<std::pair<weftio_dev_buf, const char*>> cases{
        {unknown, "no memory region has that key"},
        {outside, "the address range exceeds the key's memory region"},
        {read_only.buffer(), "lacks access::local_write"},
        {others.buffer(), "in different protection domains"}};
    for (const auto& [buffer, words] : cases) {
        ASSERT_EQ(weftio_dev_file_read(handle(), one->key(), 0, buffer, 0, 100, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_THAT(failures(), ElementsAre(HasSubstr(words)));
        queue->reset();
    }
    ASSERT_EQ(weftio_dev_file_write(handle(), one->key(), 0, read_only.buffer(), 0, 100, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK) << "a write reads the memory only";
    expect_all_counted();
}

TEST_P(FileQueue, MalformedEntriesAreRefused)
{
    const auto spoil = [&](unsigned word, weftio_u32 keep, weftio_u32 add, const char* words) {
        ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
        weftio_u32* entry = weftio_dev_send_block(weftio_dev_send_parts_of(&handle()->queue.ring), 0);
        entry[word] = weftio_swap32((weftio_swap32(entry[word]) & keep) | add);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_THAT(failures(), ElementsAre(HasSubstr(words)));
        queue->reset();
    };
    spoil(0, 0xffffff00, 0x2f, "unknown opcode");
    spoil(1, 0xffffff00, 4, "size does not match");
    spoil(8, 0, WEFTIO_INLINE_SEGMENT | 4u, "a segment that its opcode does not accept");
    spoil(0, 0xffffff00, WEFTIO_OPCODE_FILE_SYNC, "size does not match");
}

TEST_P(FileQueue, WhatTheSystemRefusesIsToldWithItsErrno)
{
    const int descriptor = open(scratch.path().c_str(), O_RDONLY | O_CLOEXEC);
    {
        const file read_only(engine(), descriptor);
        ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_file_write(handle(), read_only.key(), 0, memory->buffer(), 0, 300'000, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(read(0, 0, 100, WEFTIO_DEV_FILE_FENCE), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        ASSERT_TRUE(has_result(2));
        EXPECT_EQ(queue->counters().flushed, 1u);
        EXPECT_EQ(result(0), 100);
        EXPECT_EQ(result(1), -EBADF);
        EXPECT_THAT(failures(), ElementsAre(HasSubstr("Bad file descriptor (errno 9)")));
        EXPECT_EQ(weftio_cqe_reason(handle()->queue.ring.completion), static_cast<weftio_u32>(refusal::flushed));
        expect_all_counted();
    }
    close(descriptor);
}

TEST_P(FileQueue, AnOffsetOfMinusOneIsNotTheDescriptorsPosition)
{
    for (const bool reads : {true, false}) {
        ASSERT_EQ(lseek(scratch.descriptor(), 50, SEEK_SET), 50);
        ASSERT_EQ(reads ? read(UINT64_MAX, 0, 10) : write(UINT64_MAX, 0, 10), WEFTIO_DEV_OK);
        EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_EQ(result(0), -EINVAL);
        EXPECT_EQ(lseek(scratch.descriptor(), 0, SEEK_CUR), 50);
        queue->reset();
    }
    std::vector<std::byte> in_file(100);
    ASSERT_EQ(pread(scratch.descriptor(), in_file.data(), 100, 0), 100);
    EXPECT_TRUE(std::equal(in_file.begin(), in_file.end(), content.begin()));
}

TEST_P(FileQueue, AFileThatEndsIsRefusedAndItsDescriptorMayBeClosed)
{
    const std::uint32_t key = one->key();
    ASSERT_EQ(read(0, 0, bytes), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_file_commit(handle()), WEFTIO_DEV_OK);
    one.reset(); // waits for what is in flight
    ASSERT_EQ(weftio_dev_file_read(handle(), key, 0, memory->buffer(), 0, 100, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(queue->counters().failed, 1u);
    expect_all_counted();
}

TEST_P(FileQueue, ARegionThatEndsWaitsForWhatIsInFlight)
{
    ASSERT_EQ(read(0, 0, bytes), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_file_commit(handle()), WEFTIO_DEV_OK);
    const weftio_dev_buf buffer = memory->buffer();
    memory.reset();
    ASSERT_EQ(weftio_dev_file_read(handle(), one->key(), 0, buffer, 0, 100, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(queue->counters().failed, 1u);
    expect_all_counted();
}

TEST_P(FileQueue, AQueueMayEndWithReadsInFlight)
{
    for (unsigned round = 0; round < 20; ++round) {
        file_queue brief(engine(), cpu, {.entries = 64});
        for (unsigned each = 0; each < 8; ++each)
            ASSERT_EQ(weftio_dev_file_read(brief.handle(), one->key(), 0, memory->buffer(), 0, 400'000, 0),
                      WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_file_commit(brief.handle()), WEFTIO_DEV_OK);
    }
    ASSERT_EQ(read(0, 0, 100), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK) << "its neighbors go on";
}

TEST_P(FileQueue, MemoryThatIsGoneFailsTheRead)
{
    fleeting_memory fleeting(leaving::unmapped, 8192);
    const weftio::memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    const memory_region region(engine(), adopted);
    fleeting.go();
    ASSERT_EQ(weftio_dev_file_read(handle(), one->key(), 0, region.buffer(), 0, fleeting.bytes(), 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(result(0), -EFAULT);
    EXPECT_THAT(failures(), ElementsAre(HasSubstr("was unmapped")));
}

/// Edges that are not aligned go through the page cache, and the reported way says so.
TEST_P(FileQueue, AFileWithODirectIsReadAndWrittenAtAnyPlace)
{
    const int descriptor = open(scratch.path().c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
    if (descriptor < 0)
        GTEST_SKIP() << "the file system has no O_DIRECT";
    {
        const file direct(engine(), descriptor);
        std::minstd_rand random(11);
        std::vector<std::byte> model = content, in_memory(bytes);
        for (unsigned step = 0; step < 100; ++step) {
            const std::size_t count = 1 + random() % (random() % 2 ? 9000 : 400'000);
            const std::size_t offset = random() % (bytes - count), at = random() % (bytes - count);
            const file_transfer wanted{direct.key(), offset, memory->buffer(), at, count};
            const bool reads = random() % 2;
            std::memcpy(reads ? &in_memory[at] : &model[offset], reads ? &model[offset] : &in_memory[at], count);
            ASSERT_EQ(weftio_dev_file_wait_room(handle(), 1, 0), WEFTIO_DEV_OK);
            ASSERT_TRUE(reads ? queue->submit_read(wanted, WEFTIO_DEV_FILE_FENCE)
                              : queue->submit_write(wanted, WEFTIO_DEV_FILE_FENCE));
        }
        ASSERT_EQ(weftio_dev_file_wait_room(handle(), 2, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_file_read(handle(), direct.key(), 8192, memory->buffer(), 0, 4096, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_file_read(handle(), direct.key(), bytes - 4096, memory->buffer(), 4096, 8192, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(done(), WEFTIO_DEV_OK);
        EXPECT_TRUE(memory->has(in_memory, 12'288, bytes - 12'288, 12'288));
        EXPECT_TRUE(memory->has(model, 8192, 4096) && memory->has(model, bytes - 4096, 4096, 4096));
        EXPECT_EQ(result(101), 4096) << "the file ends there";
        EXPECT_GT(engine().counters().of(file_fall::offset), 50u);
        EXPECT_EQ(engine().counters().of(file_fall::none), 2u);
    }
    close(descriptor);
}

TEST_P(FileQueue, TheHostSubmitsToo)
{
    const file_transfer wanted{.file = one->key(), .buffer = memory->buffer(), .bytes = 1000};
    EXPECT_EQ(queue->submit_read(wanted), 0u);
    EXPECT_EQ(queue->submit_write(wanted, WEFTIO_DEV_FILE_FENCE), 1u);
    EXPECT_EQ(queue->submit_sync(one->key(), WEFTIO_DEV_SEND_NONE), 2u);
    ASSERT_EQ(weftio_dev_file_wait(handle(), 2, 0), WEFTIO_DEV_OK);
    unsigned sent = 0;
    progress_engine progress;
    progress.attach(*queue, {.on_sent = [&](const send_notification&) { ++sent; }, .on_error = {}});
    progress.progress();
    EXPECT_EQ(sent, 1u);
    EXPECT_TRUE(memory->has(content, 0, 1000));
    const auto words = [](auto&& call) { return std::string(error_of(call).what()); };
    EXPECT_THAT(words([&] { (void)queue->submit_read({.buffer = memory->buffer()}); }),
                HasSubstr("0 bytes at offset 0 of the buffer"));
    EXPECT_THAT(words([&] { (void)queue->submit_sync(one->key(), 0x80); }), HasSubstr("does not accept flags 0x80"));
    detail::internals::line(*queue)->quiesce();
    EXPECT_THAT(words([&] { (void)queue->submit_read(wanted); }), HasSubstr("running_kernel::watch stopped the queue"));
}

TEST_P(FileQueue, TurnIsForInlineModeOnly)
{
    if (std::get<0>(GetParam()) == engine_mode::inline_worker)
        EXPECT_EQ(queue->turn(), 0u);
    else
        EXPECT_THROW(queue->turn(), error);
}

TEST_P(FileQueue, CountsAtTheEngineByItsWay)
{
    ASSERT_EQ(read(0, 0, 1000), WEFTIO_DEV_OK);
    ASSERT_EQ(write(0, 0, 500, WEFTIO_DEV_FILE_FENCE), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    const file_way_counters way = engine().counters().of(std::get<1>(GetParam()));
    EXPECT_EQ(way.reads, 1u);
    EXPECT_EQ(way.read_bytes, 1000u);
    EXPECT_EQ(way.writes, 1u);
    EXPECT_EQ(way.write_bytes, 500u);
    EXPECT_EQ(engine().counters().of(file_fall::none), 2u);
}

INSTANTIATE_TEST_SUITE_P(All, FileQueue, all, name_of);

TEST(FileQueueOptions, WrongOnesAreRefused)
{
    const file_engine engine;
    const device cpu = device::open("cpu");
    EXPECT_THAT(error_of([&] { file_queue(engine, cpu, {.entries = 100}); }).what(),
                HasSubstr("file_queue: entries is 100; it must be a power of two from 64 to 32768"));
}

TEST(FileQueueOptions, AStrictEngineRefusesWhatWouldFall)
{
    const scratch_file scratch;
    const int descriptor = open(scratch.path().c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
    if (descriptor < 0)
        GTEST_SKIP() << "the file system has no O_DIRECT";
    {
        const file_engine engine({.strict = true, .only = file_way::posix});
        const device cpu = device::open("cpu");
        const file file(engine, descriptor);
        const file_bytes memory(engine, cpu, 8192);
        file_queue queue(engine, cpu, {.entries = 64});
        EXPECT_TRUE(queue.submit_write({file.key(), 0, memory.buffer(), 0, 4096}));
        EXPECT_TRUE(queue.submit_read({file.key(), 5, memory.buffer(), 0, 10}, WEFTIO_DEV_FILE_FENCE));
        weftio_s64 result = 0;
        EXPECT_EQ(weftio_dev_file_wait_result(queue.handle(), 1, 0, &result), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_EQ(result, -ENOTSUP);
        EXPECT_EQ(weftio_dev_file_result(queue.handle(), 0, &result), WEFTIO_DEV_OK);
        EXPECT_EQ(engine.counters().of(file_fall::offset), 1u);
    }
    close(descriptor);
}

class FileKernels : public testing::TestWithParam<const char*> {};

TEST_P(FileKernels, MoveTheirPieces)
{
    constexpr std::uint32_t pieces = 200, piece_bytes = 3000, lanes = 16, blocks = 2;
    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(pieces * piece_bytes, 5);
    fill(scratch, content);
    const file_engine engine;
    const device device = device::open(GetParam());
    const file file(engine, scratch.descriptor());
    file_queue queue(engine, device, {.entries = 64});
    buf_arr buffers(engine, device, {.count = lanes * blocks, .buffer_bytes = piece_bytes});
    const shared_words results(device, 3);
    running_kernel kernel = device.launch(moves_pieces_kernel, {.blocks = blocks, .lanes = lanes}, queue, file.key(),
                                          pieces, std::uint64_t{content.size()}, buffers, results.on_device());
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_THAT(results.all(), ElementsAre(0u, pieces, 0u));
    std::vector<std::byte> copy(content.size());
    ASSERT_EQ(pread(scratch.descriptor(), copy.data(), copy.size(), static_cast<off_t>(copy.size())),
              static_cast<ssize_t>(copy.size()));
    EXPECT_TRUE(copy == content);
    EXPECT_EQ(queue.counters().read, pieces);
    EXPECT_EQ(queue.counters().written, pieces);
}

TEST_P(FileKernels, ReadAtPositionsThatTheyCount)
{
    constexpr std::uint32_t count = 8, piece_bytes = 1000;
    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(7500, 6);
    fill(scratch, content);
    const file_engine engine;
    const device device = device::open(GetParam());
    const file file(engine, scratch.descriptor());
    file_queue queue(engine, device, {.entries = 64});
    buf_arr buffers(engine, device, {.count = count, .buffer_bytes = piece_bytes});
    const shared_words results(device, count + 2);
    running_kernel kernel =
        device.launch(reads_weakly_kernel, {.blocks = 1, .lanes = 1}, queue, file.key(), buffers, results.on_device());
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_THAT(results.all(), ElementsAre(0u, 1000u, 1000u, 1000u, 1000u, 1000u, 1000u, 1000u, 500u, 0u));
    for (std::uint32_t each = 0; each < count; ++each)
        EXPECT_EQ(std::memcmp(buffers.cpu_address(each), &content[each * piece_bytes], each == 7 ? 500 : 1000), 0);
}

INSTANTIATE_TEST_SUITE_P(On, FileKernels, testing::Values("cpu", "opencl"),
                         [](const auto& info) { return info.param; });

} // namespace weftio::test
