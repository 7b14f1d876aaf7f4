// Keys whose pages have gone: the judge decides, and all other rules stay.
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "keys/key_table.hpp"
#include "keys/queue_keys.hpp"
#include "keys/resolve.hpp"

namespace weftio::keys {
namespace {

constexpr std::uint64_t first = 0x10000;
std::vector<stale_access> asked;
refusal verdict = refusal::none;

class StaleKeys : public testing::Test {
 protected:
    StaleKeys()
    {
        asked.clear();
        verdict = refusal::none;
        table.set_judge([](const stale_access& of) noexcept {
            asked.push_back(of);
            return verdict;
        });
    }
    key_entry entry(access rights = access::local_write | access::remote_write | access::bind)
    {
        return {.cpu = memory.data(), .base = first, .bytes = memory.size(), .domain = ours, .rights = rights};
    }
    std::uint32_t add(bool lendable = false)
    {
        const std::uint32_t key = table.add(entry());
        keys.grant(key, lendable);
        return key;
    }
    refusal use(std::uint32_t key, access right = access::remote_write, std::uint64_t bytes = 64)
    {
        return resolve(keys, {key, first + 64, bytes, right, us.domain, us.number}, found);
    }
    std::uint32_t window_of(std::uint32_t region)
    {
        const std::uint32_t window = keys.add_window(window_type::type_2, ours);
        const window_bind what{.window = window,
                               .variant = static_cast<std::uint8_t>(window + 1),
                               .region = region,
                               .address = first + 64,
                               .bytes = 128,
                               .rights = access::remote_write};
        EXPECT_EQ(keys.bind(what, us), refusal::none);
        return window + 1;
    }

    std::array<std::byte, 4096> memory{};
    key_table table{key_table::all_indices, 0};
    nic_keys keys{"one", table};
    const protection_domain ours = protection_domain::make();
    const window_user us{.number = window_user::next_number(17), .domain = ours};
    located found;
};

TEST_F(StaleKeys, AreForTheJudgeToDecide)
{
    const std::uint32_t key = add(), other = add();
    EXPECT_EQ(use(key), refusal::none);
    table.mark_stale(key, 7);
    EXPECT_TRUE(asked.empty());
    EXPECT_EQ(use(key), refusal::none);
    EXPECT_EQ(found.cpu, memory.data() + 64);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].key, key);
    EXPECT_EQ(asked[0].mark, 7u);
    EXPECT_EQ(asked[0].address, first + 64);
    EXPECT_EQ(asked[0].bytes, 64u);
    EXPECT_EQ(asked[0].at, memory.data() + 64);
    EXPECT_EQ(asked[0].rights, access::remote_write);
    EXPECT_EQ(asked[0].peers_of & 0xffffff, 17u);
    verdict = refusal::memory_gone;
    EXPECT_EQ(use(key), refusal::memory_gone);
    EXPECT_EQ(use(other), refusal::none);
    EXPECT_EQ(asked.size(), 2u);
}

TEST_F(StaleKeys, AreRefusedAsOthersBeforeTheJudgeIsAsked)
{
    const std::uint32_t key = add();
    table.mark_stale(key, 7);
    EXPECT_EQ(use(key, access::remote_read), refusal::no_remote_read);
    EXPECT_EQ(use(key, access::remote_write, 5000), refusal::outside_region);
    EXPECT_EQ(resolve(keys, {key, first, 8, access::none, protection_domain::make()}, found), refusal::other_domain);
    EXPECT_EQ(resolve(keys, {key, first, 8, access::none, {}}, found), refusal::other_domain);
    EXPECT_TRUE(asked.empty());
}

TEST_F(StaleKeys, ThatAreChangedOrRenewedAreFresh)
{
    const std::uint32_t changed = add(), renewed = add();
    for (const std::uint32_t each : {changed, renewed})
        table.mark_stale(each, 7);
    EXPECT_TRUE(table.change(changed, entry()));
    EXPECT_EQ(use(changed), refusal::none);
    EXPECT_TRUE(table.withdraw(renewed));
    keys.forget(renewed);
    const std::uint32_t next = table.renew(renewed, entry());
    keys.grant(next, false);
    EXPECT_EQ(use(next), refusal::none);
    EXPECT_TRUE(asked.empty());
    table.mark_stale(renewed, 7); // the old key: of nobody
    EXPECT_EQ(use(next), refusal::none);
    EXPECT_TRUE(asked.empty());
}

TEST_F(StaleKeys, ChangeNothingThatWasFoundBefore)
{
    const std::uint32_t key = add();
    ASSERT_EQ(use(key), refusal::none);
    const held_key held = found.by;
    table.mark_stale(key, 7);
    table.mark_stale(key, 8);
    EXPECT_TRUE(keys.still(held));
    EXPECT_EQ(use(key), refusal::none);
    EXPECT_EQ(asked.at(0).mark, 7u);
    EXPECT_TRUE(table.withdraw(key));
    EXPECT_EQ(use(key), refusal::unknown_key);
}

TEST_F(StaleKeys, AreForTheJudgeAlsoWhereAQueueRemembersTheRegion)
{
    const keys::queue_keys queue(keys, ours);
    const std::uint32_t key = add();
    auto name = [&](access needed) { return queue.resolve(key, first, 8, needed, found); };
    ASSERT_EQ(name(access::none), refusal::none);
    table.mark_stale(key, 7);
    verdict = refusal::memory_gone;
    for (std::size_t times = 1; times <= 2; ++times) {
        EXPECT_EQ(name(access::none), refusal::memory_gone);
        EXPECT_EQ(asked.size(), times);
    }
    ASSERT_TRUE(table.change(key, entry()));
    EXPECT_EQ(name(access::none), refusal::none);
    EXPECT_EQ(asked.size(), 2u);
}

TEST_F(StaleKeys, HaveWindowsThatAreStaleToo)
{
    const std::uint32_t region = add(), early = window_of(region);
    table.mark_stale(region, 7);
    const std::uint32_t late = window_of(region);
    verdict = refusal::memory_gone;
    for (const std::uint32_t window : {early, late}) {
        EXPECT_EQ(use(window), refusal::memory_gone);
        EXPECT_EQ(asked.back().key, window);
        EXPECT_EQ(asked.back().mark, 7u);
    }
    EXPECT_EQ(use(early, access::remote_read), refusal::no_remote_read);
    EXPECT_EQ(use(early, access::remote_write, 200), refusal::outside_region);
    EXPECT_EQ(keys.invalidate(early, us), refusal::none);
    EXPECT_EQ(use(early), refusal::window_free);
    EXPECT_EQ(asked.size(), 2u);
}

} // namespace
} // namespace weftio::keys
