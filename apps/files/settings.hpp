// The section CUFILE CONFIGURATION.
#pragma once

#include <vector>

#include "report.hpp"
#include "storage/configuration.hpp"
#include "storage/recognition.hpp"

namespace weftio::files {

/// Every key with its value, then what the file says to no effect. Mounts of a table have the number of their device.
section settings(const storage::configuration& from, const std::vector<storage::place_facts>& places);

} // namespace weftio::files
