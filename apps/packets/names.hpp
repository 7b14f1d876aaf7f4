// Names of what kernels count, in the order of struct packets_report.
#pragma once

#include <vector>

#include "site.hpp"

namespace weftio::packets {

/// One name for each word of a packets_report but the answer times.
std::vector<counter_name> counter_names();

} // namespace weftio::packets
