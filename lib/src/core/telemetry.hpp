// Rows that dpdk-telemetry.py shows: one an object, under /weftio/KIND.
#pragma once

#include <functional>
#include <string>

struct rte_tel_data;

namespace weftio::detail {

/// Puts a dictionary of its own, filled by `fill`, under `name`; nothing when there is no memory for one.
void nest(rte_tel_data* dict, const std::string& name, const std::function<void(rte_tel_data*)>& fill);

/// What there can be several of that belongs to no port.
enum class telemetry_kind { kernel, semaphore };

/// A row from construction to destruction, under a number of its own that no later row of the process gets.
///
/// - Threads: any. `fill` puts values into a dictionary; it is called by DPDK's telemetry thread, never after the destructor.
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
