// UMR entries that are neither a bind nor an invalidation in each of their fields change nothing.
#include <vector>

#include <gtest/gtest.h>

#include "two_ends.hpp"
#include "window_entry.hpp"

namespace weftio::test {

namespace {

class RdmaWindowEntry : public testing::Test {
 protected:
    void SetUp() override { ends.connect(); }
    window_entry whole(window_type type)
    {
        return {.next = of(type).rkey() + 1,
                .region = region.lkey(),
                .address = region.iova(),
                .bytes = 64,
                .rights = access::remote_write | access::remote_read,
                .type = type,
                .queue = type == window_type::type_2 ? ends.queue(1).number() : WEFTIO_MKEY_ANY_QUEUE};
    }
    memory_window& of(window_type type) { return type == window_type::type_1 ? one : two; }
    refusal run(window_type type, const std::vector<segment>& body)
    {
        ends.queue(1).post(WEFTIO_OPCODE_UMR, body, of(type).rkey());
        ends.queue(1).push();
        ends.run();
        return ends.queue(1).reported().reason;
    }
    void begin_again()
    {
        for (unsigned end = 0; end < 2; ++end)
            ends.queue(end).restart();
        ends.connect();
    }
    void expect_refused(refusal why, window_type type, const std::vector<segment>& body, const char* what)
    {
        const memory_window_standing before = of(type).standing();
        EXPECT_EQ(run(type, body), why) << what;
        EXPECT_EQ(of(type).standing().bound, before.bound) << what;
        EXPECT_EQ(of(type).rkey(), before.rkey) << what;
        begin_again();
    }

    two_ends ends{false};
    rdma_device device{ends.at(1), {.address = "10.9.9.9", .application_turns = true}};
    memory_region region{ends.at(1), ends.memory(1).memory, {.rights = access::local_write | access::bind}};
    memory_window one{device, window_type::type_1}, two{device, window_type::type_2};
};

/// Bits of an entry behind its control segment.
struct spoiled {
    std::size_t segment, word;
    std::uint32_t bits;
    refusal why;
    const char* what;
};
constexpr spoiled of_every_entry[]{
    {0, 0, 0x40000000, refusal::wrong_umr_mask, "an unknown flag"},
    {0, 3, WEFTIO_UMR_MASK_VARIANT, refusal::wrong_umr_mask, "a mask without the variant"},
    {0, 3, 0x80000000, refusal::wrong_umr_mask, "a mask with an unknown bit"},
    {0, 2, 1, refusal::wrong_umr_mask, "a mask with a high bit"},
    {0, 1, 0x10000, refusal::wrong_umr_field, "octowords of memory"},
    {3, 0, WEFTIO_MKEY_FREE << 24, refusal::wrong_umr_field, "whether the key is free"},
};
constexpr spoiled of_a_bind[]{
    {0, 1, 1, refusal::wrong_umr_field, "a translation offset"}, {3, 1, 0x100, refusal::wrong_umr_field, "the queue"},
    {4, 1, 1, refusal::wrong_umr_field, "another start"},        {4, 3, 1, refusal::wrong_umr_field, "another length"},
    {4, 2, 1, refusal::wrong_umr_field, "a length of 2^32"},     {7, 3, 1, refusal::wrong_umr_field, "another address"},
};

} // namespace

TEST_F(RdmaWindowEntry, IsRefusedInAnyOtherForm)
{
    for (const window_type type : {window_type::type_1, window_type::type_2}) {
        const std::vector<segment> binds = bind_segments(whole(type));
        const auto refused = [&](const std::vector<segment>& good, const spoiled& by) {
            std::vector<segment> body = good;
            body[by.segment].words[by.word] ^= by.bits;
            expect_refused(by.why, type, body, by.what);
        };
        for (const spoiled& each : of_every_entry)
            refused(binds, each);
        for (const spoiled& each : of_a_bind)
            refused(binds, each);
        for (const std::size_t segments : {6u, 8u, 10u})
            expect_refused(refusal::wrong_size, type,
                           {binds.begin(), binds.begin() + static_cast<std::ptrdiff_t>(segments)}, "another size");
        ASSERT_EQ(run(type, binds), refusal::none) << "the entry that all others come from is good";
        const bool type_1 = type == window_type::type_1;
        const std::vector<segment> frees = type_1 ? unbind_segments(0) : invalidate_segments(0);
        for (const spoiled& each : of_every_entry)
            refused(frees, each);
        refused(frees, {0, 0, WEFTIO_UMR_CHECK_FREE << 24, refusal::wrong_umr_mask, "a flag of a bind"});
        EXPECT_EQ(run(type, frees), refusal::none);
        begin_again();
    }
}

/// Those of 2^31 bytes and less are judged by their region. Its pointer segment has 32 bits for a length, the key
/// segment 64.
TEST_F(RdmaWindowEntry, OfMoreThan2GiBIsRefusedWhateverItsRegion)
{
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    for (const window_type type : {window_type::type_1, window_type::type_2}) {
        window_entry what = whole(type);
        for (const std::uint64_t bytes : {std::uint64_t{1} << 20, most - 1, most}) {
            what.bytes = bytes;
            expect_refused(refusal::window_outside_region, type, bind_segments(what), "a length that a bind may have");
        }
        for (const std::uint64_t bytes :
             {most + 1, 2 * most - 1, 2 * most, 2 * most + 64, (most << 20) + 64, ~most, ~std::uint64_t{0}}) {
            what.bytes = bytes;
            expect_refused(refusal::wrong_umr_field, type, bind_segments(what), "a length of more than 2^31");
        }
    }
}

TEST_F(RdmaWindowEntry, GivesNoRightThatItsMaskLacks)
{
    std::vector<segment> body = bind_segments(whole(window_type::type_2));
    body[0].words[3] &= ~WEFTIO_UMR_MASK_REMOTE_WRITE;
    ASSERT_EQ(run(window_type::type_2, body), refusal::none);
    ends.queue(0).post(WEFTIO_OPCODE_RDMA_READ, {remote(region.iova(), two.rkey()), ends.memory(0).local(0, 64)});
    ends.queue(0).push();
    ends.run();
    EXPECT_FALSE(ends.queue(0).nic().failed());
    ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE, {remote(region.iova(), two.rkey()), ends.memory(0).local(0, 64)});
    ends.queue(0).push();
    ends.run();
    EXPECT_EQ(ends.queue(0).reported().reason, refusal::remote_access);
}

} // namespace weftio::test
