// What a configuration file says about files: the keys of cufile.json, and their defaults.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/options.hpp"

namespace weftio::storage {

/// How bytes go between a storage device and a GPU that share no PCIe tree.
enum class routing_policy : std::uint8_t {
    gpu_mem_nvlinks, ///< through memory of a GPU near the device, then over NVLink
    gpu_mem,         ///< through memory of a GPU near the device, then over PCIe
    sys_mem,         ///< through pinned host memory near the device
    p2p,             ///< from device to GPU across root ports
};

/// As the configuration names it: GPU_MEM_NVLINKS, GPU_MEM, SYS_MEM, P2P.
std::string_view to_string(routing_policy policy) noexcept;

/// Least severity that is logged, from few lines to many.
enum class logging_level : std::uint8_t { error, warn, info, debug, trace };

/// ERROR, WARN, INFO, DEBUG, TRACE.
std::string_view to_string(logging_level level) noexcept;

/// Section `fs.NAME` of a configuration.
struct file_system_settings {
    std::uint64_t posix_gds_min_bytes = 0;     ///< transfers of at most so many bytes go by POSIX; 0: none
    std::vector<std::string> rdma_addresses{}; ///< storage NICs of all mounts, as IP addresses
    std::map<std::string, std::vector<std::string>> mounts{}; ///< mount point to storage NICs
    bool rdma_write = false;                                  ///< weka only
};

/// A configuration, checked. Sizes are bytes.
struct configuration {
    /// Something that the file says and that does nothing, told once when the file is read.
    struct remark {
        std::string text; ///< a sentence, with file and line, and why
        bool unknown;     ///< an unknown key; else a known one that engines of files do not act on
    };

    std::string path{}; ///< the file; empty: the defaults
    bool allow_compat_mode = true;
    bool force_compat_mode = false;
    std::uint64_t max_direct_io_bytes = 16384ull << 10;
    std::uint64_t max_device_cache_bytes = 131072ull << 10;
    std::uint64_t max_device_pinned_bytes = 33554432ull << 10;
    bool use_poll_mode = false;
    std::uint64_t poll_mode_max_bytes = 4 << 10;
    std::vector<std::uint64_t> slab_bytes{4 << 10, 1024 << 10, 16384 << 10}; ///< ascending
    std::vector<std::uint64_t> slab_counts{128, 64, 32};                     ///< as many as `slab_bytes`
    bool rdma_dynamic_routing = false;
    std::vector<routing_policy> routing_order{routing_policy::gpu_mem_nvlinks, routing_policy::gpu_mem,
                                              routing_policy::sys_mem, routing_policy::p2p};
    std::vector<std::string> rdma_addresses{}; ///< storage NICs where no mount and no file system names any
    std::map<std::string, file_system_settings> file_systems{};
    std::vector<std::string> denied_mounts{}, denied_file_systems{}; ///< never by the ways `direct` and `cufile`
    std::optional<logging_level> log{};                              ///< none: the file does not say
    std::string cufile_library{};  ///< full path of NVIDIA's libcufile, for the way `cufile`; empty: not asked for
    unsigned statistics_level = 0; ///< 0 to 3
    unsigned io_threads = file_engine_options::default_threads; ///< of POSIX reads and writes
    unsigned io_depth = file_engine_options::default_depth;     ///< parts in flight
    std::vector<remark> remarks{};

    /// Storage NICs of a mount: those of the mount, else of its file system, else of all. May be empty.
    /// File systems are named as mounts have them ("nfs4", "wekafs"), or as sections of `fs` do ("nfs", "weka").
    const std::vector<std::string>& addresses_of(std::string_view file_system, std::string_view mount) const;
    /// Transfers of at most so many bytes go by POSIX.
    std::uint64_t posix_at_most(std::string_view file_system) const;
    /// Whether the denylist has the mount, or its file system.
    bool denies(std::string_view file_system, std::string_view mount) const;
    /// Whether an engine must know the mounts of its files.
    bool names_mounts() const noexcept;
};

/// Names the file to read: `option`, else WEFTIO_FILE_JSON, else CUFILE_ENV_PATH_JSON; empty if none of them does.
std::string configuration_path(std::string_view option);

/// Reads a file; the defaults for an empty path. Blocks for the file.
///
/// @throws weftio::error
///     - `errc::not_found`          no such file
///     - `errc::permission_denied`  the file cannot be read
///     - `errc::invalid_argument`   not JSON, a wrong value, or a list beside a mount table; every mistake has a
///       sentence
configuration read_configuration(const std::string& path);

/// Parses the text of a file. `name` stands in messages.
/// @throws weftio::error errc::invalid_argument  as above
configuration parse_configuration(std::string_view text, std::string_view name);

} // namespace weftio::storage
