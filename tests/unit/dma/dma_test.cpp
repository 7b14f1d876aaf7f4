// Copies and fills beside a plain model, and all that is to be refused.
#include "dma_fixture.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "dma_kernels.h"

WEFTIO_DEFINE_KERNEL(copies_pieces, "dma_kernels.h");

namespace weftio::test {

using testing::HasSubstr;

namespace {

const auto modes = testing::Values(engine_mode::thread, engine_mode::inline_worker);
std::string name_of(const testing::TestParamInfo<engine_mode>& info)
{
    return info.param == engine_mode::thread ? "Thread" : "Inline";
}

/// Names of the threads of this process.
std::vector<std::string> names_of_threads()
{
    std::vector<std::string> names;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream name(task.path() / "comm");
        std::getline(name, names.emplace_back());
    }
    return names;
}

} // namespace

TEST_P(Dma, CopiesAndFillsWhatAModelDoes)
{
    std::minstd_rand random(7);
    for (unsigned step = 0; step < 3000; ++step) {
        modelled_memory& from = random() % 2 ? one : other;
        modelled_memory& to = &from == &one ? other : one;
        const std::size_t count = 1 + random() % (random() % 8 ? 300 : 20000);
        const std::size_t at = random() % (bytes - count), there = random() % (bytes - count);
        ASSERT_EQ(weftio_dev_dma_wait_room(handle(), 1, 0), WEFTIO_DEV_OK);
        if (random() % 4 == 0) {
            const auto pattern = static_cast<std::uint32_t>(random());
            for (std::size_t byte = 0; byte < count; ++byte)
                to.model[there + byte] = reinterpret_cast<const std::byte*>(&pattern)[byte % 4];
            ASSERT_EQ(weftio_dev_dma_fill(handle(), pattern, to.buffer(), there, count, WEFTIO_DEV_SEND_NONE),
                      WEFTIO_DEV_OK);
        } else {
            std::memcpy(&to.model[there], &from.model[at], count);
            ASSERT_EQ(copy(from, at, to, there, count), WEFTIO_DEV_OK);
        }
        if (random() % 16 == 0) {
            ASSERT_EQ(done(), WEFTIO_DEV_OK);
            ASSERT_TRUE(one.as_modelled() && other.as_modelled()) << "step " << step;
        } else {
            ASSERT_EQ(weftio_dev_dma_commit(handle()), WEFTIO_DEV_OK);
        }
    }
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_TRUE(one.as_modelled() && other.as_modelled());
    const dma_counters counts = queue.counters();
    EXPECT_EQ(counts.copied, 3000u);
    EXPECT_EQ(counts.enqueued, counts.copied);
}

TEST_P(Dma, WeakEntriesAreExecutedInOrder)
{
    weftio_u32 position = 0, mask = 0;
    weftio_dev_dma_get_info(handle(), &position, &mask);
    for (unsigned round = 0; round < 100; ++round) { // each copy reads what the one before wrote
        ASSERT_EQ(weftio_dev_dma_wait_room(handle(), 2, 0), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_dma_memcpy_weak(handle(), one.buffer(), round, other.buffer(), 0, 500, position++, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(
            weftio_dev_dma_memcpy_weak(handle(), other.buffer(), 0, one.buffer(), 1000 + round, 500, position++, 0),
            WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_dma_commit_weak(handle(), 2), WEFTIO_DEV_OK);
        std::memcpy(&other.model[0], &one.model[round], 500);
        std::memcpy(&one.model[1000 + round], &other.model[0], 500);
    }
    ASSERT_EQ(weftio_dev_dma_wait(handle(), position - 1, 0), WEFTIO_DEV_OK);
    EXPECT_TRUE(one.as_modelled() && other.as_modelled());
}

TEST_P(Dma, WaitsForNothingWhenNothingWasCommitted)
{
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
}

TEST_P(Dma, ArgumentsThatReachBeyondABufferAreRefusedByTheKernelsSide)
{
    EXPECT_EQ(copy(one, 0, other, 0, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(copy(one, 1, other, 0, bytes), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(copy(one, bytes + 1, other, 0, 1), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(copy(one, ~std::size_t{0}, other, 0, 2), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(copy(one, 0, other, bytes + 64, 1), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_dma_fill(handle(), 0, one.buffer(), bytes, 1, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    const auto weak = [this](std::size_t at, weftio_u32 position) {
        return weftio_dev_dma_memcpy_weak(handle(), one.buffer(), at, other.buffer(), 0, 2, position, 0);
    };
    EXPECT_EQ(weak(bytes - 1, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weak(0, 64), WEFTIO_DEV_INVALID_ARGUMENT) << "the ring has 64 entries";
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_EQ(queue.counters().enqueued, 0u);
}

TEST_P(Dma, CountsBytesOfCopiesAndSkipsNoOperations)
{
    ASSERT_EQ(copy(one, 0, other, 0, 4), WEFTIO_DEV_OK);
    weftio_u32* skipped = weftio_dev_send_block(weftio_dev_send_parts_of(&handle()->queue.ring), 0);
    skipped[0] &= weftio_swap32(0x00ffff00); // WEFTIO_OPCODE_NOP: the position stays
    ASSERT_EQ(copy(one, 0, other, 0, 64), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    std::memcpy(&other.model[0], &one.model[0], 64);
    EXPECT_TRUE(other.as_modelled());
    const dma_counters counts = queue.counters();
    EXPECT_EQ(counts.skipped, 1u);
    EXPECT_EQ(counts.copied, 1u);
    EXPECT_EQ(counts.copied_bytes, 64u);
    EXPECT_EQ(counts.enqueued, 2u);
}

TEST_P(Dma, TellsTheHostOfWhatItAskedFor)
{
    std::vector<std::uint32_t> reported;
    progress_engine progress;
    progress.attach(queue, {.on_sent = [&](const send_notification& done) { reported.push_back(done.position); }});
    EXPECT_THAT(error_of([&] { progress_engine().attach(queue, {}); }).what(),
                HasSubstr("dma_queue 1: already attached"));
    for (weftio_u32 flags :
         {WEFTIO_DEV_SEND_NONE, WEFTIO_DEV_SEND_NOTIFY, WEFTIO_DEV_SEND_NONE, WEFTIO_DEV_SEND_NOTIFY})
        ASSERT_EQ(copy(one, 0, other, 0, 100, flags), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_TRUE(eventually([&] {
        progress.progress();
        return reported.size() == 2;
    }));
    EXPECT_EQ(reported, (std::vector<std::uint32_t>{1, 3}));
}

TEST_P(Dma, TheHostSubmitsAndIsToldWhenItIsDone)
{
    std::vector<std::uint32_t> reported, submitted;
    progress_engine progress;
    progress.attach(queue, {.on_sent = [&](const send_notification& done) { reported.push_back(done.position); }});
    for (std::uint64_t at = 0; at < 3000; at += 100) {
        const auto copied = queue.submit(
            dma_copy{.source = one.buffer(), .source_offset = at, .destination = other.buffer(), .bytes = at + 1});
        ASSERT_TRUE(copied);
        submitted.push_back(*copied);
        std::memcpy(&other.model[0], &one.model[at], at + 1);
    }
    const auto filled = queue.submit(dma_fill{.pattern = 0x01010101, .destination = one.buffer(), .bytes = 7});
    ASSERT_TRUE(filled);
    submitted.push_back(*filled);
    std::memset(&one.model[0], 1, 7);
    EXPECT_TRUE(eventually([&] {
        progress.progress();
        return reported.size() == submitted.size();
    }));
    EXPECT_EQ(reported, submitted);
    EXPECT_TRUE(one.as_modelled() && other.as_modelled());
}

TEST(DmaSubmit, SaysWhenThereIsNoRoomAndWhatIsWrong)
{
    const device cpu = device::open("cpu");
    const dma_engine engine({.mode = engine_mode::inline_worker});
    dma_queue queue(engine, cpu, {.entries = 64});
    const modelled_memory one(engine, cpu, 4096);
    EXPECT_THAT(error_of([&] {
                    (void)queue.submit(dma_fill{.destination = one.buffer(), .destination_offset = 4090, .bytes = 7});
                }).what(),
                HasSubstr("7 bytes at offset 4090 of the destination, which has 4096 bytes"));
    EXPECT_THAT(error_of([&] {
                    (void)queue.submit(dma_copy{.source = one.buffer(), .destination = one.buffer(), .bytes = 0});
                }).what(),
                HasSubstr("0 bytes at offset 0 of the source"));
    EXPECT_THAT(error_of([&] { (void)queue.submit(dma_fill{.destination = one.buffer(), .bytes = 1}, 0x6); }).what(),
                HasSubstr("submit() does not accept flags 0x6"));
    for (int entry = 0; entry < 64; ++entry) // enqueued, and not committed
        ASSERT_EQ(weftio_dev_dma_fill(queue.handle(), 0, one.buffer(), 0, 1, 0), WEFTIO_DEV_OK);
    EXPECT_FALSE(queue.submit(dma_fill{.destination = one.buffer(), .bytes = 1}));
    ASSERT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
    EXPECT_EQ(queue.submit(dma_fill{.destination = one.buffer(), .bytes = 1}), 64u);
    dma_queue of_kernels(engine, device::open("opencl"));
    EXPECT_THAT(error_of([&] { (void)of_kernels.submit(dma_fill{.destination = one.buffer(), .bytes = 1}); }).what(),
                HasSubstr("submit() is for queues of device cpu, but kernels on opencl"));
}

TEST_P(Dma, SubmitSaysThatTheQueueHasFailedUntilItIsReset)
{
    std::vector<std::uint32_t> reported, failed;
    progress_engine progress;
    progress.attach(queue, {.on_sent = [&](const send_notification& done) { reported.push_back(done.position); },
                            .on_error = [&](const send_failure& wrong) { failed.push_back(wrong.position); }});
    const dma_fill right{.pattern = 1, .destination = one.buffer(), .bytes = 4};
    dma_fill wrong = right;
    wrong.destination.lkey_be = ~wrong.destination.lkey_be;
    EXPECT_EQ(queue.submit(wrong), 0u);
    ASSERT_TRUE(eventually([&] {
        progress.progress();
        return queue.failed() && failed.size() == 1;
    }));
    const error thrown = error_of([&] { (void)queue.submit(right); });
    EXPECT_EQ(thrown.code(), errc::device_error);
    EXPECT_THAT(thrown.what(), HasSubstr(fmt::format("dma_queue {}: an entry failed", queue.number())));
    queue.reset();
    EXPECT_EQ(queue.submit(right), 0u);
    EXPECT_TRUE(eventually([&] {
        progress.progress();
        return reported.size() == 1;
    }));
    EXPECT_EQ(reported, std::vector<std::uint32_t>{0});
    EXPECT_EQ(failed, std::vector<std::uint32_t>{0});
    EXPECT_EQ(queue.counters().flushed, 0u) << "nothing was enqueued behind the entry that failed";
}

/// One entry that has to be refused, written by hand over one that is right.
struct forbidden {
    const char* name;
    std::function<void(weftio_u32* words)> spoil;
    const char* text;
};

void PrintTo(const forbidden& one, std::ostream* out)
{
    *out << one.name;
}

void add_to(weftio_u32& word_be, weftio_u32 more)
{
    word_be = weftio_swap32(weftio_swap32(word_be) + more);
}

class DmaRefusal : public testing::TestWithParam<forbidden> {};

TEST_P(DmaRefusal, FailsTheQueueAndChangesNoByte)
{
    const dma_engine engine({.mode = engine_mode::inline_worker});
    const device cpu = device::open("cpu");
    dma_queue queue(engine, cpu, {.entries = 64});
    const modelled_memory one(engine, cpu, 4096), other(engine, cpu, 8192);
    std::vector<send_failure> reported;
    progress_engine progress;
    progress.attach(queue, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    weftio_dev_dma* dma = queue.handle();
    weftio_dev_dma_memcpy(dma, one.buffer(), 0, other.buffer(), 0, 4096, 0);
    weftio_dev_dma_memcpy(dma, one.buffer(), 0, other.buffer(), 4096, 100, 0);
    GetParam().spoil(weftio_dev_send_block(weftio_dev_send_parts_of(&dma->queue.ring), 0));
    EXPECT_EQ(weftio_dev_dma_commit_wait(dma, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_TRUE(one.as_modelled() && other.as_modelled());
    EXPECT_TRUE(queue.failed());
    progress.progress();
    ASSERT_EQ(reported.size(), 1u);
    EXPECT_EQ(reported[0].position, 0u);
    EXPECT_NE(reported[0].syndrome, 0u);
    EXPECT_THAT(reported[0].text, HasSubstr(GetParam().text));
    const dma_counters counts = queue.counters();
    EXPECT_EQ(counts.failed, 1u);
    EXPECT_EQ(counts.enqueued, counts.copied + counts.failed + counts.flushed);
    queue.reset();
    EXPECT_EQ(weftio_dev_dma_memcpy(queue.handle(), one.buffer(), 0, other.buffer(), 0, 10, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
}

INSTANTIATE_TEST_SUITE_P(
    Of, DmaRefusal,
    testing::Values(
        forbidden{"AKeyThatNobodyHas", [](weftio_u32* words) { add_to(words[13], 0x100); }, "no memory region has"},
        forbidden{"AKeyOfAnEarlierRegion", [](weftio_u32* words) { add_to(words[9], 1); }, "no memory region has"},
        forbidden{"AByteBehindTheSource",
                  [](weftio_u32* words) { words[11] = weftio_swap32(weftio_swap32(words[11]) + 1); },
                  "exceeds the key's"},
        forbidden{"AByteBehindTheDestination",
                  [](weftio_u32* words) { words[15] = weftio_swap32(weftio_swap32(words[15]) + 4097); },
                  "exceeds the key's"},
        forbidden{"TwoLengths", [](weftio_u32* words) { add_to(words[8], ~0u); }, "differ in length"},
        forbidden{"TheLengthThatIsCodedZero", [](weftio_u32* words) { words[8] = words[12] = 0; }, "exceeds the key's"},
        forbidden{"ADestinationInTheEntry",
                  [](weftio_u32* words) { words[12] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 4u); }, "does not accept"},
        forbidden{"AFillOfEightBytes", [](weftio_u32* words) { words[8] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 8u); },
                  "does not accept"},
        forbidden{"FiveSegments", [](weftio_u32* words) { add_to(words[1], 1); }, "does not match its segments"},
        forbidden{"ThreeSegments", [](weftio_u32* words) { add_to(words[1], ~0u); }, "does not match its segments"},
        forbidden{"AFrame", [](weftio_u32* words) { add_to(words[0], WEFTIO_OPCODE_SEND - WEFTIO_OPCODE_MMO); },
                  "unknown opcode"},
        forbidden{"Compression", [](weftio_u32* words) { add_to(words[0], 1u << 24); }, "unknown opcode"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(Dma, RightsAndDomainsAreLookedAt)
{
    const modelled_memory read_only(engine, cpu, 4096, {.rights = access::none});
    const modelled_memory of_others(engine, cpu, 4096, {.domain = protection_domain::make()});
    auto refused = [&](const modelled_memory& from, const modelled_memory& to) {
        EXPECT_EQ(copy(from, 0, to, 0, 100), WEFTIO_DEV_OK);
        const bool failed = done() == WEFTIO_DEV_QUEUE_ERROR;
        EXPECT_TRUE(one.as_modelled() && read_only.as_modelled() && of_others.as_modelled());
        if (failed)
            queue.reset();
        return failed;
    };
    EXPECT_TRUE(refused(one, read_only));
    EXPECT_TRUE(refused(one, of_others));
    EXPECT_TRUE(refused(of_others, one));
    std::memcpy(&one.model[0], &read_only.model[0], 100);
    EXPECT_EQ(copy(read_only, 0, one, 0, 100), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
    EXPECT_TRUE(one.as_modelled());
}

TEST_P(Dma, ARegionThatEndsIsRefusedFromThenOn)
{
    auto gone = std::make_unique<modelled_memory>(engine, cpu, 4096);
    const weftio_dev_buf stale = gone->buffer();
    gone.reset();
    const modelled_memory in_its_place(engine, cpu, 4096); // may have its index, and its bytes
    EXPECT_EQ(weftio_dev_dma_memcpy(handle(), one.buffer(), 0, stale, 0, 100, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_TRUE(in_its_place.as_modelled());
}

TEST_P(Dma, ARingOfAnythingTouchesNothingElse)
{
    std::minstd_rand random(3);
    const modelled_memory bystander(engine, cpu, 4096, {.domain = protection_domain::make()});
    for (unsigned round = 0; round < 300; ++round) {
        weftio_dev_send_ring& ring = handle()->queue.ring;
        for (weftio_u32 word = 0; word < 64 * 16; ++word)
            weftio_store_relaxed_u32(ring.segments + word, static_cast<weftio_u32>(random() * 2654435761u));
        weftio_store_release_sys_u32(ring.dbrec, static_cast<weftio_u32>(random()));
        weftio_store_release_sys_u64(ring.doorbell, round + 1);
        weftio_dev_nic_turn(handle()->queue.turn, handle()->queue.turn_context);
        if (queue.failed())
            queue.reset();
    }
    EXPECT_TRUE(one.as_modelled() && other.as_modelled() && bystander.as_modelled());
    queue.reset(); // also where an engine of its own has not yet found what the last round left
    EXPECT_EQ(copy(one, 0, other, 0, 64), WEFTIO_DEV_OK);
    EXPECT_EQ(done(), WEFTIO_DEV_OK);
}

INSTANTIATE_TEST_SUITE_P(In, Dma, modes, name_of);

/// An entry may name bytes that overlap, though no function of ours writes one: all others stay as they are.
TEST_P(Dma, BytesThatOverlapHurtNobody)
{
    constexpr std::size_t shift = 100, count = bytes / 2;
    ASSERT_EQ(copy(one, 0, one, shift, count), WEFTIO_DEV_OK);
    ASSERT_EQ(copy(other, shift, other, 0, count), WEFTIO_DEV_OK);
    ASSERT_EQ(done(), WEFTIO_DEV_OK);
    std::memmove(&one.model[shift], &one.model[0], count); // what an engine does at once it does as memmove()
    std::memmove(&other.model[0], &other.model[shift], count);
    EXPECT_TRUE(one.as_modelled());
    EXPECT_TRUE(other.as_modelled());
}

TEST(DmaEngine, StartsNoEal)
{
    dma_engine engine;
    device cpu = device::open("cpu");
    dma_queue queue(engine, cpu);
    modelled_memory one(engine, cpu, 4096);
    EXPECT_THAT(names_of_threads(), testing::Contains(testing::StartsWith("weftio/dma")));
    EXPECT_THAT(names_of_threads(), testing::Not(testing::Contains(testing::StartsWith("eal-"))));
    EXPECT_THAT(names_of_threads(), testing::Not(testing::Contains(testing::StartsWith("rte"))));
}

TEST(DmaEngine, RefusesValuesThatItCannotHave)
{
    EXPECT_THAT(error_of([] { dma_engine({.core = -2}); }).what(), HasSubstr("core is -2"));
    EXPECT_THAT(error_of([] { dma_engine({.core = 100'000}); }).what(), HasSubstr("core 100000"));
    EXPECT_THAT(error_of([] { dma_engine({.mode = static_cast<engine_mode>(7)}); }).what(), HasSubstr("mode is 7"));
    EXPECT_THAT(error_of([] { dma_engine({.idle = static_cast<idle_policy>(7)}); }).what(), HasSubstr("idle is 7"));
    const dma_engine with_thread;
    EXPECT_THAT(error_of([&] { with_thread.turn(); }).what(), HasSubstr("has a thread"));
    EXPECT_THAT(error_of([&] { dma_queue(with_thread, device::open("cpu"), {.entries = 100}); }).what(),
                HasSubstr("entries is 100"));
}

TEST(Region, IsABufferInPartsThatLieInIt)
{
    const dma_engine engine;
    const modelled_memory memory(engine, device::open("cpu"), 4096);
    EXPECT_EQ(memory.region.buffer(96).bytes, 4000u);
    EXPECT_EQ(memory.region.buffer(96, 4000).bytes, 4000u);
    EXPECT_EQ(memory.region.buffer(96, 1).address, memory.buffer().address + 96);
    for (auto [offset, bytes] : {std::pair<std::size_t, std::size_t>{4097, 0}, {96, 4001}, {0, ~std::size_t{0}}})
        EXPECT_THAT(error_of([&, at = offset, count = bytes] { memory.region.buffer(at, count); }).what(),
                    HasSubstr(": the region has 4096"));
}

TEST(DmaEngine, HoldsWhatQueuesNeedAfterEverybodyElseHasLetGo)
{
    const device cpu = device::open("cpu");
    std::optional<dma_engine> engine(std::in_place);
    modelled_memory from(*engine, cpu, 4096), to(*engine, cpu, 4096);
    dma_queue queue(*engine, cpu);
    engine.reset();
    dma_queue moved = std::move(queue);
    weftio_dev_dma_memcpy(moved.handle(), from.buffer(), 0, to.buffer(), 0, 4096, 0);
    EXPECT_EQ(weftio_dev_dma_commit_wait(moved.handle(), 0), WEFTIO_DEV_OK);
    to.model = from.model;
    EXPECT_TRUE(to.as_modelled());
}

class DmaKernels : public testing::TestWithParam<std::string> {};

TEST_P(DmaKernels, CopyFromManyLanesAndSeeTheirBytes)
{
    const device where = device::open(GetParam());
    const dma_engine engine;
    const dma_queue queue(engine, where, {.entries = 64});
    const buf_arr from(engine, where, {.count = 400, .buffer_bytes = 200}),
        to(engine, where, {.count = 400, .buffer_bytes = 200});
    for (std::uint32_t piece = 0; piece < from.count(); ++piece)
        std::memset(from.cpu_address(piece), static_cast<int>(piece * 7 + 1), 200);
    const shared_words results(where, 2);
    running_kernel running = where.launch(copies_pieces_kernel, {2, 32}, queue, from, to, results.on_device());
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ(results[0], 0u);
    EXPECT_EQ(results[1], 64u);
    EXPECT_EQ(queue.counters().copied, 400u);
}

INSTANTIATE_TEST_SUITE_P(On, DmaKernels, testing::Values("cpu", "opencl"), [](const auto& info) { return info.param; });

} // namespace weftio::test
