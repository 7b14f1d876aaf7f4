// Rows that dpdk-telemetry.py shows: one an object, under /weftio/KIND.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct rte_tel_data;

namespace weftio::detail {

/// Puts a number under `name`.
void put(rte_tel_data* dict, const char* name, std::uint64_t value);

/// Puts a dictionary of its own, filled by `fill`, under `name`; nothing when there is no memory for one.
void nest(rte_tel_data* dict, const std::string& name, const std::function<void(rte_tel_data*)>& fill);

/// Some of many rows, as replies of DPDK's telemetry end at 16 KiB: those numbered from `first` on, for so many
/// numbers. Then "total", the number of rows, and, when some are left, "next": the first number of the next page.
class telemetry_page {
 public:
    static constexpr std::uint64_t numbers = 24; ///< of the longest rows there are, all digits used: 14 KiB

    telemetry_page(rte_tel_data* dict, std::uint64_t first) : dict_(dict), first_(first) {}
    /// One more row; in any order.
    void row(std::uint64_t number, const std::function<void(rte_tel_data*)>& fill);
    /// Writes "total" and "next", behind the last row.
    void end();

 private:
    rte_tel_data* dict_;
    std::uint64_t first_, total_ = 0;
    std::uint64_t next_ = UINT64_MAX; ///< of the rows behind this page the first
};

/// The numbers of "3,24" or "3"; nothing of anything else, nullptr included, and of more than `most`.
std::vector<std::uint64_t> telemetry_numbers(const char* parameters, std::size_t most);

/// What there can be several of that belongs to no port.
enum class telemetry_kind { kernel, semaphore };

/// A row from construction to destruction, under a number of its own that no later row of the process gets.
///
/// - Threads: any. `fill` puts values into a dictionary; it is called by DPDK's telemetry thread, never after the
///   destructor.
class telemetry_row {
 public:
    telemetry_row(telemetry_kind kind, std::function<void(rte_tel_data*)> fill);
    telemetry_row(const telemetry_row&) = delete;
    telemetry_row& operator=(const telemetry_row&) = delete;
    ~telemetry_row();

 private:
    unsigned number_;
};

} // namespace weftio::detail
