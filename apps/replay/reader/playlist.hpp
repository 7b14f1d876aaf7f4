// Several captures as one stream of frames.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/capture.hpp"

namespace weftio::replay {

enum class order {
    in_sequence, ///< one file after the other
    by_time,     ///< always the oldest frame of all files
};

/// Reads the frames of several files. Buffers 256 KiB for every open file: one in sequence, all by time. One thread at
/// a time.
class playlist {
 public:
    struct item {
        frame captured;
        std::size_t file = 0;
        bool begins_file = false; ///< first frame of a pass; in sequence, of a file
    };

    /// Opens every file once, so that a missing one is found before anything is sent. @throws open_error
    playlist(std::vector<std::string> paths, order by, const std::atomic<bool>* stop = nullptr);

    /// Reads the next frame, whose bytes are valid until the next call. Returns false when all files have ended.
    bool next(item& to);
    /// Starts another pass over all files. Returns false if one is a pipe or has disappeared.
    bool rewind();

    /// Fraction of this pass that has been read, 0 to 1; nothing if a file is a pipe.
    std::optional<double> share() const;

    const std::vector<std::string>& paths() const noexcept { return paths_; }
    /// The damage of file `file`, as far as it has been read.
    const std::optional<damage>& damaged(std::size_t file) const { return files_[file].damaged; }
    bool any_damaged() const noexcept;

 private:
    struct source {
        std::unique_ptr<capture_reader> reader;
        frame front;
        bool has_front = false;
        double weight = 0; ///< size of the file
        std::optional<damage> damaged;
    };

    bool next_in_sequence(item& to);
    bool next_by_time(item& to);
    bool read(std::size_t file);
    bool open(std::size_t file);

    std::vector<std::string> paths_;
    order order_;
    const std::atomic<bool>* stop_;
    std::vector<source> files_;
    std::size_t at_ = 0; ///< in sequence: the current file; by time: the file whose front was returned last
    bool begins_ = true, given_ = false;
};

} // namespace weftio::replay
