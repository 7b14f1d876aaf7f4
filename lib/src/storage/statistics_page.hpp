// What an engine of files counts, as it lies in memory that other processes read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weftio/file_result.hpp"

namespace weftio::storage {

/// Counts of one engine. It lies in a memfd named `statistics_name`, which readers find in /proc/PID/fd. `Word` is
/// std::atomic<std::uint64_t> for the engine, and std::uint64_t for a copy.
template <class Word>
struct basic_statistics_page {
    static constexpr std::size_t ways_count = static_cast<std::size_t>(file_way::count_);
    static constexpr std::size_t falls_count = static_cast<std::size_t>(file_fall::count_);
    static constexpr std::size_t gpus_count = 16, sizes_count = 40;
    static constexpr std::uint64_t format = 0x3130'5346'4f49'5457; ///< "WTIOFS01" as little-endian bytes

    /// Reads, writes and syncs, in this order.
    struct per_way {
        std::array<Word, 3> operations{}, errors{};
        std::array<Word, 2> bytes{};
        std::array<Word, 3> latency_ns{}, latency_max_ns{}; ///< from level 1 on; the sum, and the longest
    };
    struct per_gpu {
        Word operations{}, errors{}, bytes{};
    };
    /// What io_uring has registered: files and buffers now, a buffer of several rings several times; and refusals.
    struct of_rings {
        Word files{}, buffers{}, refused{};
    };

    /// What the program has registered, now.
    struct of_program {
        Word files{}, buffers{}, buffer_bytes{};
    };

    std::uint64_t is = format;
    std::uint64_t page_bytes = sizeof(basic_statistics_page);
    std::uint64_t process = 0; ///< in its own namespace; a child that inherits the memfd has another
    std::uint64_t level = 0;
    std::array<per_way, ways_count> ways{};
    std::array<Word, falls_count> falls{};
    of_rings rings{};
    of_program registered{};
    /// From level 2 on: reads and writes by way and size; number i counts [2^(i-1), 2^i) bytes.
    std::array<std::array<std::array<Word, sizes_count>, 2>, ways_count> sizes{};
    std::array<std::array<per_gpu, ways_count>, gpus_count> gpus{}; ///< at level 3
};

constexpr const char* statistics_name = "weftio-files-statistics";

using statistics_copy = basic_statistics_page<std::uint64_t>;

/// Copies of the pages of a process, one for each engine; none: it has no engine. Blocks for files.
/// @param root  folder that has `proc`
/// @throws weftio::error errc::not_found no such process; errc::permission_denied another user's
std::vector<statistics_copy> read_statistics(const std::string& root, std::uint32_t process);

/// The least size that bucket `number` of `sizes` counts.
constexpr std::uint64_t least_of_size(std::size_t number) noexcept
{
    return number == 0 ? 0 : std::uint64_t{1} << (number - 1);
}

} // namespace weftio::storage
