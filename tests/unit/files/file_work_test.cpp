// File queues of an engine whose way the test plays: what is under way, in which order, and whose turn it is.
#include "nic/soft/files/file_work.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "core/undying.hpp"
#include "keys/key_table.hpp"
#include "nic/soft/files/file_unit.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/device/file.h"

namespace weftio::test {

using testing::ElementsAre;

namespace {

namespace soft = nic::soft;
using storage::io;
using storage::io_done;

/// Takes what it is given, and ends it when the test says so.
class fake_way final : public storage::way {
 public:
    bool submit(const io& io) override
    {
        if (begun.size() == depth)
            return false;
        begun.push_back(io);
        return true;
    }
    void flush() override { ++flushes; }
    std::size_t reap(std::span<io_done> done) override
    {
        const std::size_t count = std::min(done.size(), ended_.size());
        std::copy_n(ended_.begin(), count, done.begin());
        ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }
    std::size_t in_flight() const noexcept override { return begun.size() + ended_.size(); }
    void wait(std::chrono::nanoseconds) override { ++waits; }
    void cancel(std::uint64_t) override {}
    file_way name() const noexcept override { return file_way::posix; }

    /// Io number `which` of those that have begun has ended.
    void end(std::size_t which, std::int64_t result)
    {
        ended_.push_back({begun[which].tag, result});
        begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(which));
    }
    /// All of it was done.
    void end(std::size_t which = 0) { end(which, begun[which].bytes); }
    std::vector<std::uint64_t> offsets() const
    {
        std::vector<std::uint64_t> all;
        for (const io& each : begun)
            all.push_back(each.offset);
        return all;
    }

    std::vector<io> begun;
    std::size_t depth = 64;
    unsigned flushes = 0, waits = 0;

 private:
    std::deque<io_done> ended_;
};

/// Files 1 and 2 exist.
class two_files final : public soft::file_keys {
 public:
    bool find(std::uint32_t key, soft::held_file& out) const noexcept override
    {
        if (key != 1 && key != 2)
            return false;
        if (key == 2 && two_has_ended)
            return false;
        out = {.descriptor = static_cast<int>(key), .use = use};
        return true;
    }
    storage::measured begin(std::uint64_t bytes, const devices::device_backend*) const noexcept override
    {
        return {++begun, bytes};
    }
    void count(io::kind, const file_result& result, const storage::measured& how) const noexcept override
    {
        reported.push_back(result);
        measures.push_back(how);
    }

    bool two_has_ended = false;
    std::shared_ptr<const void> use = std::make_shared<const char>();
    mutable std::vector<file_result> reported;
    mutable std::vector<storage::measured> measures;
    mutable std::uint64_t begun = 0;
};

/// A ring, and a kernel's side of it, without an engine.
class ring_of_files {
 public:
    static constexpr std::uint32_t depth = 64;

    explicit ring_of_files(std::uint32_t number) : words_(depth * 16), results(depth), filled_(depth)
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            words_[slot * 16] = weftio_swap32((slot + depth) << 8 & 0xffff00u);
        completion.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        device.segments = words_.data();
        device.mask = depth - 1;
        device.queue = number;
        device.dbrec = &dbrec_;
        device.completion = &completion;
        device.filled = filled_.data();
    }
    soft::tx_ring tx() const
    {
        return {.entries = {words_.data(), depth, device.queue}, .dbrec = &dbrec_, .completion = &completion};
    }
    void put(const weftio_dev_file_request& request, weftio_u32 flags = 0)
    {
        weftio_dev_send_range claim{};
        ASSERT_TRUE(weftio_dev_send_reserve(&device, 1, &claim));
        weftio_dev_write_file(weftio_dev_send_parts_of(&device), claim.first, request, flags);
        weftio_dev_send_publish(&device, claim.first + 1);
    }
    std::uint32_t completed() const { return weftio_dev_send_completed(&device); }
    bool failed() const { return weftio_dev_send_failed(&device) != 0; }
    std::int64_t result(std::uint32_t at) const { return static_cast<std::int64_t>(results[at]); }

    mutable weftio_cqe completion{};
    weftio_dev_send_ring device{};

 private:
    std::vector<std::uint32_t> words_;
    std::uint32_t dbrec_ = 0;

 public:
    mutable std::vector<std::uint64_t> results;

 private:
    std::vector<std::uint32_t> filled_;
};

class FileWork : public testing::Test {
 protected:
    static constexpr std::size_t bytes = 4 << 20;

    FileWork()
    {
        auto made = std::make_unique<fake_way>();
        way = made.get();
        unit = std::make_unique<soft::file_unit>(std::move(made));
        key = table().add({.cpu = memory.data(),
                           .base = reinterpret_cast<std::uint64_t>(memory.data()),
                           .bytes = bytes,
                           .rights = weftio::access::local_write});
        keys.grant(key, false);
        work = add(ring);
        neighbors = add(neighbor);
    }
    ~FileWork() override
    {
        unit.reset();
        keys.forget(key);
        table().withdraw(key);
        table().release(key);
    }
    static keys::key_table& table() { return core::undying<keys::key_table>(); }
    soft::file_work* add(ring_of_files& to)
    {
        auto made = std::make_unique<soft::file_work>(to.tx(), to.results.data(), keys, files, *unit);
        soft::file_work* const result = made.get();
        unit->queues().reserve(to.device.queue);
        unit->queues().put(to.device.queue, std::move(made));
        return result;
    }
    weftio_dev_buf buffer() const
    {
        return {reinterpret_cast<weftio_u8*>(const_cast<std::byte*>(memory.data())), bytes, weftio_swap32(key)};
    }
    weftio_dev_file_request read(std::uint64_t offset, std::uint64_t count, std::uint32_t file = 1) const
    {
        return weftio_dev_file_read_request(file, offset, buffer(), 0, count);
    }
    void turn() { unit->turn({.entries = 64}); }
    static void expect_all_counted(const soft::file_work& of)
    {
        EXPECT_EQ(of.enqueued.value(), of.read.value() + of.written.value() + of.synced.value() + of.skipped.value() +
                                           of.failed_entries.value() + of.flushed.value());
    }

    std::vector<std::byte> memory = std::vector<std::byte>(bytes);
    std::uint32_t key = 0;
    keys::nic_keys keys{"test"};
    two_files files;
    fake_way* way = nullptr;
    ring_of_files ring{1}, neighbor{2};
    std::unique_ptr<soft::file_unit> unit;
    soft::file_work *work = nullptr, *neighbors = nullptr;
};

TEST_F(FileWork, CompletesInOrderWhateverEndsFirst)
{
    for (unsigned each = 0; each < 3; ++each)
        ring.put(read(each * 1000, 1000));
    turn();
    ASSERT_THAT(way->offsets(), ElementsAre(0u, 1000u, 2000u));
    way->end(2);
    way->end(1);
    turn();
    EXPECT_EQ(ring.completed(), 0u);
    way->end(0);
    turn();
    EXPECT_EQ(ring.completed(), 3u);
    EXPECT_FALSE(ring.failed());
    EXPECT_EQ(files.reported.size(), 3u);
}

TEST_F(FileWork, EachEntryIsMeasuredFromItsOwnBeginning)
{
    for (unsigned each = 1; each <= 3; ++each)
        ring.put(read(0, each * 1000));
    turn();
    for (unsigned each = 3; each-- > 0;)
        way->end(each);
    turn();
    ASSERT_EQ(files.measures.size(), 3u);
    for (unsigned each = 0; each < 3; ++each) {
        EXPECT_EQ(files.measures[each].begin_ns, 3 - each);
        EXPECT_EQ(files.measures[each].bytes, (3 - each) * 1000u);
    }
}

TEST_F(FileWork, AFenceWaitsForAllBeforeItAndHoldsThoseBehindIt)
{
    ring.put(read(0, 1000));
    ring.put(read(1000, 1000), WEFTIO_DEV_FILE_FENCE);
    ring.put(read(2000, 1000));
    turn();
    EXPECT_THAT(way->offsets(), ElementsAre(0u));
    way->end();
    turn();
    EXPECT_THAT(way->offsets(), ElementsAre(1000u, 2000u));
}

TEST_F(FileWork, ASyncWaitsWithoutAFenceToo)
{
    ring.put(read(0, 1000));
    ring.put(weftio_dev_file_sync_request(1));
    turn();
    ASSERT_EQ(way->begun.size(), 1u);
    way->end();
    turn();
    ASSERT_EQ(way->begun.size(), 1u);
    EXPECT_EQ(way->begun[0].what, io::kind::sync);
    way->end(0, 0);
    turn();
    EXPECT_EQ(ring.completed(), 2u);
    EXPECT_EQ(work->synced.value(), 1u);
}

TEST_F(FileWork, AShortPartIsReadOnUntilNothingComes)
{
    ring.put(read(0, 4000));
    turn();
    way->end(0, 1500);
    turn();
    ASSERT_THAT(way->offsets(), ElementsAre(1500u));
    EXPECT_EQ(way->begun[0].address, memory.data() + 1500);
    way->end(0, 500);
    turn();
    way->end(0, 0);
    turn();
    EXPECT_EQ(ring.completed(), 1u);
    EXPECT_EQ(ring.result(0), 2000);
    EXPECT_EQ(work->short_reads.value(), 1u);
}

TEST_F(FileWork, AnInterruptedPartIsRepeated)
{
    ring.put(read(0, 4000));
    turn();
    way->end(0, -EINTR);
    turn();
    ASSERT_THAT(way->offsets(), ElementsAre(0u));
    way->end();
    turn();
    EXPECT_EQ(ring.result(0), 4000);
}

/// A file that was opened with O_DIRECT has no read at an end that is not aligned.
TEST_F(FileWork, ARefusalToReadOnAtTheEndIsTheEnd)
{
    ring.put(read(0, 4096));
    turn();
    way->end(0, 1000);
    turn();
    way->end(0, -EINVAL);
    turn();
    EXPECT_EQ(ring.result(0), 1000);
    EXPECT_FALSE(ring.failed());
}

TEST_F(FileWork, AWriteThatStopsShortGoesOnAndTellsWhyItCannot)
{
    ring.put(weftio_dev_file_write_request(1, 0, buffer(), 0, 4000));
    turn();
    way->end(0, 1000);
    turn();
    ASSERT_THAT(way->offsets(), ElementsAre(1000u));
    way->end(0, -ENOSPC);
    turn();
    EXPECT_EQ(ring.result(0), -ENOSPC);
    EXPECT_TRUE(ring.failed());
    soft::send_event event;
    ASSERT_TRUE(work->events().get(event));
    EXPECT_EQ(event.reason, refusal::io_failed);
    EXPECT_EQ(event.detail, static_cast<std::uint32_t>(ENOSPC));
}

/// What is in flight behind a failure is done, and its results tell so; the kernel sees an error from there on.
TEST_F(FileWork, AFailureLeavesWhatIsInFlightAndFlushesWhatIsNot)
{
    for (unsigned each = 0; each < 4; ++each)
        ring.put(read(each * 1000, 1000));
    ring.put(read(4000, 1000), WEFTIO_DEV_FILE_FENCE);
    turn();
    ASSERT_EQ(way->begun.size(), 4u);
    way->end(2); // behind the failure, before it
    turn();
    way->end(1, -EIO);
    turn();
    EXPECT_EQ(work->flushed.value(), 1u);
    EXPECT_EQ(ring.completed(), 0u);
    way->end(0);
    turn();
    EXPECT_EQ(ring.completed(), 3u);
    EXPECT_TRUE(ring.failed());
    way->end(0); // entry 3
    turn();
    EXPECT_EQ(ring.completed(), 5u);
    EXPECT_TRUE(ring.failed());
    EXPECT_EQ(ring.result(0), 1000);
    EXPECT_EQ(ring.result(1), -EIO);
    EXPECT_EQ(ring.result(2), 1000);
    EXPECT_EQ(ring.result(3), 1000);
    EXPECT_EQ(ring.result(4), -ECANCELED);
    EXPECT_EQ(work->read.value(), 3u);
    expect_all_counted(*work);
}

TEST_F(FileWork, AnEarlierFailureThatComesLaterIsTheFirst)
{
    for (unsigned each = 0; each < 3; ++each)
        ring.put(read(each * 1000, 1000));
    turn();
    way->end(2, -EIO);
    way->end(1);
    turn();
    way->end(0, -ENOSPC);
    turn();
    EXPECT_EQ(ring.completed(), 3u);
    EXPECT_TRUE(ring.failed());
    EXPECT_EQ(ring.result(1), 1000);
    EXPECT_EQ(work->failed_entries.value(), 2u);
    expect_all_counted(*work);
}

TEST_F(FileWork, NothingMoreOfALongReadBeginsBehindItsError)
{
    ring.put(read(0, bytes));
    turn();
    ASSERT_EQ(way->begun.size(), 1u);
    way->end(0, -EIO);
    turn();
    EXPECT_EQ(way->begun.size(), 0u);
    EXPECT_EQ(ring.result(0), -EIO);
    EXPECT_EQ(ring.completed(), 1u);
    expect_all_counted(*work);
}

TEST_F(FileWork, ALongReadThatReachesTheEndIsAsLongAsTheFile)
{
    constexpr std::uint64_t part = soft::file_work::part_bytes;
    ring.put(read(0, 4 * part));
    for (unsigned each = 0; each < 4; ++each)
        turn();
    ASSERT_EQ(way->begun.size(), 4u);
    way->end(3, 0);
    way->end(2, 0);
    way->end(1, 100);
    turn();
    way->end(1, 0); // after those 100 bytes
    way->end(0);
    turn();
    EXPECT_EQ(ring.result(0), static_cast<std::int64_t>(part + 100));
    EXPECT_FALSE(ring.failed());
}

TEST_F(FileWork, AFileThatEndsBetweenTwoPartsFailsTheEntry)
{
    ring.put(read(0, bytes, 2));
    turn();
    EXPECT_EQ(files.use.use_count(), 2) << "the part holds the file, the queue does not";
    files.two_has_ended = true;
    turn();
    EXPECT_EQ(ring.completed(), 0u) << "a part of it is in flight";
    way->end();
    turn();
    EXPECT_EQ(ring.result(0), -EBADF);
    EXPECT_EQ(files.use.use_count(), 1);
    EXPECT_TRUE(ring.failed());
    expect_all_counted(*work);
}

TEST_F(FileWork, ARefusedEntryHoldsNoFile)
{
    weftio_dev_buf unknown = buffer();
    unknown.lkey_be = weftio_swap32(key + 0x100);
    ring.put(weftio_dev_file_read_request(1, 0, unknown, 0, 1000));
    turn();
    EXPECT_TRUE(ring.failed());
    EXPECT_EQ(files.use.use_count(), 1) << "the end of the file waits for ever";
}

TEST_F(FileWork, PartsEndAtPagesOfTheFile)
{
    ring.put(read(1000, 300'000));
    for (unsigned each = 0; each < 3; ++each)
        turn();
    ASSERT_THAT(way->offsets(), ElementsAre(1000u, 131'072u, 262'144u));
    EXPECT_EQ(way->begun[2].bytes, 301'000u - 262'144u);
}

TEST_F(FileWork, AQueueHasABoundedNumberOfBytesUnderWay)
{
    for (unsigned each = 0; each < 4; ++each)
        ring.put(read(0, bytes));
    for (unsigned each = 0; each < 100; ++each)
        turn();
    EXPECT_EQ(way->begun.size(), soft::file_work::most_bytes / soft::file_work::part_bytes);
}

/// By counts: while one queue reads by the megabyte, another has each of its small reads done within a few parts.
TEST_F(FileWork, ReadsByTheMegabyteDoNotStarveSmallOnes)
{
    way->depth = 8; // both want all of it
    unsigned ended = 0, most = 0;
    for (unsigned each = 0; each < 60; ++each) {
        while (ring.device.reserved - ring.completed() < 8)
            ring.put(read(0, 1 << 20));
        turn();
        neighbor.put(read(7, 4096));
        const unsigned before = ended;
        for (; neighbor.completed() != each + 1; ++ended) {
            ASSERT_LT(ended - before, 100u);
            way->end(); // the oldest
            turn();
            turn();
        }
        most = std::max(most, ended - before);
    }
    EXPECT_GE(way->begun.size(), way->depth - 1) << "the way has been busy all the time";
    EXPECT_LE(most, way->depth + 2);
}

/// Queues that ask together have their parts by turns, also where there are more queues than parts.
TEST_F(FileWork, QueuesTakeTurnsWhereTheWayIsFull)
{
    way->depth = 1;
    for (unsigned each = 0; each < 40; ++each) {
        ring.put(read(1, 100));
        neighbor.put(read(2, 100));
    }
    for (unsigned each = 0; each < 40; ++each) {
        turn();
        turn();
        ASSERT_EQ(way->begun.size(), 1u);
        way->end();
    }
    turn();
    turn();
    EXPECT_GE(work->read.value(), 19u);
    EXPECT_GE(neighbors->read.value(), 19u);
}

TEST_F(FileWork, AQueueThatEndsLeavesTheLineAndItsPartsToNobody)
{
    way->depth = 1;
    ring.put(read(1, 100));
    ring.put(read(1, 100));
    turn();
    neighbor.put(read(2, 100));
    turn();
    (void)unit->queues().take(1);
    way->end();
    turn();
    turn();
    EXPECT_THAT(way->offsets(), ElementsAre(2u));
    way->end();
    turn();
    EXPECT_EQ(neighbors->read.value(), 1u);
}

TEST_F(FileWork, AStoppedQueueCompletesWhatIsInFlightAndTheRestIsFlushed)
{
    ring.put(read(0, bytes));
    ring.put(read(0, 100));
    turn();
    work->stop();
    EXPECT_EQ(work->flushed.value(), 1u);
    EXPECT_TRUE(work->waits_for_others());
    EXPECT_TRUE(unit->uses(key));
    way->end();
    unit->collect();
    work->collect();
    EXPECT_FALSE(unit->uses(key));
    EXPECT_FALSE(work->waits_for_others());
    EXPECT_EQ(ring.completed(), 2u);
    EXPECT_EQ(ring.result(0), -ECANCELED);
    expect_all_counted(*work);
}

TEST_F(FileWork, ARecordThatClaimsTooMuchEndsTheQueueBehindWhatIsInFlight)
{
    ring.put(read(0, bytes));
    turn();
    weftio_dev_send_publish(&ring.device, 200);
    turn();
    way->end();
    turn();
    turn();
    EXPECT_TRUE(ring.failed());
    EXPECT_EQ(ring.result(0), -ECANCELED);
    expect_all_counted(*work);
}

TEST_F(FileWork, TheEngineRestsInTheWayWhileSomethingIsInFlight)
{
    EXPECT_FALSE(unit->rest(std::chrono::microseconds(1)));
    ring.put(read(0, 100));
    turn();
    EXPECT_TRUE(unit->rest(std::chrono::microseconds(1)));
    EXPECT_EQ(way->waits, 1u);
    way->end();
    turn();
    EXPECT_FALSE(unit->rest(std::chrono::microseconds(1)));
}

} // namespace

} // namespace weftio::test
