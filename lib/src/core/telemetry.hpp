// Rows that dpdk-telemetry.py shows: one for each object, under /weftio/KIND.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct rte_tel_data;

namespace weftio::core {

/// Puts a number under `name`.
void put(rte_tel_data* dict, const char* name, std::uint64_t value);

/// Puts a nested dictionary, filled by `fill`, under `name`; nothing if there is no memory for it.
void nest(rte_tel_data* dict, const std::string& name, const std::function<void(rte_tel_data*)>& fill);

/// One page of many rows, because DPDK's telemetry replies end at 16 KiB: the rows numbered `first` to `first + count
/// - 1`. Then "total", the number of all rows, and, if rows follow, "next", the first number of the next page.
class telemetry_page {
 public:
    static constexpr std::uint64_t numbers = 24; ///< 24 of the longest rows, with all digits used, take 14 KiB

    /// @param count  rows of the page, fewer where they are longer
    telemetry_page(rte_tel_data* dict, std::uint64_t first, std::uint64_t count = numbers)
        : dict_(dict), first_(first), count_(count)
    {}
    /// Adds a row. Rows may come in any order.
    void row(std::uint64_t number, const std::function<void(rte_tel_data*)>& fill);
    /// Writes "total" and "next". Call it after the last row.
    void end();

 private:
    rte_tel_data* dict_;
    std::uint64_t first_, count_, total_ = 0;
    std::uint64_t next_ = UINT64_MAX; ///< the lowest number behind this page
};

/// Parses "3,24" or "3". Returns nothing for any other text, for nullptr, and for more than `most` numbers.
std::vector<std::uint64_t> telemetry_numbers(const char* parameters, std::size_t most);

/// Objects with rows that belong to no port.
enum class telemetry_kind { kernel, semaphore, registration_cache, file, file_sizes, file_gpus };

/// A row from construction to destruction, under a number that no later row of its kind gets.
///
/// - Threads: any. `fill` puts values into a dictionary; DPDK's telemetry thread calls it, never after the destructor.
class telemetry_row {
 public:
    telemetry_row(telemetry_kind kind, std::function<void(rte_tel_data*)> fill);
    telemetry_row(const telemetry_row&) = delete;
    telemetry_row& operator=(const telemetry_row&) = delete;
    ~telemetry_row();

 private:
    const telemetry_kind kind_;
    unsigned number_;
};

} // namespace weftio::core
