#include "../../../lib/cufile/bar1.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weftio::test {

namespace {

/// A folder like /sys/bus/pci/devices.
class CufileBar1 : public testing::Test {
 protected:
    CufileBar1() { std::filesystem::create_directories(folder); }
    ~CufileBar1() override { std::filesystem::remove_all(folder); }

    void add(const char* address, const char* vendor, const char* kind, const char* resource) const
    {
        std::filesystem::create_directory(folder / address);
        std::ofstream(folder / address / "vendor") << vendor << '\n';
        std::ofstream(folder / address / "class") << kind << '\n';
        std::ofstream(folder / address / "resource") << resource;
    }

    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("weftio-bar1-" + std::to_string(getpid()));
};

constexpr const char* bars = "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n"
                             "0x0000380000000000 0x00003803ffffffff 0x000000000014220c\n";

TEST_F(CufileBar1, IsThatOfTheGpuInOrderOfAddresses)
{
    add("0000:c1:00.0", "0x10de", "0x030200",
        "0x00000000a0000000 0x00000000a0ffffff 0x0\n0x0000380000000000 0x000038000fffffff 0x0\n");
    add("0000:41:00.0", "0x10de", "0x030200", bars);
    add("0000:40:00.0", "0x10de", "0x020000", bars); // a NIC
    add("0000:3f:00.0", "0x1002", "0x030000", bars); // of another vendor
    EXPECT_EQ(cufile::bar1_bytes(folder, 0), std::uint64_t{16} << 30);
    EXPECT_EQ(cufile::bar1_bytes(folder, 1), std::uint64_t{256} << 20);
    EXPECT_EQ(cufile::bar1_bytes(folder, 2), std::nullopt);
}

TEST_F(CufileBar1, IsTheLargestBecauseABarMayTakeTwoLines)
{
    add("0000:41:00.0", "0x10de", "0x030200",
        "0x0000004800000000 0x0000004800ffffff 0x14220c\n0x0 0x0 0x0\n"
        "0x0000002000000000 0x0000003fffffffff 0x14220c\n0x0 0x0 0x0\n0x0000004000000000 0x0000004001ffffff "
        "0x14220c\n");
    EXPECT_EQ(cufile::bar1_bytes(folder, 0), std::uint64_t{128} << 30);
}

TEST_F(CufileBar1, IsNoneWhereThereIsNoBar)
{
    add("0000:41:00.0", "0x10de", "0x030200", "0x0 0x0 0x0\n0x0 0x0 0x0\n");
    EXPECT_EQ(cufile::bar1_bytes(folder, 0), std::nullopt);
    EXPECT_EQ(cufile::bar1_bytes(folder / "absent", 0), std::nullopt);
}

} // namespace

} // namespace weftio::test
