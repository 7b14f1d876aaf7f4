// Words for how operations on files go.
#pragma once

#include "weftio/file_result.hpp"

namespace weftio::storage {

/// Why operations fall, and what to do: a sentence without its end. Any thread.
const char* explanation_of(file_fall fall) noexcept;

} // namespace weftio::storage
