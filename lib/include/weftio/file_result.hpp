// The result of an operation on a file, and the way that its bytes took.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weftio {

/// The ways in which bytes move between a file and memory.
enum class file_way : std::uint8_t {
    none,   ///< nothing was transferred
    uring,  ///< io_uring
    posix,  ///< pread and pwrite, by the caller or by the engine's threads
    cufile, ///< NVIDIA's library (libcufile)
    direct, ///< the drive writes to the device's memory itself
    count_  ///< number of ways
};
/// "none", "uring", ...; "unknown" for a number that is no way. Any thread.
const char* to_string(file_way way) noexcept;

/// Why an operation fell back from the preferred way to another one. Preferred are: transfers without the page cache
/// for a file with O_DIRECT, `direct` for memory of a GPU, and `uring` for the engine. If several reasons apply, the
/// first of this list is reported.
enum class file_fall : std::uint8_t {
    none,              ///< the preferred way was used
    managed_memory,    ///< its pages migrate between CPU and GPU
    system_memory,     ///< ordinary memory, which the GPU reads through the system
    no_direct,         ///< no direct way to the device's memory on this system or in this build: staged in host memory
    above_bar1,        ///< more bytes than the GPU's BAR1 maps at once; only for `direct`, which no engine has yet
    better_staged,     ///< the PCIe route is slower than a staging buffer; only for `direct`, which no engine has yet
    no_vendor_library, ///< file_way::cufile is preferred, and NVIDIA's library is unavailable
    no_o_direct,       ///< direct I/O is preferred, and the file system has none or denies it
    offset,            ///< the file offset is not aligned for O_DIRECT: the first block used a bounce buffer
    address,           ///< the memory is not aligned for O_DIRECT: all bytes used a bounce buffer
    size,              ///< the size is not aligned for O_DIRECT: the last block used a bounce buffer
    too_small,         ///< not larger than posix_gds_min_kb
    no_uring,          ///< the system refuses io_uring
    count_             ///< number of reasons
};
/// "none", "managed_memory", ...; "unknown" for a number that is no reason. Any thread.
const char* to_string(file_fall fall) noexcept;

/// The result of a read, a write or a sync.
struct file_result {
    /// Bytes transferred, from the start of the operation on, without a gap. Fewer than asked for and `error` 0: a read
    /// has reached the end of the file. When a large write fails, bytes behind a gap may have been written too.
    std::int64_t bytes = 0;
    int error = 0; ///< errno of the first byte that was not transferred; ECANCELED: canceled; 0: no error
    file_way way = file_way::none;
    file_fall fall = file_fall::none;
    std::uint64_t position = 0; ///< file offset after the last byte transferred

    bool ok() const noexcept { return error == 0; }
};

/// Operations of one way. Failed operations count as operations, and the bytes before the error count.
struct file_way_counters {
    std::uint64_t reads = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t read_errors = 0;
    std::uint64_t writes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t write_errors = 0;
    std::uint64_t syncs = 0;
    std::uint64_t sync_errors = 0;

    std::uint64_t operations() const noexcept { return reads + writes + syncs; }
    std::uint64_t bytes() const noexcept { return read_bytes + write_bytes; }
    std::uint64_t errors() const noexcept { return read_errors + write_errors + sync_errors; }
};

/// Counters of an engine. Each operation that has ended is counted once by its way and once by its fall.
struct file_counters {
    std::array<file_way_counters, static_cast<std::size_t>(file_way::count_)> ways{};
    std::array<std::uint64_t, static_cast<std::size_t>(file_fall::count_)> falls{};

    const file_way_counters& of(file_way way) const noexcept { return ways[static_cast<std::size_t>(way)]; }
    std::uint64_t of(file_fall fall) const noexcept { return falls[static_cast<std::size_t>(fall)]; }
};

} // namespace weftio
