// What the HTTP server of weftio-packets offers, as one image for kernels (kernel/http/site.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kernel/http/site.h"

namespace weftio::packets {

/// A value of /stats. "tcp.connections" is {"tcp": {"connections": N}}; names that share a part stand side by side.
struct counter_name {
    std::string name;
    http_counter_kind kind = HTTP_SUM; ///< how the values of several blocks become one
};

struct site_options {
    std::filesystem::path root{};                             ///< folder of files to serve; empty: none
    std::uint64_t root_limit = 256ull << 20;                  ///< most bytes of all files
    std::vector<counter_name> counters{};                     ///< in the order of the values that http_values has
    std::vector<std::pair<std::string, std::string>> facts{}; ///< texts of /stats, in front of the values
};

/// The pages, files and errors of a server.
///
/// `/`, `/contact` and `/stats` are built in. A file of the folder replaces one of the first two. index.html answers
/// the path of its folder with a slash at the end; the path without the slash redirects there. Names that begin with
/// '.' and links out of the folder are not served (folder.hpp).
///
/// - Threads: any, one at a time.
class site {
 public:
    /// Finds the files, and reads their sizes, but not what is in them.
    ///
    /// @throws weftio::error what list_folder() throws; errc::invalid_argument a file is named stats, or the name of a
    ///         counter is empty, there twice, or the group of another
    explicit site(site_options options);

    std::size_t bytes() const noexcept { return static_cast<std::size_t>(header_.bytes); } ///< of the image
    std::uint32_t files() const noexcept { return files_; }
    std::uint64_t file_bytes() const noexcept { return file_bytes_; }
    std::uint32_t skipped() const noexcept { return skipped_; } ///< names below the folder that are not served

    /// Writes the image, with the files as they are now.
    ///
    /// @param to  bytes() bytes at a multiple of 8
    /// @throws weftio::error errc::not_found, errc::permission_denied a file cannot be read any more; errc::in_use the
    ///         size of a file has changed
    void write(std::span<std::byte> to) const;

 private:
    /// An item, and where its texts come from.
    struct entry {
        http_item item{};
        std::string path{};
        std::string heads[HTTP_HEADS]{};
        std::string body{}; ///< unless it is a file
        std::filesystem::path file{};
    };

    void add_fixed();
    void add_page(std::string path, std::string body);
    void add_files();
    void add_counters();
    void lay_out();
    void lay_out_table();
    entry& add(std::uint32_t status, std::string path, std::string_view type, std::string_view fields,
               std::uint64_t body_bytes);

    site_options options_;
    http_site header_{};
    std::vector<entry> entries_;
    std::unordered_set<std::string> paths_;
    std::vector<std::uint32_t> slots_;
    std::vector<http_counter> counters_;
    std::vector<std::string> texts_; ///< of the counters
    std::uint32_t files_ = 0, skipped_ = 0;
    std::uint64_t file_bytes_ = 0;
};

/// The JSON texts of /stats: one in front of each counter's value, and one behind the last.
/// @throws weftio::error errc::invalid_argument as site::site()
std::vector<std::string> stats_texts(const site_options& options);

} // namespace weftio::packets
