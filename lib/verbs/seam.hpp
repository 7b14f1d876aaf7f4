// Between the preloaded library, which is small and in every process that weftio-run starts, and the engine, which that
// opens when the program first looks for a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

extern "C" {

/// What the engine can do for the preloaded library. Any thread may call; results are those of the kernel: a negative
/// errno for what failed.
struct weftio_verbs_engine {
    std::uint32_t version; ///< seam_version of the engine
    std::uint32_t devices; ///< nodes /dev/infiniband/uverbs0 and on
    /// Folder in which sys/class/infiniband_verbs/..., sys/class/infiniband/... and dev/infiniband/... describe the
    /// devices; without a slash at its end.
    const char* tree;
    /// Opens a node. Returns a descriptor, which has O_CLOEXEC as `flags` say; the program may duplicate and close it as
    /// it likes: the engine hears of the last close by itself.
    int (*open)(unsigned device, int flags);
    /// write() of a command to a descriptor that open() has returned, or a duplicate. -ENOTTY: it is none (its number has
    /// been given to something else).
    ssize_t (*write)(int descriptor, const void* command, std::size_t bytes);
    /// mmap() likewise; stores the address.
    int (*map)(int descriptor, void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address);
    /// A descriptor that may have been such a one has been closed: returns when what it held has ended.
    void (*closed)();
};

/// What the preloaded library can do for the engine.
struct weftio_verbs_host {
    std::uint32_t version;
    /// While `on`, the calling thread does not see DPDK's folder of drivers: EAL loads those that it is told by name.
    void (*hide_drivers)(bool on);
};

/// The one function that the engine's library exports. Blocks until the engine runs, once a process. Returns nullptr
/// when it cannot: the reason is in the log.
using weftio_verbs_start_function = const weftio_verbs_engine*(const weftio_verbs_host*);
const weftio_verbs_engine* weftio_verbs_start(const weftio_verbs_host* host);
}

namespace weftio::verbs {

inline constexpr std::uint32_t seam_version = 1;

inline constexpr unsigned most_devices = 8; ///< of a process

/// Major number of the nodes, and minor of the first, as Linux gives them.
inline constexpr unsigned node_major = 231, first_node_minor = 192;

/// How weftio-run tells the engine what it was asked for.
inline constexpr const char *wire_variable = "WEFTIO_RUN_WIRE", ///< name of the wire in memory
    *port_variable = "WEFTIO_RUN_PORT",                         ///< a port spec, in place of the wire
        *address_variable = "WEFTIO_RUN_ADDRESS",               ///< of the first device
            *devices_variable = "WEFTIO_RUN_DEVICES",           ///< how many; 1 without it
                *loss_variable = "WEFTIO_RUN_LOSS", ///< share of the frames that the wire loses, and a seed: "0.01,7"
                    *dump_variable = "WEFTIO_RUN_DUMP", ///< path of a pcapng file
                        *doorbell_variable =
                            "WEFTIO_RUN_DOORBELL_BYTES",            ///< what libmlx5 stores to ring: 8 or 64 bytes
                            *engine_variable = "WEFTIO_RUN_ENGINE"; ///< path of the engine's library

} // namespace weftio::verbs
