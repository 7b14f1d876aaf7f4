// What weftio-litmus prints.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace weftio::litmus {

/// The table's first lines, and a row: printed as soon as it is there.
std::string table_head(const command& wanted, const machine& on);
std::string table_row(const outcome& of);
/// What the rows say, and which rows cannot be, and why.
std::string table_end(const std::vector<outcome>& all);
/// The words of each row, an array.
std::string to_json(const std::vector<cell>& rows);
std::string to_json(const command& wanted, const machine& on, const std::vector<outcome>& all);

} // namespace weftio::litmus
