// What the way `direct` would fall for between a storage device and a GPU. No engine has that way: --check prints this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "storage/routing.hpp"
#include "weftio/file_result.hpp"

namespace weftio::storage {

struct direct_judgment {
    file_fall fall = file_fall::none; ///< none, above_bar1 or better_staged
    std::string why{};                ///< a sentence
};

/// Judges a transfer of so many bytes, or to registered memory of so many, by the route to the GPU.
/// @param bar1  of the GPU; 0: unknown, and nothing is above it
direct_judgment judge_direct(const topology& in, const route& made, std::size_t gpu, std::uint64_t bytes,
                             std::uint64_t bar1);

} // namespace weftio::storage
