// The interface between the preloaded library, which is small and in every process that weftio-run starts, and the
// engine, which is loaded when the program first looks for a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

extern "C" {

/// What the preloaded library calls in the engine. Any thread. Results are those of the kernel: a negative errno on
/// failure.
struct weftio_verbs_engine {
    std::uint32_t version; ///< seam_version of the engine
    std::uint32_t devices; ///< number of nodes, from /dev/infiniband/uverbs0
    /// Folder that contains sys/class/infiniband_verbs/..., sys/class/infiniband/... and dev/infiniband/..., which
    /// describe the devices; without a slash at its end.
    const char* tree;
    /// Opens a node, or the connection manager (connection_manager_node). Returns a descriptor, with O_CLOEXEC if
    /// `flags` have it. The program may duplicate and close it freely: the engine detects the last close.
    int (*open)(unsigned device, int flags);
    /// write() of a command to a descriptor that open() has returned, or to a duplicate. -ENOTTY: the number is not one
    /// of these now (it was closed and reused).
    ssize_t (*write)(int descriptor, const void* command, std::size_t bytes);
    /// mmap() of such a descriptor; stores the address.
    int (*map)(int descriptor, void* wish, std::size_t bytes, int protection, int flags, off_t offset, void** address);
    /// ioctl() of such a descriptor.
    int (*control)(int descriptor, unsigned long request, void* argument);
    /// A descriptor that may be a node has been closed. Returns when the objects of a closed node have ended.
    void (*closed)();
    /// Logs that the preloaded library has refused another interface of the kernel: "netlink", or a name in
    /// /dev/infiniband such as "umad0". `probe`: the caller only looks whether it is there.
    void (*refused)(const char* which, bool probe);
    /// Brings the counters in the tree up to date: the program is about to read one. From then on the engine also does
    /// so regularly.
    void (*count)();
    /// While not 0, the engine wants to hear of calls that change mappings.
    const std::atomic<int>* hears_calls;
    /// Such a call of the calling thread has succeeded: its SYS_ number, its six arguments, and when it began
    /// (CLOCK_MONOTONIC).
    void (*called)(long number, const unsigned long* arguments, std::uint64_t since_ns);
    /// A call for these pages has failed, perhaps because the engine watches them. Returns whether it did: it no longer
    /// does, and the call may be repeated.
    bool (*stop_watching)(std::uintptr_t begin, std::size_t bytes);
};

/// What the engine calls in the preloaded library.
struct weftio_verbs_host {
    std::uint32_t version;
    /// While `on`, the calling thread does not see DPDK's folder of drivers: EAL then loads only the drivers that it is
    /// given by name.
    void (*hide_drivers)(bool on);
    /// The engine's libraries, with the C library, are in a namespace of the dynamic linker apart from the program's.
    bool in_own_namespace;
};

/// The only function that the engine's library exports. Blocks until the engine runs; once per process. Returns nullptr
/// when the engine cannot run; the log has the reason.
using weftio_verbs_start_function = const weftio_verbs_engine*(const weftio_verbs_host*);
const weftio_verbs_engine* weftio_verbs_start(const weftio_verbs_host* host);
}

namespace weftio::verbs {

inline constexpr std::uint32_t seam_version = 6;

/// No errno: the caller waits until the descriptor is readable, and calls again. The engine does not wait itself,
/// because its callers cannot be cancelled.
inline constexpr int must_wait = 4096;

inline constexpr unsigned most_devices = 8; ///< per process

/// Major number of the nodes, and minor number of the first, as Linux assigns them.
inline constexpr unsigned node_major = 231, first_node_minor = 192;

/// In place of the number of a device: /dev/infiniband/rdma_cm. A device of class misc.
inline constexpr unsigned connection_manager_node = 1u << 16, misc_major = 10, connection_manager_minor = 122;

/// Environment variables by which weftio-run passes its options to the engine.
inline constexpr const char *wire_variable = "WEFTIO_RUN_WIRE", ///< name of the wire in memory
    *port_variable = "WEFTIO_RUN_PORT",                         ///< a port spec, instead of the wire
        *address_variable = "WEFTIO_RUN_ADDRESS",               ///< of the first device
            *devices_variable = "WEFTIO_RUN_DEVICES",           ///< number of devices; default 1
                *loss_variable = "WEFTIO_RUN_LOSS", ///< share of the frames that the wire loses, and a seed: "0.01,7"
                    *dump_variable = "WEFTIO_RUN_DUMP",       ///< path of a pcapng file
                        *stale_variable = "WEFTIO_RUN_STALE", ///< report, fail or off: see stale_mode
                            *doorbell_variable =
                                "WEFTIO_RUN_DOORBELL_BYTES", ///< size of libmlx5's doorbell store: 8 or 64 bytes
                                *engine_variable = "WEFTIO_RUN_ENGINE"; ///< path of the engine's library

} // namespace weftio::verbs
