#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "library.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t block = 4096;

class CufileBatch : public testing::Test {
 protected:
    static constexpr unsigned operations = 32;

    CufileBatch() : content(pattern(operations * block, 3)), memory(content.size())
    {
        EXPECT_EQ(pwrite(file.descriptor(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
        EXPECT_EQ(cufile().BatchIOSetUp(&batch, operations).err, CU_FILE_SUCCESS);
    }
    ~CufileBatch() override { cufile().BatchIODestroy(batch); }

    /// Block `i` of the file into block `i` of the memory; the cookie is its address.
    CUfileIOParams_t entry(unsigned i, CUfileOpcode_t opcode = CUFILE_READ)
    {
        CUfileIOParams_t made{};
        made.mode = CUFILE_BATCH;
        made.fh = registered.handle;
        made.opcode = opcode;
        made.u.batch = {memory.data(), static_cast<off_t>(i * block), static_cast<off_t>(i * block), block};
        made.cookie = memory.data() + i * block;
        return made;
    }
    std::vector<CUfileIOParams_t> entries(unsigned count, CUfileOpcode_t opcode = CUFILE_READ)
    {
        std::vector<CUfileIOParams_t> made;
        for (unsigned i = 0; i < count; ++i)
            made.push_back(entry(i, opcode));
        return made;
    }
    CUfileOpError submit(std::vector<CUfileIOParams_t> all)
    {
        return cufile().BatchIOSubmit(batch, static_cast<unsigned>(all.size()), all.data(), 0).err;
    }
    std::vector<CUfileIOEvents_t> take(unsigned least, unsigned most)
    {
        std::vector<CUfileIOEvents_t> events(most);
        unsigned count = most;
        EXPECT_EQ(cufile().BatchIOGetStatus(batch, least, &count, events.data(), nullptr).err, CU_FILE_SUCCESS);
        events.resize(count);
        return events;
    }

    const open_driver driver;
    const scratch_file file;
    const registered_file registered{file.descriptor()};
    const std::vector<std::byte> content;
    std::vector<std::byte> memory;
    CUfileBatchHandle_t batch = nullptr;
};

TEST_F(CufileBatch, EachOperationHasOneEvent)
{
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    std::map<void*, unsigned> seen;
    for (unsigned taken = 0; taken < operations;) {
        const auto events = take(1, 5);
        ASSERT_GE(events.size(), 1U);
        taken += static_cast<unsigned>(events.size());
        for (const CUfileIOEvents_t& event : events) {
            EXPECT_EQ(event.status, CUFILE_COMPLETE);
            EXPECT_EQ(event.ret, block);
            EXPECT_EQ(++seen[event.cookie], 1U);
        }
    }
    EXPECT_EQ(seen.size(), operations);
    EXPECT_EQ(memory, content);
    EXPECT_EQ(take(0, 5).size(), 0U);
}

TEST_F(CufileBatch, WaitsForAsManyAsAreAskedFor)
{
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    EXPECT_EQ(take(operations, operations).size(), operations);
    EXPECT_EQ(memory, content);
}

TEST_F(CufileBatch, DoesNotWaitWhenNothingIsInFlight)
{
    EXPECT_EQ(take(4, 4).size(), 0U);
    timespec soon{0, 1000};
    unsigned count = 4;
    std::array<CUfileIOEvents_t, 4> events{};
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, 4, &count, events.data(), &soon).err, CU_FILE_SUCCESS);
    EXPECT_EQ(count, 0U);
}

TEST_F(CufileBatch, HasRoomForWhatWasSetUp)
{
    EXPECT_EQ(submit(entries(operations + 1)), CU_FILE_BATCH_FULL);
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    EXPECT_EQ(submit(entries(1)), CU_FILE_BATCH_FULL); // events that were not taken need room, too
    EXPECT_EQ(take(operations, operations).size(), operations);
    EXPECT_EQ(submit(entries(1)), CU_FILE_SUCCESS);
    EXPECT_EQ(take(1, 1).size(), 1U);
}

TEST_F(CufileBatch, Writes)
{
    memory = pattern(content.size(), 4);
    ASSERT_EQ(submit(entries(operations, CUFILE_WRITE)), CU_FILE_SUCCESS);
    EXPECT_EQ(take(operations, operations).size(), operations);
    std::vector<std::byte> written(content.size());
    EXPECT_EQ(pread(file.descriptor(), written.data(), written.size(), 0), static_cast<ssize_t>(written.size()));
    EXPECT_EQ(written, memory);
}

TEST_F(CufileBatch, OperationsFailAlone)
{
    const int only_read = open(file.path().c_str(), O_RDONLY);
    {
        const registered_file other(only_read);
        auto all = entries(3);
        all[1].opcode = CUFILE_WRITE;
        all[1].fh = other.handle;
        all[2].u.batch.file_offset = static_cast<off_t>(content.size());
        ASSERT_EQ(submit(all), CU_FILE_SUCCESS);
        std::map<void*, CUfileIOEvents_t> seen;
        for (const CUfileIOEvents_t& event : take(3, 3))
            seen[event.cookie] = event;
        EXPECT_EQ(seen[all[0].cookie].status, CUFILE_COMPLETE);
        EXPECT_EQ(seen[all[1].cookie].status, CUFILE_FAILED);
        EXPECT_EQ(static_cast<ssize_t>(seen[all[1].cookie].ret), -EBADF);
        EXPECT_EQ(seen[all[2].cookie].status, CUFILE_COMPLETE); // the file ends there
        EXPECT_EQ(seen[all[2].cookie].ret, 0U);
    }
    close(only_read);
}

TEST_F(CufileBatch, RefusesWrongOperationsWhole)
{
    const auto with = [&](auto change) {
        auto all = entries(2);
        change(all[1]);
        return submit(all);
    };
    EXPECT_EQ(with([](CUfileIOParams_t& entry) { entry.fh = nullptr; }), CU_FILE_HANDLE_NOT_REGISTERED);
    EXPECT_EQ(with([](CUfileIOParams_t& entry) { entry.mode = numbered<CUfileBatchMode_t>(2); }),
              CU_FILE_INVALID_VALUE);
    EXPECT_EQ(with([](CUfileIOParams_t& entry) { entry.opcode = numbered<CUfileOpcode_t>(2); }), CU_FILE_INVALID_VALUE);
    EXPECT_EQ(with([](CUfileIOParams_t& entry) { entry.u.batch.devPtr_base = nullptr; }), CU_FILE_INVALID_VALUE);
    EXPECT_EQ(with([](CUfileIOParams_t& entry) { entry.u.batch.file_offset = -1; }), CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOSubmit(batch, 1, nullptr, 0).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(take(0, operations).size(), 0U);
}

TEST_F(CufileBatch, TakesAnyFlags)
{
    auto one = entries(1);
    EXPECT_EQ(cufile().BatchIOSubmit(batch, 1, one.data(), 1).err, CU_FILE_SUCCESS);
    EXPECT_EQ(take(1, 1).size(), 1U);
}

TEST_F(CufileBatch, RefusesWrongQuestions)
{
    unsigned count = 1;
    CUfileIOEvents_t event{};
    timespec never{-1, 0};
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, 2, &count, &event, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, 0, nullptr, &event, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, 0, &count, nullptr, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOGetStatus(batch, 0, &count, &event, &never).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOGetStatus(nullptr, 0, &count, &event, nullptr).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOCancel(nullptr).err, CU_FILE_INVALID_VALUE);
    CUfileBatchHandle_t other = nullptr;
    EXPECT_EQ(cufile().BatchIOSetUp(&other, 0).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOSetUp(&other, 65537).err, CU_FILE_INVALID_VALUE);
    EXPECT_EQ(cufile().BatchIOSetUp(nullptr, 1).err, CU_FILE_INVALID_VALUE);
    cufile().BatchIODestroy(nullptr); // ignored
}

TEST_F(CufileBatch, CanceledHalfWayHasNoEventsAndAllOfItsRoom)
{
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    EXPECT_GE(take(1, operations / 2).size(), 1U);
    EXPECT_EQ(cufile().BatchIOCancel(batch).err, CU_FILE_SUCCESS);
    EXPECT_EQ(take(operations, operations).size(), 0U);
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    EXPECT_EQ(take(operations, operations).size(), operations);
    EXPECT_EQ(memory, content);
}

TEST_F(CufileBatch, EndsWithOperationsInFlight)
{
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    cufile().BatchIODestroy(batch);
    EXPECT_EQ(cufile().BatchIOCancel(batch).err, CU_FILE_INVALID_VALUE);
}

TEST_F(CufileBatch, ItsFileMayBeDeregisteredMeanwhile)
{
    ASSERT_EQ(submit(entries(operations)), CU_FILE_SUCCESS);
    cufile().HandleDeregister(registered.handle);
    EXPECT_EQ(take(operations, operations).size(), operations);
    EXPECT_EQ(memory, content);
    EXPECT_EQ(submit(entries(1)), CU_FILE_HANDLE_NOT_REGISTERED);
}

} // namespace

} // namespace weftio::test
