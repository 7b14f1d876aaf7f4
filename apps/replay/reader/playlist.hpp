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

/// Frames of several files. Holds 256 KiB for every file that is open: one in sequence, all by time. One thread at a
/// time.
class playlist {
 public:
    struct item {
        frame captured;
        std::size_t file = 0;
        bool begins_file = false; ///< first frame of a pass, or in sequence of a file
    };

    /// Opens every file once, so that a missing one is found before anything is sent. @throws open_error
    playlist(std::vector<std::string> paths, order by, const std::atomic<bool>* stop = nullptr);

    /// The next frame; its bytes are valid until the next call. Returns false when all files have ended.
    bool next(item& to);
    /// Starts another pass over all files. Returns false when one is a pipe, or has gone.
    bool rewind();

    /// Which part of this pass has been read, 0 to 1; nothing where a file is a pipe.
    std::optional<double> share() const;

    const std::vector<std::string>& paths() const noexcept { return paths_; }
    /// What is wrong with file `file`, as far as it has been read.
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
    std::size_t at_ = 0; ///< in sequence: the file being read; by time: the one whose front was given out
    bool begins_ = true, given_ = false;
};

} // namespace weftio::replay
