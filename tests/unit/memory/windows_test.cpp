// The rules of memory windows in the key table: who binds, accesses, frees and closes what.
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "keys/held_windows.hpp"
#include "keys/key_table.hpp"
#include "keys/resolve.hpp"

namespace weftio::keys {
namespace {

constexpr std::uint64_t begin = 0x10000;
constexpr access remote = access::remote_write | access::remote_read | access::remote_atomic;

class KeyWindows : public testing::Test {
 protected:
    KeyWindows() : region(add(access::local_write | access::bind)) {}

    std::uint32_t add(access rights, protection_domain domain = {}, std::uint64_t base = begin)
    {
        const std::uint32_t key =
            table.add({.cpu = memory.data(), .base = base, .bytes = memory.size(), .domain = domain, .rights = rights});
        keys.grant(key, true);
        return key;
    }
    std::uint32_t make(window_type type, protection_domain domain = {}) { return keys.add_window(type, domain); }
    window_bind bind_of(std::uint32_t window, window_type type = window_type::type_2)
    {
        return {.type = type,
                .window = window,
                .variant = static_cast<std::uint8_t>(window + 1),
                .region = region,
                .address = begin + 64,
                .bytes = 128,
                .rights = remote};
    }
    std::uint32_t bound(window_type type, const window_user& by)
    {
        const std::uint32_t window = make(type);
        EXPECT_EQ(keys.bind(bind_of(window, type), by), refusal::none);
        return window + 1;
    }
    refusal use(std::uint32_t key, const window_user& by, access right = access::remote_write,
                std::uint64_t address = begin + 64, std::uint64_t bytes = 128)
    {
        located found;
        const refusal why = resolve(keys, {key, address, bytes, right, by.domain, by.number}, found);
        if (why == refusal::none) {
            EXPECT_EQ(found.cpu, memory.data() + (address - begin));
        }
        return why;
    }

    std::array<std::byte, 4096> memory{};
    key_table table{key_table::all_indices, 0}; // an index is used again at once
    nic_keys keys{"one", table};
    const std::uint32_t region;
    const window_user us{.number = window_user::next_number()}, others{.number = window_user::next_number()},
        strangers{.number = window_user::next_number(), .domain = protection_domain::make()},
        entries{}; ///< local memory of an entry
};

TEST_F(KeyWindows, AreUsedByThoseWhomTheirTypeNames)
{
    const std::uint32_t one = bound(window_type::type_1, us), two = bound(window_type::type_2, us);
    EXPECT_EQ(use(one, us), refusal::none);
    EXPECT_EQ(use(one, others), refusal::none);
    EXPECT_EQ(use(one, strangers), refusal::other_domain);
    EXPECT_EQ(use(one, entries, access::none), refusal::window_as_lkey);
    EXPECT_EQ(use(two, us), refusal::none);
    EXPECT_EQ(use(two, others), refusal::window_of_other_queue);
    EXPECT_EQ(use(two, strangers), refusal::other_domain);
    EXPECT_EQ(use(two, entries, access::local_write), refusal::window_as_lkey);
    EXPECT_EQ(use(two, entries, access::none), refusal::window_as_lkey);
}

TEST_F(KeyWindows, GiveTheirOwnRightsAndNoOthers)
{
    for (const access right : {access::remote_write, access::remote_read, access::remote_atomic}) {
        const std::uint32_t window = make(window_type::type_2);
        window_bind what = bind_of(window);
        what.rights = right;
        ASSERT_EQ(keys.bind(what, us), refusal::none);
        for (const access needed : {access::remote_write, access::remote_read, access::remote_atomic}) {
            const refusal lack = needed == access::remote_atomic ? refusal::window_atomic : lack_of(needed);
            EXPECT_EQ(use(window + 1, us, needed, begin + 64, 8), needed == right ? refusal::none : lack);
        }
    }
}

TEST_F(KeyWindows, EndWhereTheyWereBound)
{
    const std::uint32_t key = bound(window_type::type_2, us);
    for (const std::uint64_t address :
         {begin + 63, begin, begin + 65, begin + 192, std::uint64_t{0}, ~std::uint64_t{0}})
        EXPECT_EQ(use(key, us, access::remote_write, address), refusal::outside_region) << address;
    EXPECT_EQ(use(key, us, access::remote_write, begin + 64, ~std::uint64_t{0}), refusal::outside_region);
    EXPECT_EQ(use(key, us, access::remote_write, begin + 191, 1), refusal::none);
}

TEST_F(KeyWindows, OfTheHardwareReachNoByteBeyondTheirRegion)
{
    constexpr std::uint64_t far = ~std::uint64_t{0} - 100;
    const std::uint64_t end = begin + memory.size();
    const struct {
        std::uint64_t address, bytes, good, good_bytes;
    } cases[] = {{end - 8, 100, end - 8, 8},
                 {begin - 100, 108, begin, 8},
                 {begin - 1, memory.size() + 2, begin, memory.size()},
                 {far, 1000, 0, 0},
                 {end, 1, 0, 0},
                 {begin - 8, 8, 0, 0},
                 {0, ~std::uint64_t{0}, begin, memory.size()}};
    for (const auto& [address, bytes, good, good_bytes] : cases) {
        const std::uint32_t window = make(window_type::type_2);
        window_bind what = bind_of(window);
        what.address = address;
        what.bytes = bytes;
        EXPECT_EQ(keys.bind(what, us), refusal::window_outside_region) << address;
        what.strict = false;
        ASSERT_EQ(keys.bind(what, us), refusal::none) << address;
        EXPECT_EQ(use(window + 1, us, access::remote_write, good == 0 ? address : good, good == 0 ? 1 : good_bytes),
                  good == 0 ? refusal::outside_region : refusal::none)
            << address;
        EXPECT_EQ(use(window + 1, us, access::remote_write, begin - 1, 1), refusal::outside_region);
        EXPECT_EQ(use(window + 1, us, access::remote_write, end, 1), refusal::outside_region);
        EXPECT_EQ(use(window + 1, us, access::remote_atomic, begin, 8), refusal::window_atomic);
    }
}

TEST_F(KeyWindows, ReachTheLastAddress)
{
    const std::uint64_t base = 0 - std::uint64_t{memory.size()};
    window_bind what = bind_of(make(window_type::type_2));
    what.region = add(access::local_write | access::bind, {}, base);
    what.address = base + 64;
    what.bytes = memory.size() - 64;
    ASSERT_EQ(keys.bind(what, us), refusal::none);
    located found;
    const auto resolves = [&](std::uint64_t address, std::uint64_t bytes) {
        return resolve(keys, {what.window + 1, address, bytes, access::remote_write, us.domain, us.number}, found);
    };
    EXPECT_EQ(resolves(base + 64, what.bytes), refusal::none);
    EXPECT_EQ(found.cpu, memory.data() + 64);
    EXPECT_EQ(resolves(~std::uint64_t{0}, 1), refusal::none);
    EXPECT_EQ(found.cpu, &memory.back());
    EXPECT_EQ(resolves(~std::uint64_t{0}, 2), refusal::outside_region);
    EXPECT_EQ(resolves(base + 63, 1), refusal::outside_region);
    EXPECT_EQ(resolves(0, 1), refusal::outside_region);
}

TEST_F(KeyWindows, AreBoundByTheRules)
{
    const window_user by = us;
    const std::uint32_t two = make(window_type::type_2), one = make(window_type::type_1);
    const auto refused = [&](refusal why, auto&& change) {
        window_bind what = bind_of(two);
        change(what);
        EXPECT_EQ(keys.bind(what, by), why);
        EXPECT_EQ(table.windows_of(region), 0u);
        EXPECT_FALSE(table.window(two).valid);
        EXPECT_FALSE(table.window(one).valid);
    };
    refused(refusal::not_a_window, [&](window_bind& what) { what.window = region; });
    refused(refusal::not_a_window, [&](window_bind& what) { what.window = 0xffffff00; });
    refused(refusal::not_a_window, [&](window_bind& what) { what.window = 0; });
    refused(refusal::wrong_window_type, [&](window_bind& what) { what.window = one; });
    refused(refusal::wrong_window_type, [&](window_bind& what) { what.type = window_type::type_1; });
    refused(refusal::window_without_bytes, [&](window_bind& what) { what.bytes = 0; });
    refused(refusal::window_region, [&](window_bind& what) { what.region ^= 1; });
    refused(refusal::window_region, [&](window_bind& what) { what.region = one; });
    refused(refusal::window_region, [&](window_bind& what) { what.region = 0; });
    refused(refusal::window_domain, [&](window_bind& what) { what.region = add(access::bind, strangers.domain); });
    refused(refusal::window_domain, [&](window_bind& what) { what.window = make(what.type, strangers.domain); });
    refused(refusal::no_bind, [&](window_bind& what) { what.region = add(access::local_write | remote); });
    refused(refusal::window_zero_based,
            [&](window_bind& what) { what.region = add(access::local_write | access::bind, {}, 0); });
    for (const access right : {access::remote_write, access::remote_atomic})
        refused(refusal::window_local_write, [&](window_bind& what) {
            what.region = add(access::bind);
            what.rights = right;
        });
    window_bind reads = bind_of(two);
    reads.region = add(access::bind);
    reads.rights = access::remote_read;
    EXPECT_EQ(keys.bind(reads, by), refusal::none) << "which changes nothing, so that it needs no local write";
    EXPECT_EQ(keys.bind(bind_of(two), by), refusal::window_not_free);
    EXPECT_EQ(keys.bind(bind_of(two + 1), by), refusal::window_not_free);
}

TEST_F(KeyWindows, OfType1AreBoundAgainByTheirPresentKey)
{
    const std::uint32_t window = make(window_type::type_1);
    EXPECT_EQ(keys.bind(bind_of(window ^ 0x80, window_type::type_1), us), refusal::none) << "a free window has no key";
    const std::uint32_t first = (window ^ 0x80) + 1;
    EXPECT_EQ(keys.bind(bind_of(window, window_type::type_1), us), refusal::wrong_window_key);
    EXPECT_EQ(keys.bind(bind_of(first, window_type::type_1), others), refusal::none);
    EXPECT_EQ(use(first, us), refusal::window_free);
    EXPECT_EQ(use(first + 1, us), refusal::none);
    EXPECT_EQ(table.windows_of(region), 1u);
    EXPECT_EQ(keys.invalidate(first + 1, us), refusal::wrong_window_type);
    window_bind nothing = bind_of(first + 1, window_type::type_1);
    nothing.bytes = 0;
    EXPECT_EQ(keys.bind(nothing, us), refusal::none);
    EXPECT_EQ(use(first + 1, us), refusal::window_free);
    EXPECT_EQ(table.windows_of(region), 0u);
}

TEST_F(KeyWindows, OfType2AreFreedByTheQueueThatHasBoundThem)
{
    const std::uint32_t key = bound(window_type::type_2, us);
    EXPECT_EQ(keys.invalidate(key ^ 1, us), refusal::wrong_window_key);
    EXPECT_EQ(keys.invalidate(key, others), refusal::window_of_other_queue);
    EXPECT_EQ(keys.invalidate(key, strangers), refusal::window_domain);
    EXPECT_EQ(keys.invalidate(region, us), refusal::not_a_window);
    EXPECT_EQ(use(key, us), refusal::none);
    EXPECT_EQ(table.window(key).user, us.number);
    EXPECT_EQ(keys.may_invalidate(key, us), refusal::none);
    EXPECT_EQ(keys.invalidate(key, us), refusal::none);
    EXPECT_EQ(use(key, us), refusal::window_free);
    EXPECT_EQ(keys.invalidate(key, us), refusal::window_free);
    EXPECT_EQ(table.window(key).user, 0u);
    EXPECT_EQ(keys.bind(bind_of(key - 1), us), refusal::none) << "with any variant";
}

TEST_F(KeyWindows, OfType2ABelongToANumberAlone)
{
    const window_user two_a{.number = window_user::next_number(0, true)};
    const window_user elsewhere{.number = two_a.number, .domain = strangers.domain};
    const std::uint32_t key = bound(window_type::type_2, two_a);
    EXPECT_EQ(use(key, two_a), refusal::none);
    EXPECT_EQ(use(key, elsewhere), refusal::none) << "the domain is not asked for";
    for (const window_user& other : {us, others, strangers})
        EXPECT_EQ(use(key, other), refusal::window_of_other_queue);
    EXPECT_EQ(use(key, entries, access::none), refusal::window_as_lkey);
    EXPECT_EQ(keys.invalidate(key, strangers), refusal::window_of_other_queue);
    EXPECT_EQ(keys.invalidate(key ^ 1, elsewhere), refusal::wrong_window_key);
    EXPECT_EQ(keys.bind(bind_of(key), two_a), refusal::window_not_free);
    EXPECT_EQ(keys.invalidate(key, elsewhere), refusal::none);
    EXPECT_EQ(keys.bind(bind_of(key), elsewhere), refusal::window_domain) << "of a bind it is";
    EXPECT_EQ(use(bound(window_type::type_1, two_a), elsewhere), refusal::other_domain) << "type 1 is as it was";
    const window_user two_b{.number = us.number, .domain = strangers.domain};
    const std::uint32_t of_2b = bound(window_type::type_2, us);
    EXPECT_EQ(use(of_2b, two_b), refusal::other_domain);
    EXPECT_EQ(keys.invalidate(of_2b, two_b), refusal::window_domain);
}

TEST_F(KeyWindows, OfType2ATellTheirQueuePairThatTheHostHasFreedThem)
{
    const window_user two_a{.number = window_user::next_number(0, true)};
    const std::uint32_t of_2b = bound(window_type::type_2, us), of_1 = bound(window_type::type_1, two_a);
    std::vector<std::uint32_t> windows;
    {
        held_windows held(table, two_a.number);
        for (int each = 0; each != 3; ++each, held.add())
            windows.push_back(bound(window_type::type_2, two_a));
        for (const std::uint32_t gone : {of_2b, of_1, make(window_type::type_2)}) {
            table.withdraw_window(gone);
            EXPECT_EQ(held.count(), 3u) << "this one does not count";
        }
        table.withdraw_window(windows[0]);
        EXPECT_EQ(held.count(), 2u);
        table.withdraw_window(windows[0]);
        EXPECT_EQ(held.count(), 2u) << "once";
        EXPECT_EQ(keys.invalidate(windows[1], two_a), refusal::none);
        EXPECT_EQ(held.count(), 2u) << "the queue pair counts what it does itself";
        held.remove();
        EXPECT_EQ(table.free_windows_of(region), 1u);
        EXPECT_EQ(held.count(), 0u);
        table.open_to_windows(region);
        windows.push_back(bound(window_type::type_2, two_a));
    }
    table.withdraw_window(windows.back()); // nobody counts any more
}

TEST_F(KeyWindows, HoldTheirRegion)
{
    const std::uint32_t key = bound(window_type::type_2, us), overlaps = bound(window_type::type_1, us);
    EXPECT_EQ(table.close_to_windows(region), 2u);
    EXPECT_EQ(keys.invalidate(key, us), refusal::none);
    EXPECT_EQ(table.close_to_windows(region), 1u);
    EXPECT_EQ(table.free_windows_of(region), 1u);
    EXPECT_EQ(use(overlaps, us), refusal::window_free);
    EXPECT_EQ(keys.bind(bind_of(key), us), refusal::window_region) << "it is closed";
    EXPECT_EQ(table.close_to_windows(region), 0u);
    table.open_to_windows(region);
    EXPECT_EQ(keys.bind(bind_of(key), us), refusal::none);
}

TEST_F(KeyWindows, ThatAreGoneGiveTheirIndexToWindowsOnly)
{
    std::vector<std::uint32_t> windows;
    for (int each = 0; each != 8; ++each)
        windows.push_back(bound(window_type::type_2, us));
    for (const std::uint32_t key : windows) {
        table.withdraw_window(key);
        EXPECT_EQ(use(key, us), refusal::window_free);
        EXPECT_EQ(keys.bind(bind_of(key), us), refusal::window_domain) << "until its index is given again";
        keys.forget(key);
        table.release_window(key);
        EXPECT_EQ(keys.bind(bind_of(key), us), refusal::not_a_window);
    }
    EXPECT_EQ(table.windows_of(region), 0u);
    for (int each = 0; each != 32; ++each) {
        const std::uint32_t key = add(access::local_write);
        for (const std::uint32_t window : windows)
            EXPECT_NE(key >> 8, window >> 8);
    }
    const std::uint32_t next = make(window_type::type_1);
    EXPECT_EQ(next >> 8, windows.front() >> 8);
    EXPECT_NE(next, windows.front()) << "the key of the window that is gone is not given again at once";
}

TEST_F(KeyWindows, SayWhetherTheirEndMustWaitForEngines)
{
    for (const window_type type : {window_type::type_1, window_type::type_2})
        EXPECT_FALSE(table.withdraw_window(make(type))) << "it was never bound";
    for (const window_type type : {window_type::type_1, window_type::type_2})
        EXPECT_TRUE(table.withdraw_window(bound(type, us))) << "a peer may use it now";
    const std::uint32_t two = bound(window_type::type_2, us);
    EXPECT_EQ(keys.invalidate(two, us), refusal::none);
    EXPECT_FALSE(table.withdraw_window(two)) << "only the engine that has freed it used it";
    const std::uint32_t one = bound(window_type::type_1, us);
    window_bind nothing = bind_of(one, window_type::type_1);
    nothing.bytes = 0;
    EXPECT_EQ(keys.bind(nothing, us), refusal::none);
    EXPECT_TRUE(table.withdraw_window(one)) << "another engine may be in an access by its key";
    for (const window_type type : {window_type::type_1, window_type::type_2}) {
        const std::uint32_t lost = bound(type, us), bound_again = bound(type, us);
        table.free_windows_of(region);
        EXPECT_EQ(table.window(lost).user, 0u);
        EXPECT_TRUE(table.withdraw_window(lost)) << "the host has freed it";
        table.open_to_windows(region);
        EXPECT_EQ(keys.bind(bind_of(bound_again, type), us), refusal::none);
        EXPECT_EQ(table.window(bound_again).user, type == window_type::type_2 ? us.number : 0);
        if (type == window_type::type_2) {
            EXPECT_EQ(keys.invalidate(bound_again + 1, us), refusal::none);
            EXPECT_FALSE(table.withdraw_window(bound_again));
        }
    }
}

TEST_F(KeyWindows, BelongToOneNic)
{
    nic_keys other("other", table);
    const std::uint32_t key = bound(window_type::type_2, us);
    other.grant(region, true);
    EXPECT_EQ(other.bind(bind_of(key), us), refusal::not_a_window);
    EXPECT_EQ(other.invalidate(key, us), refusal::not_a_window);
    key_view view;
    EXPECT_FALSE(other.read(key, view));
    const std::uint32_t foreign = other.add_window(window_type::type_2, {});
    window_bind what = bind_of(foreign);
    what.region = add(access::local_write | access::bind);
    EXPECT_EQ(other.bind(what, us), refusal::window_region) << "the region is not registered there";
}

} // namespace
} // namespace weftio::keys
