// Regions and ports: who is told of whom, and whom that keeps waiting.
#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "software_nic.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

class Region : public testing::Test {
 protected:
    device cpu = device::open("cpu");
    port null = port::open("null", {.mode = engine_mode::inline_worker});
    memory room = cpu.allocate(4096, memory_kind::cpu_device);
    keys::key_table& table = core::undying<keys::key_table>();
};

TEST_F(Region, OfAdoptedMemoryHasNoRightThatTheMemoryLacks)
{
    static const char message[] = "sent from where it lies, and never written";
    const memory constant = cpu.adopt(const_cast<char*>(message), sizeof message);
    EXPECT_THAT(error_of([&] { memory_region(null, constant); }).what(),
                testing::HasSubstr("are read-only, but rights have access::local_write; register them with"));
    const memory_region may_be_sent(null, constant, {.rights = access::none});
    EXPECT_NE(may_be_sent.lkey(), 0u);
}

TEST(AdoptedMemory, CanBeReadAllOfIt)
{
    const device cpu = device::open("cpu");
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* pages =
        static_cast<std::byte*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(pages + 2 * page, page, PROT_NONE), 0);
    ASSERT_EQ(mprotect(pages + page, page, PROT_READ), 0); // two mappings side by side
    EXPECT_EQ(cpu.adopt(pages, 2 * page).bytes(), 2 * page);
    for (const auto& range : {std::pair<std::byte*, std::size_t>{pages, 2 * page + 1},
                              {pages + 2 * page, 1},
                              {pages, std::numeric_limits<std::size_t>::max()},
                              {reinterpret_cast<std::byte*>(8), 8}}) {
        const error refused = error_of([&] { (void)cpu.adopt(range.first, range.second); });
        EXPECT_EQ(refused.code(), errc::not_reachable);
        EXPECT_THAT(refused.what(), testing::HasSubstr("this process cannot read them"));
    }
    munmap(pages, 3 * page);
}

TEST_F(Region, IsMadeWithoutAnEngineStandingStillForIt)
{
    std::optional<memory_region> region;
    software_nic(null).engines().between_all_turns(
        [&] { region.emplace(null, room); }); // which nothing else could stop
    EXPECT_TRUE(software_nic(null).keys().find(region->lkey()));
}

TEST_F(Region, TakesItsKeyWithIt)
{
    const std::uint32_t before = table.in_use();
    std::optional<memory_region> region(std::in_place, null, room);
    const std::uint32_t key = region->lkey();
    EXPECT_EQ(table.in_use(), before + 1);
    EXPECT_EQ(software_nic(null).keys().find(key)->entry.bytes, room.bytes());
    region.reset();
    EXPECT_EQ(table.in_use(), before);
    EXPECT_FALSE(software_nic(null).keys().find(key));
}

TEST_F(Region, OfAReceiveQueueTakesItsKeyWithItInAReset)
{
    const std::uint32_t before = table.in_use();
    {
        eth_rxq queue(null, cpu, {.packets = 64});
        for (int round = 0; round < 3; ++round)
            queue.reset();
        EXPECT_EQ(table.in_use(), before + 1);
    }
    EXPECT_EQ(table.in_use(), before);
}

TEST_F(Region, IsUnknownAtPortsThatItWasNotRegisteredWith)
{
    port other = port::open("null", {.mode = engine_mode::inline_worker});
    memory_region region(null, room);
    EXPECT_TRUE(software_nic(null).keys().find(region.lkey()));
    EXPECT_FALSE(software_nic(other).keys().find(region.lkey()));
}

TEST_F(Region, HasOneKeyAtSeveralPorts)
{
    port other = port::open("null", {.mode = engine_mode::inline_worker});
    std::optional<memory_region> region(std::in_place, null, room);
    const std::uint32_t key = region->lkey();
    region->register_with(other);
    EXPECT_EQ(region->lkey(), key);
    EXPECT_TRUE(software_nic(null).keys().find(key));
    EXPECT_EQ(software_nic(other).keys().find(key)->entry, software_nic(null).keys().find(key)->entry);
    region->register_with(other); // again: nothing
    region.reset();
    EXPECT_FALSE(software_nic(null).keys().find(key));
    EXPECT_FALSE(software_nic(other).keys().find(key));
}

TEST_F(Region, NeedsNoPort)
{
    std::optional<memory_region> region(std::in_place, room);
    const std::uint32_t key = region->lkey();
    EXPECT_NE(key, 0u);
    EXPECT_EQ(region->bytes(), 4096u);
    EXPECT_EQ(region->device_address(), room.device_address());
    EXPECT_FALSE(software_nic(null).keys().find(key));
    region->register_with(null);
    EXPECT_TRUE(software_nic(null).keys().find(key));
    EXPECT_EQ(error_of([] { memory_region{memory{}}; }).code(), errc::invalid_argument);
}

TEST_F(Region, KeepsThePortsThatItWasRegisteredWith)
{
    const std::uint64_t before = table.in_use();
    std::optional<memory_region> region(std::in_place, room);
    {
        port passing = port::open("null", {.mode = engine_mode::inline_worker});
        region->register_with(passing);
    }
    region.reset();
    EXPECT_EQ(table.in_use(), before);
}

TEST_F(Region, HasTheRightsAndTheDomainThatItWasGiven)
{
    const protection_domain domain = protection_domain::make();
    const memory_region plain(null, room),
        other(null, room, {.rights = access::local_write | access::remote_atomic, .domain = domain});
    const keys::key_entry first = software_nic(null).keys().find(plain.lkey())->entry,
                          second = software_nic(null).keys().find(other.lkey())->entry;
    EXPECT_EQ(first.rights, access::local_write);
    EXPECT_EQ(first.domain, protection_domain());
    EXPECT_EQ(second.rights & access::remote_atomic, access::remote_atomic);
    EXPECT_EQ(second.rights & access::remote_write, access::none);
    EXPECT_EQ(second.domain, domain);
}

TEST_F(Region, IsNamedByItsIova)
{
    for (const std::uint64_t iova : {std::uint64_t{0}, std::uint64_t{0x123456789}, std::uint64_t(-4096)}) {
        const memory_region region(null, room, {.rights = access::local_write | access::remote_read, .iova = iova});
        EXPECT_EQ(region.iova(), iova);
        EXPECT_EQ(region.device_address(), room.device_address());
        const keys::key_entry entry = software_nic(null).keys().find(region.lkey())->entry;
        EXPECT_EQ(entry.base, iova);
        EXPECT_EQ(entry.base + entry.to_device, reinterpret_cast<std::uint64_t>(room.device_address()));
        EXPECT_EQ(remote_region::of(region, 16, 8).address, iova + 16);
        EXPECT_EQ(reinterpret_cast<std::uint64_t>(region.buffer(16).address), iova + 16);
        EXPECT_THAT(error_of([&] { buf_arr(region, cpu, {.count = 1, .buffer_bytes = 64}); }).what(),
                    testing::HasSubstr("leave region_options::iova out"));
    }
    EXPECT_THAT(error_of([&] { memory_region(null, room, {.iova = std::uint64_t(-4095)}); }).what(),
                testing::HasSubstr("exceed the address space"));
    const memory_region plain(null, room);
    EXPECT_EQ(plain.iova(), reinterpret_cast<std::uint64_t>(room.device_address()));
}

TEST_F(Region, ChangesUnderAnotherVariantOfItsKey)
{
    port other = port::open("null", {.mode = engine_mode::inline_worker});
    memory_region region(null, room);
    region.register_with(other);
    const std::uint32_t before = region.lkey();
    const std::optional<keys::key_view> found = software_nic(null).keys().find(before);
    const protection_domain domain = protection_domain::make();
    const std::uint32_t now =
        region.rereg({.rights = access::local_write | access::remote_read, .domain = domain}, 1024, 512);
    EXPECT_EQ(now, region.lkey());
    EXPECT_EQ(now >> 8, before >> 8);
    EXPECT_NE(now, before);
    EXPECT_EQ(region.bytes(), 512u);
    EXPECT_EQ(region.rights(), access::local_write | access::remote_read);
    EXPECT_EQ(region.device_address(), static_cast<std::byte*>(room.device_address()) + 1024);
    EXPECT_EQ(region.iova(), reinterpret_cast<std::uint64_t>(region.device_address()));
    for (const port* at : {&null, &other}) {
        EXPECT_FALSE(software_nic(*at).keys().find(before));
        EXPECT_FALSE(software_nic(*at).keys().still({before, found->generation}));
        const keys::key_entry entry = software_nic(*at).keys().find(now)->entry;
        EXPECT_EQ(entry.cpu, static_cast<std::byte*>(room.cpu_address()) + 1024);
        EXPECT_EQ(entry.bytes, 512u);
        EXPECT_EQ(entry.domain, domain);
        EXPECT_EQ(entry.rights, access::local_write | access::remote_read);
    }
    const buf_arr array(region, cpu, {.count = 2, .buffer_bytes = 64, .offset_bytes = 64});
    EXPECT_EQ(array.cpu_address(1), static_cast<std::byte*>(room.cpu_address()) + 1024 + 128);
    EXPECT_EQ(weftio_dev_buf_get(array.handle(), 1).address, array.cpu_address(1));
    EXPECT_NE(region.rereg({.iova = 0}), now);
    EXPECT_EQ(region.bytes(), room.bytes());
    EXPECT_EQ(software_nic(other).keys().find(region.lkey())->entry.base, 0u);
}

TEST_F(Region, TakesOtherMemoryUnderTheSameKey)
{
    port other = port::open("null", {.mode = engine_mode::inline_worker});
    const memory next = cpu.allocate(8192, memory_kind::cpu_device, 64);
    memory_region region(null, room);
    region.register_with(other);
    const std::uint32_t key = region.lkey();
    const std::optional<keys::key_view> found = software_nic(null).keys().find(key);
    region.replace(next, {.rights = access::local_write | access::remote_write, .iova = 64});
    EXPECT_EQ(region.lkey(), key);
    EXPECT_EQ(region.bytes(), next.bytes());
    EXPECT_EQ(region.device_address(), next.device_address());
    for (const port* at : {&null, &other}) {
        EXPECT_FALSE(software_nic(*at).keys().still({key, found->generation}));
        const keys::key_entry entry = software_nic(*at).keys().find(key)->entry;
        EXPECT_EQ(entry.cpu, next.cpu_address());
        EXPECT_EQ(entry.bytes, next.bytes());
        EXPECT_EQ(entry.base, 64u);
        EXPECT_EQ(entry.rights, access::local_write | access::remote_write);
    }
    EXPECT_EQ(error_of([&] { region.replace(room, {.rights = access::remote_write}); }).code(), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { region.replace({}, {}); }).code(), errc::invalid_argument);
    EXPECT_EQ(region.device_address(), next.device_address());
}

TEST_F(Region, IsUnchangedByAChangeThatIsRefused)
{
    memory_region region(null, room);
    const std::uint32_t before = region.lkey();
    for (const auto& [options, offset, bytes] :
         {std::tuple<region_options, std::size_t, std::size_t>{{.rights = access::remote_write}, 0, 0},
          {{}, room.bytes(), 0},
          {{}, 1, room.bytes()},
          {{}, std::size_t(-1), 2},
          {{.iova = std::uint64_t(-8)}, 0, 9}})
        EXPECT_EQ(error_of([&, &to = options, at = offset, count = bytes] { region.rereg(to, at, count); }).code(),
                  errc::invalid_argument)
            << offset;
    EXPECT_EQ(region.lkey(), before);
    EXPECT_EQ(region.bytes(), room.bytes());
    EXPECT_TRUE(software_nic(null).keys().find(before));
    region.rereg({.iova = std::uint64_t(-8)}, 0, 8);
    EXPECT_EQ(region.iova(), std::uint64_t(-8));
}

TEST_F(Region, HasItsFirstKeyAgainAfterAllVariants)
{
    memory_region region(null, room);
    const std::uint32_t first = region.lkey(), taken = table.in_use();
    std::set<std::uint32_t> seen{first};
    for (unsigned each = 1; each < 256; ++each)
        EXPECT_TRUE(seen.insert(region.rereg({})).second) << each;
    EXPECT_EQ(region.rereg({}), first);
    EXPECT_EQ(table.in_use(), taken);
}

TEST_F(Region, IsRefusedRightsThatContradictEachOther)
{
    const std::uint32_t before = table.in_use();
    for (const access rights :
         {access::remote_write, access::remote_atomic, access::remote_read | access::remote_write})
        for (const bool with_port : {false, true}) {
            const error refused = error_of([&] {
                with_port ? memory_region(null, room, {.rights = rights}) : memory_region(room, {.rights = rights});
            });
            EXPECT_EQ(refused.code(), errc::invalid_argument);
            EXPECT_NE(std::string(refused.what()).find("add access::local_write"), std::string::npos) << refused.what();
        }
    EXPECT_EQ(error_of([&] { memory_region(room, {.rights = static_cast<access>(0x20)}); }).code(),
              errc::invalid_argument);
    EXPECT_EQ(table.in_use(), before);
    for (const access rights : {access::none, access::remote_read, access::local_write | access::remote_write,
                                access::local_write | access::remote_atomic})
        EXPECT_NO_THROW(memory_region(null, room, {.rights = rights}));
}

TEST(ProtectionDomain, IsEqualToItsCopiesOnly)
{
    const protection_domain one = protection_domain::make(), other = protection_domain::make(), copy = one;
    EXPECT_EQ(one, copy);
    EXPECT_NE(one, other);
    EXPECT_NE(one, protection_domain());
    EXPECT_EQ(protection_domain(), protection_domain());
}

TEST_F(Region, HasSixtyFourPortsAtMost)
{
    std::vector<std::unique_ptr<keys::nic_keys>> others;
    for (;;)
        try {
            others.push_back(std::make_unique<keys::nic_keys>("other"));
        } catch (const error&) {
            break;
        }
    EXPECT_EQ(others.size(), 63u);
    const error refused = error_of([] { port::open("null"); });
    EXPECT_EQ(refused.code(), errc::out_of_memory);
    EXPECT_STREQ(refused.what(),
                 "weftio: port null: this process has 64 ports and DMA engines, the maximum; close one first");
    others.pop_back();
    EXPECT_NO_THROW(port::open("null"));
    EXPECT_NO_THROW(port::open("null")) << "one that closes gives its number back";
}

} // namespace
} // namespace weftio::test
