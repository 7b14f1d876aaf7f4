// A requester and a responder, joined by a wire that keeps every packet, or by a seeded link that does not.
#include <random>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using weftio::net::ack_timeout_ns;
using weftio::net::roce_extra;

constexpr weftio::rdma_service reliable = weftio::rdma_service::reliable;

bytes part_of(pair_of_ends& ends, std::size_t offset, std::size_t count)
{
    return {ends.memory.data() + offset, ends.memory.data() + offset + count};
}

TEST(RoceTransport, WritesBytesOfEveryLength)
{
    for (std::size_t count : {0u, 1u, 255u, 256u, 257u, 511u, 512u, 513u, 5000u}) {
        pair_of_ends ends({.path_mtu = 256, .send_psn = 0xfffffe});
        ends.sends.post(write_to(3), stamped(count, 1));
        ASSERT_TRUE(ends.run(100)) << count;
        EXPECT_EQ(part_of(ends, 3, count), stamped(count, 1)) << count;
        EXPECT_EQ(part_of(ends, 3 + count, 1000), bytes(1000)) << count;
        EXPECT_EQ(ends.sends.ends, (std::vector<fake_sends::ended>{{0, refusal::none}}));
        EXPECT_EQ(ends.requests.packets.value(), weftio::net::packets_of(static_cast<std::uint32_t>(count), 256));
        EXPECT_EQ(ends.requests.repeated.value(), 0u);
    }
}

TEST(RoceTransport, SendsMessagesIntoReceiveEntries)
{
    pair_of_ends ends({.path_mtu = 256});
    message with_immediate = a_send();
    with_immediate.extra = roce_extra::immediate;
    with_immediate.immediate_or_key = 0x01020304;
    with_immediate.solicited = true;
    for (int entry = 0; entry < 3; ++entry)
        ends.receives.post(2000);
    ends.sends.post(a_send(), stamped(700, 1), true);
    ends.sends.post(with_immediate, stamped(2000, 2), true);
    ends.sends.post(a_send(), {});
    ASSERT_TRUE(ends.run(100));
    EXPECT_TRUE(ends.all_succeeded());
    ASSERT_EQ(ends.receives.messages.size(), 3u);
    EXPECT_EQ(ends.receives.messages, (std::vector<bytes>{stamped(700, 1), stamped(2000, 2), {}}));
    EXPECT_EQ(ends.receives.completions[0].by, filled_by::send);
    EXPECT_EQ(ends.receives.completions[1].by, filled_by::send_immediate);
    EXPECT_EQ(ends.receives.completions[1].immediate_or_key, 0x01020304u);
    EXPECT_EQ(ends.receives.completions[1].bytes, 2000u);
    EXPECT_TRUE(ends.receives.completions[1].solicited);
    EXPECT_FALSE(ends.receives.completions[2].solicited);
}

TEST(RoceTransport, WritesWithImmediateAndSendsWithInvalidate)
{
    pair_of_ends ends({.path_mtu = 256});
    message write = write_to(8);
    write.extra = roce_extra::immediate;
    write.immediate_or_key = 5;
    message last = a_send();
    last.extra = roce_extra::invalidate;
    last.immediate_or_key = fake_memory::key;
    ends.receives.post(0);
    ends.receives.post(10);
    ends.sends.post(write, stamped(600, 3));
    ends.sends.post(last, stamped(4, 1));
    ASSERT_TRUE(ends.run(100));
    EXPECT_EQ(part_of(ends, 8, 600), stamped(600, 3));
    ASSERT_EQ(ends.receives.completions.size(), 2u);
    EXPECT_EQ(ends.receives.completions[0].by, filled_by::write_immediate);
    EXPECT_EQ(ends.receives.completions[0].bytes, 600u);
    EXPECT_EQ(ends.receives.completions[0].immediate_or_key, 5u);
    EXPECT_EQ(ends.receives.completions[1].by, filled_by::send_invalidate);
    EXPECT_EQ(ends.receives.completions[1].immediate_or_key, fake_memory::key);
    EXPECT_EQ(ends.memory.own_key, 0u);
}

TEST(RoceTransport, ReadsBytesOfEveryLength)
{
    for (std::size_t count : {0u, 1u, 256u, 257u, 5000u, 100'000u}) {
        pair_of_ends ends({.path_mtu = 256, .send_psn = 0xfffff0});
        const bytes source = stamped(1 << 20, 9);
        std::copy(source.begin(), source.end(), ends.memory.data());
        ends.sends.post(read_from(5), bytes(count));
        ends.sends.post(write_to(1 << 19), stamped(8, 1)); // its number is behind those of the answers
        ASSERT_TRUE(ends.run(1000)) << count;
        EXPECT_TRUE(ends.all_succeeded());
        EXPECT_EQ(ends.sends.entries[0].local, bytes(&source[5], &source[5] + count)) << count;
        EXPECT_EQ(ends.requests.packets.value(), 2u);
    }
}

TEST(RoceTransport, ExecutesAtomics)
{
    pair_of_ends ends({});
    const std::uint64_t before = 0x0102030405060708;
    std::memcpy(ends.memory.data() + 16, &before, 8);
    ends.sends.post(fetch_add(16, 5), bytes(8), true);
    ends.sends.post(compare_swap(16, before + 5, 77), bytes(8), true);
    ends.sends.post(compare_swap(16, 1, 78), bytes(8));
    ASSERT_TRUE(ends.run(100));
    EXPECT_TRUE(ends.all_succeeded());
    const auto word = [](const std::uint8_t* at) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, 8);
        return value;
    };
    EXPECT_EQ(word(ends.sends.entries[0].local.data()), before);
    EXPECT_EQ(word(ends.sends.entries[1].local.data()), before + 5);
    EXPECT_EQ(word(ends.sends.entries[2].local.data()), 77u);
    EXPECT_EQ(word(ends.memory.data() + 16), 77u);
}

TEST(RoceTransport, ReadsTwoGibibytesInPartsThatStayBelowHalfTheNumbers)
{
    fake_sends sends;
    fake_wire wire;
    workspace shared;
    requester asks(reliable, {.path_mtu = 256, .send_psn = 9}, sends, shared);
    sends.post(read_from(0), {});
    sends.entries[0].request.bytes = 1u << 31;
    EXPECT_EQ(asks.send(wire, 64, 1), 1u);
    const auto packets = wire.read();
    EXPECT_EQ(packets.at(0).headers.dma_bytes, 1u << 30);
    EXPECT_EQ(packets.at(0).headers.bth.psn, 9u);
}

/// Random operations on both ends, and beside them a plain model: memory as it must be in the end, what every READ and
/// atomic must have seen, and what every receive must hold. A READ may see what a later entry writes (IBTA 10.8.3.3),
/// so what follows one of the lower half is fenced; the upper half stays as it is.
struct random_work {
    pair_of_ends& ends;
    std::mt19937 random;
    bytes model;
    std::map<std::uint32_t, bytes> results;
    std::vector<bytes> received;
    bool fence = false;

    random_work(pair_of_ends& of, std::uint32_t seed)
        : ends(of), random(seed), model(stamped(of.memory.all().size(), 99))
    {
        std::copy(model.begin(), model.end(), ends.memory.data());
    }

    void post(std::uint32_t number, bool more)
    {
        const std::size_t count = random() % 8 == 0 ? random() % 20'000 : random() % 700;
        const std::size_t offset = random() % (model.size() / 2 - count);
        const bytes data = stamped(count, number);
        switch (random() % 5) {
            case 0: return read(random() % 2 == 0 ? offset : offset + model.size() / 2, count, more);
            case 1: return add(offset & ~std::size_t{7}, number, more);
            case 2:
                received.push_back(data);
                post_it(a_send(), data, more);
                return;
            default:
                std::copy(data.begin(), data.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
                post_it(write_to(offset), data, more);
        }
    }
    std::uint32_t post_it(message request, const bytes& local, bool more)
    {
        request.fence = std::exchange(fence, false);
        return ends.sends.post(request, local, more);
    }
    bytes model_at(std::size_t offset, std::size_t count) const
    {
        return {model.begin() + static_cast<std::ptrdiff_t>(offset),
                model.begin() + static_cast<std::ptrdiff_t>(offset + count)};
    }
    void read(std::size_t offset, std::size_t count, bool more)
    {
        results[post_it(read_from(offset), bytes(count), more)] = model_at(offset, count);
        fence = offset < model.size() / 2;
    }
    void add(std::size_t offset, std::uint64_t value, bool more)
    {
        const bytes before = model_at(offset, 8);
        results[post_it(fetch_add(offset, value), bytes(8), more)] = before;
        std::uint64_t word = 0;
        std::memcpy(&word, before.data(), 8);
        word += value;
        std::memcpy(&model[offset], &word, 8);
    }
};

class RoceLossyLink : public testing::TestWithParam<std::tuple<faults, std::uint32_t>> {};

void expect_as_in_model(pair_of_ends& ends, random_work& work)
{
    EXPECT_TRUE(ends.all_succeeded());
    EXPECT_TRUE(std::equal(work.model.begin(), work.model.end(), ends.memory.data()));
    EXPECT_EQ(ends.receives.messages, work.received);
    for (const auto& [index, expected] : work.results)
        EXPECT_EQ(ends.sends.entries[index].local, expected) << "entry " << index;
    for (std::uint32_t at = 0; at < ends.sends.ends.size(); ++at)
        ASSERT_EQ(ends.sends.ends[at].index, ends.sends.ends[0].index + at) << "entries end in their order";
}

void expect_conserved(const requester& asks, const responder& answers)
{
    EXPECT_EQ(asks.entries_read.value(), asks.completed.value() + asks.failed_entries.value() + asks.flushed.value());
    EXPECT_EQ(answers.received.value(), answers.executed.value() + answers.duplicate.value() +
                                            answers.out_of_sequence.value() + answers.not_ready.value() +
                                            answers.refused.value() + answers.ignored.value());
}

TEST_P(RoceLossyLink, NoByteIsWrongAndNoneIsMissing)
{
    const auto& [wanted, mtu] = GetParam();
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        pair_of_ends ends({.path_mtu = mtu, .send_psn = 0xffff00, .most_reads = 4, .timeout = 6}, wanted, seed,
                          0xffffff80);
        random_work work(ends, seed);
        for (std::uint32_t number = 0; number < 1500; ++number) {
            ends.receives.post(20'000);
            work.post(number, number % 3 != 0 && number != 1499);
        }
        ASSERT_TRUE(ends.run()) << "seed " << seed << ", ended: " << ends.sends.ends.size()
                                << ", refused: " << explain(ends.responses.last_refused().reason);
        expect_as_in_model(ends, work);
        expect_conserved(ends.requests, ends.responses);
        EXPECT_EQ(ends.requests.repeated.value() != 0, wanted.lost + wanted.late + wanted.corrupt != 0);
    }
}

/// One packet in ten is lost, either way. A connection may end for that (0x15), and nothing else may happen to it.
TEST(RoceTransport, MayEndAtTenPercentLossAndWritesNoWrongByte)
{
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        pair_of_ends ends({.path_mtu = 256, .send_psn = 0xffff00, .timeout = 5}, {.lost = 100}, seed);
        random_work work(ends, seed);
        for (std::uint32_t number = 0; number < 1500; ++number) {
            ends.receives.post(20'000);
            work.post(number, number % 3 != 0 && number != 1499);
        }
        ends.run();
        for (const fake_sends::ended& end : ends.sends.ends)
            EXPECT_TRUE(end.result == refusal::none || end.result == refusal::no_answer ||
                        end.result == refusal::flushed);
        EXPECT_FALSE(ends.responses.failed());
        ASSERT_LE(ends.receives.messages.size(), work.received.size());
        EXPECT_TRUE(std::equal(ends.receives.messages.begin(), ends.receives.messages.end(), work.received.begin()));
        if (ends.all_succeeded())
            expect_as_in_model(ends, work);
        expect_conserved(ends.requests, ends.responses);
    }
}

/// Entries of one kind, of 16 packets or one word each, through a link that loses packets.
struct lossy_run {
    lossy_run(const message& request, unsigned lost_there, unsigned lost_back, std::uint32_t seed)
    {
        pair_of_ends ends({.path_mtu = 256, .timeout = 14});
        ends.there = roce_ends::link({.lost = lost_there}, seed);
        ends.back = roce_ends::link({.lost = lost_back}, seed + 100);
        const bool changes = request.operation == roce_operation::fetch_add;
        const std::size_t entries = changes ? 4000 : 400, in_flight = 64, entry_bytes = changes ? 8 : 4096;
        std::size_t posted = 0;
        for (std::uint64_t waited = 0, done = 0; done != entries && waited < 1'000'000; ++steps) {
            for (; posted != entries && posted - done < in_flight; ++posted) {
                if (request.operation == roce_operation::send)
                    ends.receives.post(entry_bytes);
                ends.sends.post(request, bytes(entry_bytes), posted % 16 != 15);
            }
            ends.step();
            waited = ends.sends.ends.size() == done ? waited + 1 : 0;
            done = ends.sends.ends.size();
            longest_wait = std::max(longest_wait, waited * 10'000);
        }
        succeeded = ends.sends.ends.size() == entries && ends.all_succeeded();
        timeouts = ends.requests.local_ack_timeout_err.value();
    }

    std::uint64_t steps = 0, longest_wait = 0, timeouts = 0;
    bool succeeded = false;
};

/// READs lose nothing by their split, the window opens again, and no timeout is needed.
TEST(RoceTransport, GoesOnAtOncePastLosses)
{
    for (std::uint32_t seed = 1; seed <= 2; ++seed)
        for (const unsigned lost : {1u, 10u, 50u}) {
            for (const auto& [there, back] : {std::pair{lost, 0u}, {0u, lost}, {lost, lost}}) {
                std::map<roce_operation, std::uint64_t> steps;
                for (const message& request : {write_to(0), read_from(0), a_send(), fetch_add(0, 1)}) {
                    const lossy_run with(request, there, back, seed), without(request, 0, 0, seed);
                    EXPECT_TRUE(with.succeeded && without.succeeded) << int(request.operation);
                    EXPECT_EQ(with.timeouts, 0u);
                    EXPECT_LT(with.longest_wait, ack_timeout_ns(14) / 8);
                    if (lost <= 10) {
                        EXPECT_LE(with.steps * 3, without.steps * 10) << int(request.operation) << ' ' << lost;
                    }
                    steps[request.operation] = with.steps;
                }
                if (there == back) {
                    EXPECT_LE(steps[roce_operation::read_request] * 8, steps[roce_operation::write] * 10) << lost;
                }
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Faults, RoceLossyLink,
                         testing::Combine(testing::Values(faults{}, faults{.lost = 10}, faults{.lost = 50},
                                                          faults{.doubled = 100}, faults{.late = 20},
                                                          faults{.corrupt = 10},
                                                          faults{.lost = 10, .doubled = 20, .late = 10, .corrupt = 5}),
                                          testing::Values(256u, 1024u)));

} // namespace
