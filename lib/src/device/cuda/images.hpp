// Every CUDA image of the program, so that a device can load them before a kernel runs.
#pragma once

#include <string_view>
#include <vector>

namespace weftio::detail::cuda {

const std::vector<std::string_view>& images();

} // namespace weftio::detail::cuda
