// UMR entries as others write them: libmlx5's, at the end of a ring, and damaged ones.
#include <functional>

#include "posted_ends.hpp"
#include "weftio/refusal.hpp"
#include "window_entry.hpp"

namespace weftio::test {

namespace {

/// A bind of a window of type 2 as libmlx5 writes it, without its control segment.
std::vector<segment> bind_of(std::uint32_t queue, std::uint32_t variant, std::uint32_t region, std::uint64_t at,
                             std::uint32_t bytes)
{
    return bind_segments({.next = variant,
                          .region = region,
                          .address = at,
                          .bytes = bytes,
                          .rights = access::remote_write | access::remote_read,
                          .type = window_type::type_2,
                          .queue = queue});
}

class RdmaWindowEntries : public testing::Test {
 protected:
    explicit RdmaWindowEntries(const verbs_shape& shape = {}) : ends(shape) { ends.connect(); }

    std::vector<segment> bind() { return bind_of(b()->number(), 1, lendable.lkey(), lendable.iova(), 256); }
    std::uint32_t refused_by(std::vector<segment> body)
    {
        b().post(WEFTIO_OPCODE_UMR, body, WEFTIO_CE_ALWAYS, window.rkey());
        const std::vector<completion> all = ends.poll(1);
        EXPECT_EQ(all.size(), 1u);
        EXPECT_FALSE(window.standing().bound);
        return all.empty() ? 0 : static_cast<std::uint32_t>(all.front().reason);
    }
    posted_pair& b() { return ends.pair(1); }

    verbs_ends ends;
    memory_region lendable{ends.at(1), ends.memory(1).memory, {.rights = access::local_write | access::bind}};
    memory_window window{*ends.devices[1], window_type::type_2};
};

/// An entry of three blocks that begins at every block of the ring.
TEST_F(RdmaWindowEntries, OfLibmlx5BindAndInvalidateAtEachPlaceOfTheRing)
{
    for (std::uint32_t round = 0; round != 200; ++round) {
        if (round % 3 == 0)
            b().post(WEFTIO_OPCODE_NOP, {});
        b().post(WEFTIO_OPCODE_UMR, bind(), WEFTIO_CE_ALWAYS, window.rkey());
        ends.run();
        ASSERT_TRUE(window.standing().bound) << round;
        ASSERT_EQ(window.rkey() & 0xff, 1u);
        b().post(WEFTIO_OPCODE_UMR, invalidate_segments(0), WEFTIO_CE_ALWAYS, window.rkey());
        ends.run();
        ASSERT_FALSE(window.standing().bound) << round;
        for (const completion& each : ends.poll(1)) {
            EXPECT_EQ(each.syndrome, 0u);
            EXPECT_EQ(each.opcode, WEFTIO_CQE_OPCODE_REQUESTER);
        }
    }
}

TEST_F(RdmaWindowEntries, ThatAreDamagedAreRefusedForOneReasonEach)
{
    const struct {
        const char* name;
        refusal why;
        std::function<void(std::vector<segment>&)> damage;
    } cases[] = {
        {"two blocks", refusal::wrong_umr_mask, [](auto& all) { all.resize(7); }},
        {"one block", refusal::wrong_size, [](auto& all) { all.resize(3); }},
        {"four blocks", refusal::wrong_size, [](auto& all) { all.resize(15); }},
        {"memory elsewhere", refusal::wrong_umr_mask, [](auto& all) { all[0].words[0] &= ~0x80000000u; }},
        {"an unknown flag", refusal::wrong_umr_mask, [](auto& all) { all[0].words[0] |= 0x01000000; }},
        {"flags of type 1", refusal::wrong_umr_mask, [](auto& all) { all[0].words[0] = 0x90000000; }},
        {"flags of an invalidation", refusal::wrong_umr_mask, [](auto& all) { all[0].words[0] = 0x98000000; }},
        {"an unknown field", refusal::wrong_umr_mask, [](auto& all) { all[0].words[2] = 1; }},
        {"without its length", refusal::wrong_umr_mask, [](auto& all) { all[0].words[3] &= ~1u; }},
        {"without its queue", refusal::wrong_umr_mask, [](auto& all) { all[0].words[3] &= ~0x4000u; }},
        {"two octowords", refusal::wrong_umr_field, [](auto& all) { all[0].words[1] = 2u << 16; }},
        {"an offset", refusal::wrong_umr_field, [](auto& all) { all[0].words[1] |= 1; }},
        {"free", refusal::wrong_umr_field, [](auto& all) { all[3].words[0] |= 0x40000000; }},
        {"another queue", refusal::wrong_umr_field, [](auto& all) { all[3].words[1] ^= 0x100; }},
        {"another start", refusal::wrong_umr_field, [](auto& all) { all[4].words[1] ^= 8; }},
        {"another length", refusal::wrong_umr_field, [](auto& all) { all[4].words[3] ^= 8; }},
        {"a length of more than 32 bits", refusal::wrong_umr_field, [](auto& all) { all[4].words[2] = 1; }},
        {"no region", refusal::window_region, [](auto& all) { all[7].words[1] ^= 1; }},
        {"behind its region", refusal::window_outside_region,
         [](auto& all) {
             all[4].words[1] += verbs_ends::memory_bytes - 255;
             all[7].words[3] += verbs_ends::memory_bytes - 255;
         }},
    };
    for (const auto& [name, why, damage] : cases) {
        std::vector<segment> body = bind();
        damage(body);
        EXPECT_EQ(refused_by(body), static_cast<std::uint32_t>(why)) << name << ": " << explain(why);
        for (unsigned end = 0; end != 2; ++end)
            ends.pair(end).reset();
        ends.connect();
        ends.poll(1);
    }
}

/// libmlx5's rings are the program's, and so are the bytes behind them.
class RdmaWindowEntriesOfPrograms : public testing::Test {
 protected:
    static constexpr std::uint32_t blocks = 8;

    RdmaWindowEntriesOfPrograms() : ring(where.allocate((blocks + 1) * 64, memory_kind::cpu_device))
    {
        std::memset(ring.cpu_address(), 0, ring.bytes());
    }

    device where = device::open("cpu");
    memory ring;
};

TEST_F(RdmaWindowEntriesOfPrograms, HaveTheirThirdBlockBehindTheRingIfItIsThere)
{
    const port at = port::open("loopback", {.mode = engine_mode::inline_worker});
    const rdma_device rdma(at, {.address = "10.0.0.1", .application_turns = true, .strict_windows = false});
    const completion_queue done(at, where, {.entries = 64});
    posted_pair pair(rdma, where, done, done, {.send_blocks = blocks, .send_ring = {&ring, 0}});
    const memory bytes = where.allocate(4096, memory_kind::cpu_device);
    const memory_region region(at, bytes, {.rights = access::local_write | access::bind});
    const memory_window window(rdma, window_type::type_2);
    pair->connect(pair->address());
    for (std::uint32_t each = 0; each != blocks - 2; ++each)
        pair.post(WEFTIO_OPCODE_NOP, {});
    port(at).turn();
    auto* const words = static_cast<std::uint32_t*>(pair->send_ring());
    pair.write(WEFTIO_OPCODE_UMR, bind_of(pair->number(), 7, region.lkey(), region.iova() + 8, 64), WEFTIO_CE_ALWAYS,
               window.rkey());
    std::memcpy(words + blocks * 16, words, 64); // where libmlx5 writes it
    std::memset(words, 0, 64);
    pair.commit();
    port(at).turn();
    EXPECT_TRUE(window.standing().bound);
    EXPECT_EQ(window.rkey() & 0xff, 7u);
}

} // namespace

} // namespace weftio::test
