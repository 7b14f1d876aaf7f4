// Memory of the CPU device that comes and goes in any order: blocks share pieces of memory, and never a byte.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "weftio/device.hpp"

namespace weftio {
namespace {

std::size_t mapped_bytes()
{
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4096;
}

bool holds_only(const memory& block, unsigned char value)
{
    const auto* bytes = static_cast<const unsigned char*>(block.cpu_address());
    return std::all_of(bytes, bytes + block.bytes(), [&](unsigned char byte) { return byte == value; });
}

TEST(ManyBlocks, AreZeroedAlignedAndApartWhateverComesAndGoes)
{
    device cpu = device::open("cpu");
    std::mt19937 random(2026);
    auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(1, most)(random); };
    std::map<unsigned char, memory> blocks;
    for (int round = 0; round < 3000; ++round) {
        const auto name = static_cast<unsigned char>(up_to(60));
        if (auto found = blocks.find(name); found != blocks.end()) {
            ASSERT_TRUE(holds_only(found->second, name)) << "round " << round;
            blocks.erase(found);
            continue;
        }
        const std::size_t alignment = std::size_t{1} << (up_to(22) - 1);
        memory block = cpu.allocate(up_to(round % 10 == 0 ? 3 << 20 : 20000), memory_kind::cpu_device, alignment);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block.cpu_address()) % alignment, 0u);
        ASSERT_TRUE(holds_only(block, 0)) << "round " << round;
        std::memset(block.cpu_address(), name, block.bytes());
        blocks.emplace(name, std::move(block));
    }
}

TEST(ManyBlocks, ShareAPageWhereTheirAlignmentIsLess)
{
    device cpu = device::open("cpu");
    const memory page = cpu.allocate(1, memory_kind::cpu_device);
    std::vector<memory> blocks;
    for (int block = 0; block < 32; ++block)
        blocks.push_back(cpu.allocate(64, memory_kind::cpu_device, 64));
    const auto* const begin = static_cast<const std::byte*>(page.cpu_address());
    for (std::size_t at = 0; at < blocks.size(); ++at)
        EXPECT_EQ(static_cast<const std::byte*>(blocks[at].cpu_address()) - begin,
                  static_cast<std::ptrdiff_t>(4096 + 128 * at));
    EXPECT_EQ(static_cast<const std::byte*>(cpu.allocate(1, memory_kind::cpu_device).cpu_address()) - begin, 8192);
}

TEST(ManyBlocks, GiveTheirMemoryBack)
{
    device cpu = device::open("cpu");
    memory kept = cpu.allocate(64, memory_kind::cpu_device);
    const std::size_t before = mapped_bytes();
    for (int round = 0; round < 10; ++round) {
        std::vector<memory> blocks;
        for (int block = 0; block < 50; ++block)
            blocks.push_back(cpu.allocate(3 << 20, memory_kind::cpu_device));
    }
    EXPECT_LT(mapped_bytes(), before + (200 << 20));
}

} // namespace
} // namespace weftio
