// `weftio-files --stats`: the counts of a running program.
#pragma once

#include <string>
#include <vector>

#include "storage/statistics_page.hpp"

namespace weftio::files {

/// A table for each engine: ways and falls; from level 2 on sizes, at level 3 GPUs.
std::string stats_to_text(const std::vector<storage::statistics_copy>& engines);
std::string stats_to_json(const std::vector<storage::statistics_copy>& engines);

} // namespace weftio::files
