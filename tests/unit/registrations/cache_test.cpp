// registration_cache: what is registered, under which keys, and when it is given back.
#include <array>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "pages.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/memory.hpp"

namespace weftio::test {
namespace {

constexpr access writes = access::local_write;
constexpr access peer_writes = access::local_write | access::remote_write;
constexpr access peer_reads = access::local_write | access::remote_read;

class Registrations : public testing::Test {
 protected:
    std::optional<keys::key_entry> entry(std::uint32_t key) const { return entry_of(null, key); }
    error refused(const void* address, std::size_t bytes, access rights = writes)
    {
        return error_of([&] { (void)cache->get(address, bytes, rights); });
    }

    port null = port::open("null", {.mode = engine_mode::inline_worker});
    keys::key_table& table = core::undying<keys::key_table>();
    const std::uint32_t keys_before = table.in_use();
    std::optional<registration_cache> cache{std::in_place, null, registration_cache_options{}};
};

TEST_F(Registrations, AreMadeOnceAndKept)
{
    const pages memory(4);
    std::uint32_t key = 0;
    {
        const registration first = cache->get(memory.at(1) + 5, 10);
        key = first.lkey();
        EXPECT_TRUE(is_exactly(entry(key), memory.at(1), page_bytes, writes));
        EXPECT_EQ(first.rkey(), 0u);
        EXPECT_EQ(first.lkey(null), key);
    }
    EXPECT_TRUE(entry(key)) << "given back at once";
    EXPECT_EQ(cache->get(memory.at(1), page_bytes).lkey(), key);
    EXPECT_EQ(cache->get(memory.at(2) - 1, 1).lkey(), key);
    const registration_cache_counters counters = cache->counters();
    EXPECT_EQ(counters.hits, 2u);
    EXPECT_EQ(counters.misses, 1u);
    EXPECT_EQ(counters.bytes, page_bytes);
    EXPECT_EQ(table.in_use(), keys_before + 1);
    cache.reset();
    EXPECT_EQ(table.in_use(), keys_before);
    EXPECT_FALSE(entry(key));
}

TEST_F(Registrations, HaveRemoteKeysOfExactlyTheBytesAndRights)
{
    const pages memory(4);
    const registration one = cache->get(memory.at(1) + 5, 10, peer_writes);
    EXPECT_TRUE(is_exactly(entry(one.rkey()), memory.at(1) + 5, 10, peer_writes));
    EXPECT_EQ(one.rkey(null), one.rkey());
    EXPECT_TRUE(is_exactly(entry(one.lkey()), memory.at(1), page_bytes, writes)) << "peers could use it";
    const registration other_rights = cache->get(memory.at(1) + 5, 10, peer_reads);
    EXPECT_TRUE(is_exactly(entry(other_rights.rkey()), memory.at(1) + 5, 10, peer_reads));
    const registration other_bytes = cache->get(memory.at(1) + 5, 11, peer_writes);
    EXPECT_TRUE(is_exactly(entry(other_bytes.rkey()), memory.at(1) + 5, 11, peer_writes));
    EXPECT_EQ(other_bytes.lkey(), one.lkey());
    EXPECT_EQ(cache->counters().misses, 1u);
    EXPECT_EQ(cache->counters().remote_keys, 3u);
}

TEST_F(Registrations, EndARemoteKeyWithItsLastHandle)
{
    const pages memory(1);
    registration one = cache->get(memory.at(0), 100, peer_writes), two = cache->get(memory.at(0), 100, peer_writes);
    const std::uint32_t key = one.rkey();
    EXPECT_EQ(two.rkey(), key);
    EXPECT_EQ(cache->counters().remote_keys, 1u);
    one = {};
    EXPECT_TRUE(entry(key));
    two = {};
    EXPECT_FALSE(entry(key));
    EXPECT_EQ(table.in_use(), keys_before + 1);
    EXPECT_NE(cache->get(memory.at(0), 100, peer_writes).rkey(), key);
}

TEST_F(Registrations, OfNeighborsBecomeOne)
{
    const pages memory(6);
    registration left = cache->get(memory.at(0), page_bytes), right = cache->get(memory.at(2), page_bytes);
    const std::uint32_t left_key = left.lkey();
    EXPECT_NE(left_key, right.lkey());
    const registration all = cache->get(memory.at(1), 1);
    EXPECT_TRUE(is_exactly(entry(all.lkey()), memory.at(0), 3 * page_bytes, writes));
    EXPECT_EQ(cache->get(memory.at(0), 3 * page_bytes).lkey(), all.lkey());
    EXPECT_TRUE(entry(left_key)) << "a handle has it";
    EXPECT_EQ(cache->counters().bytes, 5 * page_bytes);
    left = {};
    EXPECT_FALSE(entry(left_key)) << "the last handle is gone";
    right = {};
    EXPECT_EQ(cache->counters().bytes, 3 * page_bytes);
    EXPECT_EQ(cache->counters().registrations, 1u);
    EXPECT_EQ(cache->get(memory.at(4), 1).lkey(), cache->get(memory.at(4), page_bytes).lkey()) << "apart";
}

TEST_F(Registrations, OfNeighborsWithoutTheRightsStayApart)
{
    const pages memory(2);
    ASSERT_EQ(mprotect(memory.at(1), page_bytes, PROT_READ), 0);
    const registration written = cache->get(memory.at(0), page_bytes);
    const registration read = cache->get(memory.at(1), page_bytes, access::none);
    EXPECT_TRUE(is_exactly(entry(written.lkey()), memory.at(0), page_bytes, writes));
    EXPECT_TRUE(is_exactly(entry(read.lkey()), memory.at(1), page_bytes, access::none));
    EXPECT_EQ(cache->get(memory.at(0), page_bytes).lkey(), written.lkey());
}

TEST_F(Registrations, GetMoreRightsWhenTheyAreAskedFor)
{
    const pages memory(1);
    const registration read = cache->get(memory.at(0), 1, access::none);
    EXPECT_EQ(entry(read.lkey())->rights, access::none);
    const registration written = cache->get(memory.at(0), 1);
    EXPECT_EQ(entry(written.lkey())->rights, writes);
    EXPECT_EQ(cache->get(memory.at(0), 1, access::none).lkey(), written.lkey());
    EXPECT_EQ(cache->counters().misses, 2u);
}

TEST_F(Registrations, OfNeighborsThatAreGoneAreDropped)
{
    pages memory(3);
    (void)cache->get(memory.at(0), 2 * page_bytes);
    ASSERT_EQ(mprotect(memory.at(0), page_bytes, PROT_NONE), 0);
    const registration left_over = cache->get(memory.at(1), 2 * page_bytes);
    EXPECT_TRUE(is_exactly(entry(left_over.lkey()), memory.at(1), 2 * page_bytes, writes));
    EXPECT_EQ(cache->counters().registrations, 1u);
}

TEST_F(Registrations, AreEvictedTheLeastRecentlyUsedFirst)
{
    cache.emplace(null, registration_cache_options{.budget_bytes = 3 * page_bytes});
    const pages memory(9);
    std::array<std::uint32_t, 3> key{};
    for (unsigned at = 0; at < 3; ++at)
        key[at] = cache->get(memory.at(2 * at), 1).lkey();
    (void)cache->get(memory.at(0), 1);
    const registration held = cache->get(memory.at(2), 1);
    (void)cache->get(memory.at(6), 1);
    EXPECT_FALSE(entry(key[2])) << "used least recently";
    EXPECT_TRUE(entry(key[0]) && entry(key[1]));
    (void)cache->get(memory.at(8), 1);
    EXPECT_FALSE(entry(key[0]));
    EXPECT_TRUE(entry(key[1])) << "held";
    EXPECT_EQ(cache->counters().evictions, 2u);
    EXPECT_EQ(cache->counters().bytes, 3 * page_bytes);
}

TEST_F(Registrations, AreRefusedWhenHandlesHoldTheBudget)
{
    cache.emplace(null, registration_cache_options{.budget_bytes = 2 * page_bytes});
    const pages memory(5);
    const registration one = cache->get(memory.at(0), 1);
    registration two = cache->get(memory.at(2), 1);
    const error full = refused(memory.at(4), 1);
    EXPECT_EQ(full.code(), errc::out_of_memory);
    EXPECT_THAT(full.what(), testing::HasSubstr("handles hold 8192 bytes of the budget of 8192; destroy handles, or"));
    EXPECT_EQ(table.in_use(), keys_before + 2);
    two = {};
    EXPECT_TRUE(cache->get(memory.at(4), 1));
    const error large = refused(memory.at(0), 3 * page_bytes);
    EXPECT_EQ(large.code(), errc::out_of_memory);
    EXPECT_THAT(large.what(), testing::HasSubstr("12288 bytes, more than the budget of 8192; raise"));
}

TEST_F(Registrations, AreRefusedWhenDroppedOnesThatHandlesHoldFillTheBudget)
{
    cache.emplace(null, registration_cache_options{.budget_bytes = 3 * page_bytes});
    const pages memory(6);
    const registration dropped = cache->get(memory.at(0), 2 * page_bytes);
    cache->invalidate(memory.at(0), 1);
    (void)cache->get(memory.at(2), 1); // nobody holds it: it is evicted, which is not enough
    EXPECT_EQ(refused(memory.at(4), 2 * page_bytes).code(), errc::out_of_memory);
    EXPECT_EQ(cache->counters().evictions, 1u);
    EXPECT_EQ(cache->counters().bytes, 2 * page_bytes);
}

TEST_F(Registrations, BecomeNoneBeyondTheBudget)
{
    cache.emplace(null, registration_cache_options{.budget_bytes = 2 * page_bytes});
    const pages memory(3);
    (void)cache->get(memory.at(0), 1);
    (void)cache->get(memory.at(1), 1);
    const registration third = cache->get(memory.at(2), 1);
    EXPECT_TRUE(is_exactly(entry(third.lkey()), memory.at(2), page_bytes, writes));
    EXPECT_LE(cache->counters().bytes, 2 * page_bytes);
}

TEST_F(Registrations, AreNeverFoundAgainOnceInvalidated)
{
    const pages memory(4);
    registration held = cache->get(memory.at(0) + 8, 8, peer_writes);
    const std::uint32_t kept = cache->get(memory.at(2), 1).lkey();
    cache->invalidate(memory.at(0) + 4, page_bytes - 4);
    EXPECT_TRUE(entry(held.lkey()) && entry(held.rkey())) << "they end with their handle";
    const registration fresh = cache->get(memory.at(0) + 8, 8, peer_writes);
    EXPECT_NE(fresh.lkey(), held.lkey());
    EXPECT_NE(fresh.rkey(), held.rkey());
    EXPECT_EQ(cache->get(memory.at(2), 1).lkey(), kept);
    EXPECT_EQ(cache->counters().invalidations, 1u);
    held = {};
    EXPECT_EQ(table.in_use(), keys_before + 3);
    cache->invalidate(memory.at(2) + page_bytes - 1, SIZE_MAX);
    EXPECT_FALSE(entry(kept)) << "nobody holds it";
    cache->invalidate(memory.at(3), 0);
    EXPECT_EQ(cache->counters().invalidations, 2u);
}

TEST_F(Registrations, OfBadRangesAndRightsAreRefusedAndLeaveNothing)
{
    const pages memory(2);
    ASSERT_EQ(mprotect(memory.at(1), page_bytes, PROT_READ), 0);
    const auto* const high = reinterpret_cast<const void*>(~std::uintptr_t{0} - 5);
    EXPECT_THAT(refused(memory.at(0), 0).what(), testing::HasSubstr("the address must be non-null and the size > 0"));
    EXPECT_EQ(refused(nullptr, 8).code(), errc::invalid_argument);
    EXPECT_THAT(refused(memory.at(0), SIZE_MAX).what(), testing::HasSubstr("exceed the address space; use a smaller"));
    EXPECT_EQ(refused(high, 10).code(), errc::invalid_argument);
    EXPECT_THAT(refused(memory.at(0), 2 * page_bytes).what(),
                testing::HasSubstr("are read-only, but rights have access::local_write"));
    EXPECT_EQ(refused(memory.at(0), 2 * page_bytes, peer_writes).code(), errc::not_reachable);
    EXPECT_THAT(refused(memory.at(1), 2 * page_bytes, access::none).what(),
                testing::HasSubstr("this process cannot read them"));
    EXPECT_THAT(refused(memory.at(0), 1, access::remote_write).what(), testing::HasSubstr("add access::local_write"));
    EXPECT_THAT(refused(memory.at(0), 1, static_cast<access>(0x42)).what(), testing::HasSubstr("unknown bits"));
    EXPECT_EQ(table.in_use(), keys_before);
    EXPECT_EQ(cache->counters().registrations, 0u);
    EXPECT_THAT(error_of([] { registration_cache({.budget_bytes = 100}); }).what(),
                testing::HasSubstr("budget_bytes is 100, but a registration has at least one page of 4096 bytes"));
}

TEST_F(Registrations, OutliveTheirCacheWhileTheyAreHeld)
{
    const pages memory(2);
    registration held = cache->get(memory.at(0), 8, peer_writes), pages_only = cache->get(memory.at(0), 8);
    cache.reset();
    EXPECT_TRUE(entry(held.rkey()) && entry(held.lkey()));
    const std::uint32_t local = held.lkey();
    held = {};
    EXPECT_EQ(table.in_use(), keys_before + 1);
    EXPECT_TRUE(entry(local));
    pages_only = {};
    EXPECT_EQ(table.in_use(), keys_before);
}

TEST_F(Registrations, AreThoseOfAllPortsAndEngines)
{
    const port other = port::open("null", {.mode = engine_mode::inline_worker});
    const dma_engine dma({.mode = engine_mode::inline_worker});
    cache->register_with(other);
    cache->register_with(dma);
    const pages memory(1);
    const registration all = cache->get(memory.at(0), 1, peer_reads);
    EXPECT_TRUE(entry_of(null, all.rkey()) && entry_of(other, all.rkey()) && entry_of(other, all.lkey()));
    EXPECT_EQ(all.lkey(dma), all.lkey());
    EXPECT_EQ(error_of([&] { cache->register_with(port::open("null")); }).code(), errc::in_use);
    EXPECT_THAT(error_of([] { (void)registration().rkey(port::open("null")); }).what(), testing::HasSubstr("is empty"));
    EXPECT_THAT(error_of([&] { (void)cache->get(memory.at(0), 1).rkey(null); }).what(),
                testing::HasSubstr("it has no remote key; ask get() for a right of peers"));
}

TEST_F(Registrations, AreOfTheDomainOfTheCache)
{
    const protection_domain own = protection_domain::make();
    cache.emplace(null, registration_cache_options{.domain = own});
    const pages memory(1);
    const registration one = cache->get(memory.at(0), 1, peer_reads);
    EXPECT_EQ(entry(one.lkey())->domain, own);
    EXPECT_EQ(entry(one.rkey())->domain, own);
}

TEST_F(Registrations, AreCountedInTelemetry)
{
    const pages memory(1);
    (void)cache->get(memory.at(0), 1);
    (void)cache->get(memory.at(0), 1);
    const std::string page = telemetry_of_caches();
    EXPECT_THAT(page, testing::HasSubstr("\"hits\":1"));
    EXPECT_THAT(page, testing::HasSubstr("\"misses\":1"));
    EXPECT_THAT(page, testing::HasSubstr("\"bytes\":4096"));
    EXPECT_THAT(page, testing::HasSubstr("\"staleness\":\"close_first\""));
}

} // namespace
} // namespace weftio::test
