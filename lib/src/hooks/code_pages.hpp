// Executable memory near code of other libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weftio::hooks {

struct place_request {
    std::int64_t first, last; ///< where it may begin
    std::int64_t close_to;    ///< the closest one is taken
    std::size_t bytes;
};

/// Takes bytes that nobody uses, for ever: in pages that were mapped for others before, or in new ones. Any thread.
/// Returns nullptr if all such addresses are in use.
std::uint8_t* take_code(const place_request& wanted);
/// Writes bytes of take_code(), while other threads may execute others of the same pages. Any thread. Returns false,
/// with errno, if the system gives no executable memory.
bool write_code(std::uint8_t* to, std::span<const std::uint8_t> code) noexcept;

} // namespace weftio::hooks
