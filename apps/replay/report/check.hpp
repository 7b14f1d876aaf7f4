// What a capture holds, without sending it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader/capture.hpp"
#include "report/report.hpp"

namespace weftio::replay {

struct verdict {
    std::string path, format;
    std::uint64_t frames = 0, bytes = 0; ///< captured
    std::uint64_t wire_bytes = 0;        ///< what they had on the wire
    std::uint64_t cut_frames = 0;        ///< shorter in the capture than on the wire
    std::uint64_t runts = 0, out_of_order = 0, untimed = 0;
    std::uint64_t clamped = 0; ///< times that 64 bits of nanoseconds do not hold
    std::uint32_t longest = 0;
    std::int64_t first_ns = 0, last_ns = 0;            ///< earliest and latest time
    std::map<std::uint32_t, std::uint64_t> link_types; ///< frames of each
    std::optional<damage> damaged;
    std::string unreadable; ///< why the file could not be opened: an error for the user
};

/// Reads a whole capture, or until `*stop`. A file that cannot be opened is `unreadable`.
verdict check_file(const std::string& path, const std::atomic<bool>* stop = nullptr);
/// One line.
std::string to_text(const verdict& of);
std::string to_json(const std::vector<verdict>& all);
/// The exit status for all: `usage` where a file could not be opened, else `damaged` where one is.
outcome result_of(const std::vector<verdict>& all) noexcept;

} // namespace weftio::replay
