// What `weftio-files bench` is to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weftio/file_result.hpp"

namespace weftio::files {

/// A load, which runs by Weftio, by POSIX and copies, and by fio, a round each in turn.
struct bench_options {
    enum class load { read, write, mixed };

    std::string path{};                        ///< file or folder; empty: a file in the folder for temporary files
    std::vector<std::uint64_t> sizes{1 << 20}; ///< bytes of an operation, one run each
    /// Of a file that is made; of one that is there, so much from its start on is used. 0: 256 MiB, or all of it.
    std::uint64_t file_bytes = 0;
    unsigned workers = 4;
    double seconds = 2; ///< of each run, over all its rounds
    unsigned rounds = 3;
    load what = load::read;
    bool random = false;
    bool direct = false; ///< O_DIRECT
    bool verify = false; ///< compare what is read with the pattern
    bool fio = false;    ///< beside fio, where it can
    std::string plot{};  ///< an SVG file for how much was moved over time; empty: none
    file_way only = file_way::none;
    std::string device = "cpu"; ///< whose memory: cpu, opencl, opencl:N or cuda:N
};

} // namespace weftio::files
