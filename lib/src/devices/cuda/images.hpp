// All CUDA images of the program, which a device loads before any kernel runs.
#pragma once

#include <string_view>
#include <vector>

namespace weftio::devices::cuda {

const std::vector<std::string_view>& images();

} // namespace weftio::devices::cuda
