// The file that is measured.
#pragma once

#include <cstdint>
#include <string>

#include "bench/plan.hpp"

namespace weftio::files {

/// A file with the pattern, or one that is there. Its descriptor is open as long as the object; what it made is
/// removed, also when SIGINT, SIGTERM, SIGHUP or SIGXFSZ ends the program. One object at a time.
class bench_file {
 public:
    /// Makes or opens the file. Blocks while it is written.
    /// @throws weftio::error  with the system's reason; a file that is there and would be written or verified, or one
    ///         that is too small
    explicit bench_file(const bench_options& options);
    bench_file(const bench_file&) = delete;
    bench_file& operator=(const bench_file&) = delete;
    ~bench_file();

    int descriptor() const noexcept { return descriptor_; }
    const std::string& path() const noexcept { return path_; }
    /// The part of the file that is used.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Reads all of it and compares. Returns a sentence, empty if all bytes are right.
    std::string verify() const;

 private:
    void make(const bench_options& options);
    void open(const bench_options& options);
    void measure(const bench_options& options);
    void require_room(const bench_options& options) const;
    void write_pattern();
    void let_go() noexcept;

    std::string path_;
    bool made_ = false;
    int descriptor_ = -1;
    std::uint64_t bytes_ = 0;
};

} // namespace weftio::files
