// The NIC's side of a ring against a kernel that may write anything.
#include "nic/soft/receive/rx_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

namespace weftio::nic::soft {
namespace {

constexpr std::uint32_t depth = 64, stride_bytes = 64;
constexpr std::size_t guard_bytes = 4096;
constexpr auto canary = std::byte{0xc5};

/// Memory between two stretches that nobody may write.
class guarded {
 public:
    explicit guarded(std::size_t bytes) : all_((bytes + 2 * guard_bytes) / 64, line{}), bytes_(bytes)
    {
        std::fill_n(base(), bytes + 2 * guard_bytes, canary);
    }
    std::byte* data() { return base() + guard_bytes; }
    bool guards_intact()
    {
        auto untouched = [](std::byte byte) { return byte == canary; };
        return std::all_of(base(), data(), untouched) &&
               std::all_of(data() + bytes_, data() + bytes_ + guard_bytes, untouched);
    }

 private:
    struct alignas(64) line {
        std::byte bytes[64];
    };
    std::byte* base() { return all_.data()->bytes; }
    std::vector<line> all_;
    std::size_t bytes_;
};

class RxQueue : public testing::Test {
 protected:
    RxQueue()
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            completion(slot).publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        mbuf.buf_addr = frame;
        mbuf.data_len = stride_bytes;
        mbuf.pkt_len = stride_bytes;
        mbuf.nb_segs = 1;
    }
    weftio_cqe& completion(std::uint32_t slot) { return reinterpret_cast<weftio_cqe*>(completions.data())[slot]; }
    void post(std::uint32_t record) { weftio_store_release_sys_u32(&dbrec, weftio_swap32(record)); }
    /// Fills slots until none is free, at most `most`. Returns how many.
    std::uint32_t fill(std::uint32_t most)
    {
        std::uint32_t filled = 0;
        for (; filled < most && queue.has_room(); ++filled) {
            std::uint32_t slot = queue.take_slot();
            EXPECT_LT(slot, depth);
            EXPECT_TRUE(queue.copy(slot, mbuf));
            nic::soft::completions(queue, queue.model({})).add(slot, mbuf.pkt_len);
        }
        return filled;
    }

    guarded completions{depth * sizeof(weftio_cqe)}, slots{depth * stride_bytes};
    std::uint32_t dbrec = 0;
    std::uint8_t frame[stride_bytes] = {1, 2, 3};
    rte_mbuf mbuf{};
    rx_queue queue{{.completions = reinterpret_cast<weftio_cqe*>(completions.data()),
                    .dbrec = &dbrec,
                    .slots = slots.data(),
                    .depth = depth,
                    .stride_bytes = stride_bytes,
                    .slot_bytes = stride_bytes,
                    .number = 3,
                    .verify_checksums = false}};
};

TEST_F(RxQueue, FillsWhatIsPostedAndNoMore)
{
    EXPECT_EQ(fill(1000), 0u);
    post(10);
    EXPECT_EQ(fill(1000), 10u);
    post(depth + 10);
    EXPECT_EQ(fill(1000), depth);
    EXPECT_EQ(queue.delivered.value(), depth + 10u);
}

TEST_F(RxQueue, FillsNeighborsInOrderSoThatTheyCanBeCopiedTogether)
{
    ASSERT_TRUE(queue.make_mbufs(nullptr));
    for (std::uint32_t round = 0; round < 2; ++round) {
        post(round * depth + 16);
        for (std::uint32_t slot = 0; slot < 8; ++slot) {
            ASSERT_TRUE(queue.has_room());
            ASSERT_EQ(queue.take_slot(), slot);
            nic::soft::completions(queue, queue.model({})).add(slot, 60);
        }
        std::array<rte_mbuf*, 8> lent{};
        ASSERT_EQ(queue.lend(lent.data(), 8), 8u);
        for (std::uint32_t at = 0; at < 8; ++at)
            EXPECT_EQ(queue.lent().slot(lent[at]), 8 + at);
        for (std::uint32_t at = 8; at-- > 0;)
            queue.take_back(lent[at]);
        post((round + 1) * depth);
        EXPECT_EQ(fill(1000), depth - 8);
    }
}

TEST_F(RxQueue, CopiesFramesOfEveryLength)
{
    rte_mempool someones{};
    mbuf.pool = &someones;
    std::iota(std::begin(frame), std::end(frame), std::uint8_t{1});
    post(depth);
    for (std::uint32_t slot = 0, bytes = RTE_ETHER_HDR_LEN; bytes <= stride_bytes; ++slot, ++bytes) {
        mbuf.data_len = static_cast<std::uint16_t>(bytes);
        mbuf.pkt_len = bytes;
        rte_mbuf_refcnt_set(&mbuf, 2); // freed, it is still ours
        rte_mbuf* one = &mbuf;
        const weftio_cqe model = queue.model({});
        ASSERT_EQ(nic::soft::completions(queue, model).add_copied(&one, 1), 1u);
        EXPECT_EQ(rte_mbuf_refcnt_read(&mbuf), 1);
        EXPECT_EQ(std::memcmp(queue.slot(slot), frame, bytes), 0) << bytes;
        EXPECT_TRUE(bytes == stride_bytes || queue.slot(slot)[bytes] == canary) << bytes;
    }
    EXPECT_TRUE(slots.guards_intact());
}

TEST_F(RxQueue, CopiesAFrameThatLiesInTheVerySlot)
{
    rte_mempool someones{};
    mbuf.pool = &someones;
    post(depth);
    for (std::uint32_t slot = 0, bytes = RTE_ETHER_HDR_LEN; bytes + 8 <= stride_bytes; ++slot, ++bytes) {
        for (std::uint32_t at = 0; at < stride_bytes; ++at)
            queue.slot(slot)[at] = static_cast<std::byte>(at + 1);
        std::vector<std::byte> sent(queue.slot(slot) + 8, queue.slot(slot) + 8 + bytes);
        mbuf.buf_addr = queue.slot(slot) + 8;
        mbuf.data_len = static_cast<std::uint16_t>(bytes);
        mbuf.pkt_len = bytes;
        rte_mbuf_refcnt_set(&mbuf, 2);
        rte_mbuf* one = &mbuf;
        const weftio_cqe model = queue.model({});
        ASSERT_EQ(nic::soft::completions(queue, model).add_copied(&one, 1), 1u);
        EXPECT_EQ(std::memcmp(queue.slot(slot), sent.data(), bytes), 0) << bytes;
    }
}

TEST_F(RxQueue, CopiesUpToTheLastFreeSlotAndToTheEndOfTheRing)
{
    rte_mempool someones{};
    mbuf.pool = &someones;
    std::array<rte_mbuf*, depth> burst;
    burst.fill(&mbuf);
    auto copied = [&](std::uint32_t count) {
        rte_mbuf_refcnt_set(&mbuf, depth + 1);
        const weftio_cqe model = queue.model({});
        return nic::soft::completions(queue, model).add_copied(burst.data(), count);
    };
    EXPECT_EQ(copied(5), 0u);
    post(10);
    EXPECT_EQ(copied(depth), 10u);
    post(depth + 10);
    EXPECT_EQ(copied(depth), depth - 10);
    EXPECT_EQ(copied(depth), 10u);
    EXPECT_EQ(copied(1), 0u);
    EXPECT_TRUE(completions.guards_intact());
    EXPECT_TRUE(slots.guards_intact());
}

TEST_F(RxQueue, BelievesNoRecordThatClaimsMoreSlotsThanThereAre)
{
    for (std::uint32_t record : {depth + 1, 0x8000u, 0xffffu}) {
        post(record);
        EXPECT_EQ(fill(1000), 0u) << record;
    }
    post(depth);
    EXPECT_EQ(fill(1000), depth);
}

TEST_F(RxQueue, LooksAtTheLowSixteenBitsOfTheRecordOnly)
{
    post(0xabcd0000u + 5);
    EXPECT_EQ(fill(1000), 5u);
}

TEST_F(RxQueue, StaysInsideTheRingWhateverTheRecordSays)
{
    std::mt19937 random(3);
    for (std::uint32_t low = 0; low < 0x10000; ++low) {
        post((static_cast<std::uint32_t>(random()) & 0xffff0000u) | low);
        ASSERT_LE(fill(2 * depth), depth);
        weftio_store_release_sys_u32(&dbrec, static_cast<std::uint32_t>(random()));
        ASSERT_LE(fill(2 * depth), depth);
    }
    EXPECT_GT(queue.delivered.value(), 0x8000u);
    EXPECT_TRUE(completions.guards_intact());
    EXPECT_TRUE(slots.guards_intact());
}

TEST_F(RxQueue, PublishesWhatFormatsSay)
{
    post(1);
    ASSERT_TRUE(queue.has_room());
    const rx_facts facts{.real_time = weftio_real_time_from_ns(1'700'000'000'000'000'007),
                         .rss_hash = 0x01020304,
                         .has_rss_hash = true,
                         .hds_ip_ext = WEFTIO_CQE_L2_OK | WEFTIO_CQE_L4_OK,
                         .l4_hdr_type_etc = WEFTIO_CQE_L3_IPV4 | WEFTIO_CQE_VLAN_STRIPPED,
                         .vlan_tci = 0x0a0b};
    nic::soft::completions(queue, queue.model(facts)).add(queue.take_slot(), 60);
    std::uint8_t raw[64];
    std::memcpy(raw, &completion(0), sizeof raw);
    const std::uint8_t seconds[] = {0x65, 0x53, 0xf1, 0x00, 0, 0, 0, 7}, hash[] = {1, 2, 3, 4},
                       length[] = {0, 0, 0, 60};
    EXPECT_EQ(std::memcmp(raw + 12, hash, 4), 0);
    EXPECT_NE(raw[16], 0);
    EXPECT_EQ(raw[28], 5);
    EXPECT_EQ(raw[29], 9);
    EXPECT_EQ(raw[30] << 8 | raw[31], 0x0a0b);
    EXPECT_EQ(std::memcmp(raw + 44, length, 4), 0);
    EXPECT_EQ(std::memcmp(raw + 48, seconds, 8), 0);
    EXPECT_EQ(raw[63], 0x20); // responder send, owner 0 in pass 0
}

} // namespace
} // namespace weftio::nic::soft
