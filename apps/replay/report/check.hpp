// Checks captures without sending them.
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
    std::uint64_t frames = 0, bytes = 0; ///< as captured, with every FCS
    std::uint64_t wire_bytes = 0;        ///< bytes on the wire, with every FCS
    std::uint64_t cut_frames = 0;        ///< shorter in the capture than on the wire
    std::uint64_t with_fcs = 0;          ///< end with a frame check sequence, which is not sent
    std::uint64_t runts = 0, out_of_order = 0, untimed = 0;
    std::uint64_t clamped = 0; ///< times that do not fit 64 bits of nanoseconds
    std::uint32_t longest = 0;
    std::int64_t first_ns = 0, last_ns = 0;            ///< earliest and latest time
    std::map<std::uint32_t, std::uint64_t> link_types; ///< frames of each link type
    std::optional<damage> damaged;
    std::string unreadable; ///< why the file could not be opened, as an error for the user; else empty
};

/// Reads a whole capture, or until `*stop`. A file that cannot be opened is `unreadable`.
verdict check_file(const std::string& path, const std::atomic<bool>* stop = nullptr);
/// A verdict as one line.
std::string to_text(const verdict& of);
std::string to_json(const std::vector<verdict>& all);
/// The exit status for all files: `usage` if one could not be opened, else `damaged` if one is damaged.
outcome result_of(const std::vector<verdict>& all) noexcept;

} // namespace weftio::replay
