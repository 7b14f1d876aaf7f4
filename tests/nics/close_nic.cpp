// close_nic PORT: opens and closes a port on which packets arrive without an end, and looks whether its NIC goes on
// writing. For nics.sh: behind an IOMMU what the NIC writes is a fault, without one all hugepages are looked at.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../patience.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t page_bytes = 2 << 20;
constexpr auto pattern = std::byte{0xa5};

/// All hugepages that nobody has, a pattern in each byte.
std::vector<std::span<std::byte>> take_hugepages()
{
    std::vector<std::span<std::byte>> pages;
    for (;;) {
        void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
        if (page == MAP_FAILED)
            return pages;
        pages.emplace_back(static_cast<std::byte*>(page), page_bytes);
        std::fill(pages.back().begin(), pages.back().end(), pattern);
    }
}

bool is_untouched(std::span<const std::byte> page)
{
    return std::all_of(page.begin(), page.end(), [](std::byte byte) { return byte == pattern; });
}

/// Opens, drops what arrives, and closes. Returns the counts.
weftio::port_counters receive(const std::string& spec, std::uint64_t packets)
{
    auto port = weftio::port::open(spec);
    const weftio::flow everything(port, {}, weftio::flow_action::drop()); // without a rule nothing is received
    weftio::test::eventually([&] { return port.counters().received >= packets; });
    return port.counters();
}

int run(const std::string& spec)
{
    for (int round = 0; round < 2; ++round) {
        const weftio::port_counters counters = receive(spec, 10);
        auto pages = take_hugepages();
        std::this_thread::sleep_for(2s); // packets go on arriving at the NIC
        const auto touched = std::count_if(pages.begin(), pages.end(), [](auto page) { return !is_untouched(page); });
        fmt::print("received {}, delivered {}, dropped {}; {} hugepages, {} written to\n", counters.received,
                   counters.delivered, counters.dropped_total(), pages.size(), touched);
        for (auto page : pages)
            munmap(page.data(), page.size());
        if (counters.received < 10 || counters.received != counters.dropped_total() || touched != 0)
            return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
try {
    return run(argc > 1 ? argv[1] : "");
} catch (const weftio::error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 4;
}
