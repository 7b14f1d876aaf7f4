// registration_cache for memory that the driver maps at reserved addresses, cuMemMap(), and for pools. A stand-in is
// the driver.
#include <optional>

#include <gmock/gmock.h>

#include "nic/soft/dma/soft_dma.hpp"
#include "stand_in.hpp"
#include "unit/device/fixture.hpp"
#include "unit/registrations/pages.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {
namespace {

constexpr access peer_writes = access::local_write | access::remote_write;
constexpr std::size_t part_bytes = std::size_t{2} << 20;

void make_current()
{
    void* context = nullptr;
    driver().retain(&context, 0);
    driver().set_current(context);
}

/// Addresses for four mappings.
class mapped_range {
 public:
    mapped_range()
    {
        make_current();
        EXPECT_EQ(driver().reserve(&at_, 4 * part_bytes, 0, nullptr, 0), 0);
    }
    mapped_range(const mapped_range&) = delete;
    mapped_range& operator=(const mapped_range&) = delete;
    ~mapped_range() { EXPECT_EQ(driver().end_reservation(at_, 4 * part_bytes), 0); }

    std::byte* at(std::size_t part) const { return at_ + part * part_bytes; }
    static unsigned long long make(std::size_t parts = 1)
    {
        unsigned long long handle = 0;
        EXPECT_EQ(driver().create(&handle, parts * part_bytes, nullptr, 0), 0);
        return handle;
    }
    void map(std::size_t part, unsigned long long what = make(), std::size_t parts = 1) const
    {
        EXPECT_EQ(driver().map(at(part), parts * part_bytes, 0, what, 0), 0);
        EXPECT_EQ(driver().allow(at(part), parts * part_bytes, nullptr, 0), 0);
    }
    void unmap(std::size_t part, std::size_t parts = 1) const
    {
        EXPECT_EQ(driver().unmap(at(part), parts * part_bytes), 0);
    }

 private:
    std::byte* at_ = nullptr;
};

class GpuMappings : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        driver().begin_anew();
        gpu.emplace(device::open("cuda:0"));
        cache.register_with(engine);
        cache.add_memory_of(*gpu);
    }
    std::optional<keys::key_entry> entry(std::uint32_t key) const
    {
        auto& dma = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
        const auto found = dma.keys().find(key);
        return found ? std::optional(found->entry) : std::nullopt;
    }

    std::optional<device> gpu;
    dma_engine engine;
    registration_cache cache;
};

} // namespace

TEST_F(GpuMappings, AreRegisteredByThemselves)
{
    const mapped_range range;
    range.map(0);
    range.map(1);
    const registration one = cache.get(range.at(0) + 5, 100), other = cache.get(range.at(1), part_bytes);
    EXPECT_TRUE(is_exactly(entry(one.lkey()), range.at(0), part_bytes, access::local_write));
    EXPECT_TRUE(is_exactly(entry(other.lkey()), range.at(1), part_bytes, access::local_write));
    EXPECT_EQ(cache.get(range.at(1), 1).lkey(), other.lkey());
    EXPECT_EQ(cache.counters().misses, 2u);
    EXPECT_THAT(error_of([&] { (void)cache.get(range.at(0), 2 * part_bytes); }).what(),
                testing::HasSubstr("what follows is another allocation"));
    EXPECT_THAT(error_of([&] { (void)cache.get(range.at(1), 2 * part_bytes); }).what(),
                testing::HasSubstr("what follows is free"));
    range.unmap(0);
    range.unmap(1);
}

TEST_F(GpuMappings, EndWhenTheyAreUnmapped)
{
    const mapped_range range;
    range.map(0);
    range.map(1);
    const registration gone = cache.get(range.at(0), 100, peer_writes), stays = cache.get(range.at(1), 1);
    range.unmap(0);
    EXPECT_EQ(error_of([&] { (void)cache.get(range.at(0), 100); }).code(), errc::not_reachable);
    EXPECT_FALSE(entry(gone.rkey()));
    EXPECT_FALSE(entry(gone.lkey()));
    EXPECT_EQ(cache.get(range.at(1), 1).lkey(), stays.lkey());
    range.unmap(1);
}

/// The driver's buffer ID is still the same.
TEST_F(GpuMappings, EndWhenOtherMemoryIsMappedThere)
{
    const mapped_range range;
    range.map(0);
    const registration held = cache.get(range.at(0), 100, peer_writes);
    range.unmap(0);
    range.map(0);
    const registration fresh = cache.get(range.at(0), 100, peer_writes);
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_TRUE(entry(fresh.rkey()));
    range.unmap(0);
}

TEST_F(GpuMappings, EndWhenOtherMemoryIsMappedAroundThem)
{
    const mapped_range range;
    range.map(1);
    const registration held = cache.get(range.at(1), 100, peer_writes);
    range.unmap(1);
    range.map(0, mapped_range::make(2), 2);
    EXPECT_TRUE(is_exactly(entry(cache.get(range.at(0), 1).lkey()), range.at(0), 2 * part_bytes, access::local_write));
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(held.lkey()));
    range.unmap(0, 2);
}

TEST_F(GpuMappings, StayWhenTheSameMemoryIsMappedAgain)
{
    const mapped_range range;
    const unsigned long long memory = mapped_range::make(2);
    range.map(0, memory, 2);
    const registration held = cache.get(range.at(0), 100, peer_writes);
    range.unmap(0, 2);
    range.map(0, memory, 2);
    EXPECT_EQ(cache.get(range.at(0), 100, peer_writes).rkey(), held.rkey());
    range.unmap(0, 2);
    range.map(0, memory, 1);
    EXPECT_NE(cache.get(range.at(0), 100, peer_writes).rkey(), held.rkey()) << "a part of it";
    EXPECT_FALSE(entry(held.lkey()));
    range.unmap(0);
}

TEST_F(GpuMappings, OfPoolsAreRefused)
{
    make_current();
    std::byte* memory = nullptr;
    ASSERT_EQ(driver().allocate_of_pool(&memory, part_bytes, nullptr), 0);
    const error refused = error_of([&] { (void)cache.get(memory, 1); });
    EXPECT_EQ(refused.code(), errc::not_supported);
    EXPECT_THAT(refused.what(), testing::HasSubstr("is of a pool"));
    EXPECT_EQ(driver().release(memory), 0);
}

} // namespace weftio::test
