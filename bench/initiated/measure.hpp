// The parts of the benchmark. Each measures all columns of a row in turn, round by round.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "initiated/fabric.hpp"
#include "initiated/report.hpp"

namespace weftio::bench {

struct initiated_settings {
    std::string device = "cpu";
    std::string peer{};    ///< device of half of the ends of exchanges, and of the memory that streams write; or empty
    double seconds = 0.05; ///< for each figure in each round
    unsigned rounds = 3;
    std::string over = "loopback";      ///< or "wire"
    std::string payload = "cpu_device"; ///< or "device"
    std::uint32_t mtu = 1024;           ///< of paths, in bytes
    std::vector<std::uint32_t> engines{1, 2, 4, 8};
    std::vector<std::uint32_t> queues{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    std::vector<std::uint32_t> sizes{8, 32, 128, 512, 2048, 8192, 32768, 131072, 1048576};
    std::vector<std::uint32_t> proxies{1, 2, 4}; ///< threads
    std::vector<std::uint32_t> ends{4, 8, 16};   ///< of exchanges; powers of two
    std::uint32_t size_queues = 64;              ///< queue pairs of the rows by size
    std::uint32_t batch = 32;                    ///< messages of one commit
    std::vector<std::string> only{};             ///< parts; empty: all
};

/// Bytes a second by message size.
void bandwidth_by_size(const initiated_settings& settings, fabric& fabric, report& report);
/// Messages of 8 bytes a second by the number of queue pairs, in the entry and from memory.
void rate_by_queues(const initiated_settings& settings, fabric& fabric, report& report);

/// Microseconds of an all-to-all by the number of ends: all pieces together have 1 KiB, or each has 64 B.
void all_to_all_in_all(const initiated_settings& settings, fabric& fabric, report& report);
void all_to_all_a_pair(const initiated_settings& settings, fabric& fabric, report& report);
/// Microseconds of a transposition, by the number of ends.
void transpositions(const initiated_settings& settings, fabric& fabric, report& report);

/// Memory that the parts need.
std::size_t bytes_of_streams(const initiated_settings& settings);
std::size_t bytes_of_exchanges(const initiated_settings& settings);

} // namespace weftio::bench
