// Batches: submitting, events, partial completion, cancellation.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "scratch_file.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;

class Batch : public testing::TestWithParam<file_way> {
 protected:
    static constexpr std::size_t block = 4096, blocks = 64;

    void SetUp() override
    {
        if (!engine.has(GetParam()))
            GTEST_SKIP() << "no io_uring here";
        ASSERT_EQ(pwrite(scratch.descriptor(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    }
    static file_engine made()
    try {
        return file_engine({.only = GetParam(), .depth = 4});
    } catch (const error&) {
        return file_engine({.only = file_way::posix});
    }
    file_operation read_of(std::size_t number, std::size_t count = block)
    {
        return {file_operation::kind::read,     &file, read.data() + number * block, count, number * block,
                reinterpret_cast<void*>(number)};
    }
    std::vector<file_operation> reads(std::size_t count)
    {
        std::vector<file_operation> asked;
        for (std::size_t i = 0; i < count; ++i)
            asked.push_back(read_of(i));
        return asked;
    }

    const scratch_file scratch;
    const std::vector<std::byte> bytes = pattern(blocks * block, 5);
    std::vector<std::byte> read = std::vector<std::byte>(blocks * block);
    const file_engine engine = made();
    const weftio::file file{engine, scratch.descriptor()};
    std::array<file_event, blocks> events{};
};

TEST_P(Batch, EachOperationHasOneEventWithItsCookie)
{
    file_batch batch(engine, blocks);
    ASSERT_TRUE(batch.submit(reads(blocks)));
    std::size_t taken = 0;
    std::array<unsigned, blocks> seen{};
    while (taken < blocks) {
        const std::size_t count = batch.status(5, std::span(events).first(7), 10s);
        ASSERT_GE(count, std::min<std::size_t>(5, blocks - taken));
        for (const file_event& each : std::span(events).first(count)) {
            ++seen.at(reinterpret_cast<std::uintptr_t>(each.cookie));
            EXPECT_EQ(each.result.bytes, static_cast<std::int64_t>(block));
            EXPECT_EQ(each.result.way, GetParam());
        }
        taken += count;
    }
    for (const unsigned each : seen)
        EXPECT_EQ(each, 1U);
    EXPECT_EQ(read, bytes);
    EXPECT_EQ(batch.in_flight(), 0U);
    EXPECT_EQ(batch.status(1, events, 10s), 0U); // at once, as nothing is in flight
}

TEST_P(Batch, RefusesMoreThanItsCapacityAndBeginsNone)
{
    file_batch batch(engine, 3);
    EXPECT_FALSE(batch.submit(reads(4)));
    EXPECT_EQ(engine.counters().of(GetParam()).operations(), 0U);
    ASSERT_TRUE(batch.submit(reads(3)));
    EXPECT_FALSE(batch.submit(reads(1))); // in flight, or not taken
    EXPECT_EQ(batch.status(3, events, 10s), 3U);
    EXPECT_TRUE(batch.submit(reads(3)));
    EXPECT_EQ(batch.status(3, events, 10s), 3U);
    EXPECT_THROW(file_batch(engine, 0), error);
    EXPECT_THROW(file_batch(engine, 65537), error);
}

TEST_P(Batch, WhatFailsAtOnceHasAnEventAndDisturbsNoOther)
{
    file_batch batch(engine, 3);
    auto asked = reads(3);
    asked[1].offset = ~std::uint64_t{0};
    asked[2].memory = file_memory(nullptr);
    ASSERT_TRUE(batch.submit(asked));
    ASSERT_EQ(batch.status(3, events, 10s), 3U);
    std::array<int, 3> errors{};
    for (const file_event& each : std::span(events).first(3))
        errors.at(reinterpret_cast<std::uintptr_t>(each.cookie)) = each.result.error;
    EXPECT_EQ(errors, (std::array<int, 3>{0, EINVAL, EFAULT}));
    EXPECT_TRUE(std::equal(read.begin(), read.begin() + block, bytes.begin()));
}

TEST_P(Batch, RefusesAnOperationWithoutAFileOfItsEngine)
{
    file_batch batch(engine, 3);
    auto asked = reads(2);
    asked[1].on = nullptr;
    EXPECT_THROW((void)batch.submit(asked), error);
    const file_engine other;
    const weftio::file foreign(other, scratch.descriptor());
    asked[1].on = &foreign;
    EXPECT_THROW((void)batch.submit(asked), error);
    EXPECT_EQ(batch.in_flight(), 0U);
}

TEST_P(Batch, CanceledHalfWayEachOperationStillHasItsEvent)
{
    file_batch batch(engine, blocks);
    std::uint64_t whole = 0, canceled = 0;
    for (unsigned round = 0; round < 20; ++round) {
        ASSERT_TRUE(batch.submit(reads(blocks)));
        std::size_t taken = batch.status(round, events, 10s);
        batch.cancel();
        for (std::size_t from = 0;; taken += from) {
            for (const file_event& each : std::span(events).first(from == 0 ? taken : from)) {
                each.result.error == 0 ? ++whole : ++canceled;
                EXPECT_TRUE(each.result.error == ECANCELED || each.result.bytes == block);
            }
            from = batch.status(1, events, 10s);
            if (from == 0)
                break;
        }
        ASSERT_EQ(taken, blocks);
    }
    EXPECT_EQ(whole + canceled, 20 * blocks);
    const file_way_counters counted = engine.counters().of(GetParam());
    EXPECT_EQ(counted.reads, 20 * blocks);
    EXPECT_EQ(counted.read_errors, canceled);
}

TEST_P(Batch, EndsWithOperationsInFlight)
{
    file_batch batch(engine, blocks);
    ASSERT_TRUE(batch.submit(reads(blocks)));
}

TEST_P(Batch, AFileMayEndBeforeItsOperations)
{
    file_batch batch(engine, 8);
    {
        const weftio::file brief(engine, scratch.descriptor());
        auto asked = reads(8);
        for (file_operation& each : asked)
            each.on = &brief;
        ASSERT_TRUE(batch.submit(asked));
    }
    EXPECT_EQ(batch.status(8, events, 10s), 8U);
    EXPECT_TRUE(std::equal(read.begin(), read.begin() + 8 * block, bytes.begin()));
}

TEST_P(Batch, SubmitsWhileAnotherThreadWaits)
{
    file_batch batch(engine, blocks);
    ASSERT_TRUE(batch.submit(reads(1)));
    std::thread waits([&] {
        for (std::size_t taken = 0; taken < 32; taken += batch.status(1, std::span(events).first(4), 10s)) {
        }
    });
    for (std::size_t number = 1; number < 32; ++number)
        EXPECT_TRUE(batch.submit(std::array{read_of(number)}));
    waits.join();
    EXPECT_TRUE(std::equal(read.begin(), read.begin() + 32 * block, bytes.begin()));
}

std::string way_name(const testing::TestParamInfo<file_way>& way)
{
    return to_string(way.param);
}
INSTANTIATE_TEST_SUITE_P(Ways, Batch, testing::Values(file_way::uring, file_way::posix), way_name);

} // namespace

} // namespace weftio::test
