// The files below a folder, as an HTTP server names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weftio::packets {

/// A file that is served.
struct folder_file {
    std::string path;              ///< of a URL, not encoded: "/docs/a.html"
    std::filesystem::path file;    ///< without symbolic links
    std::uint64_t bytes = 0;       ///< when it was found
    std::int64_t modified_s = 0;   ///< seconds since 1970
    std::uint32_t modified_ns = 0; ///< and nanoseconds
};

struct folder_listing {
    std::vector<folder_file> files;   ///< by path
    std::vector<std::string> folders; ///< paths without a slash at the end; the folder itself is not among them
    std::uint32_t skipped = 0;        ///< hidden ones, links that leave the folder, and what is neither file nor folder
};

/// Finds every file below `root`. Names that begin with '.' are skipped, and so is a symbolic link that leads out of
/// `root`, to nothing, or to a folder around it.
///
/// @throws weftio::error errc::not_found `root` is no folder; errc::permission_denied a folder or file cannot be read;
///         errc::invalid_argument a name has control characters, a file has 1 GiB or more, or all have more than
///         `limit_bytes`
folder_listing list_folder(const std::filesystem::path& root, std::uint64_t limit_bytes);

/// Media type by the extension of a path. "application/octet-stream": unknown.
std::string_view media_type(std::string_view path);

/// A path as it is written in a URL (RFC 3986).
std::string percent_encoded(std::string_view path);

} // namespace weftio::packets
