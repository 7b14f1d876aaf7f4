// How engines run, and how ports are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weftio/file_result.hpp"

namespace weftio {

/// What an engine's thread does while it is idle.
enum class idle_policy {
    sleep, ///< spin briefly, then yield briefly, then sleep 20 us at a time, 100 us after 10 ms: the default
    yield, ///< spin briefly, then yield
    busy,  ///< always spin: lowest latency
    /// As `sleep`. But after the engine was kept from its core, because there are more threads than cores, it sleeps at
    /// once whenever it finds nothing to do, for up to one second: the threads that it serves may need its core.
    adaptive,
};

/// What runs the engines.
enum class engine_mode {
    thread, ///< a thread for each engine
    /// Receive and push calls of a CPU kernel, or port::turn(). Kernels on other devices run no engine: the application
    /// must call port::turn() for them.
    inline_worker,
};

struct port_options {
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep;
    /// Number of port queues in each direction, 1 to most_engines, each with an engine of its own. Engines share
    /// nothing while they work. The port's hash distributes flows over the queues; eth_rxq and eth_txq report their
    /// engine. In inline mode every engine must be run, by kernels that use a queue there or by port::turn(); packets
    /// of its port queue wait until then.
    unsigned engines = 1;
    static constexpr unsigned most_engines = 64;
    int core = -1; ///< core of the first engine's thread; engine n runs on core + n; -1: the system decides
    /// Real-time priority (SCHED_FIFO) of the engine threads, 1 to 99; 0: normal scheduling. Near a deadline nothing
    /// else runs on the engine's core. Linux takes the core away for 50 ms in each second unless
    /// kernel.sched_rt_runtime_us is -1.
    int realtime = 0;
    /// Hold packets back while their queue is full, instead of dropping them. `automatic` does so for capture files,
    /// which can wait, unlike a wire. A held packet also holds those behind it, whatever their queue.
    enum class hold { automatic, on, off } hold_when_full = hold::automatic;
    /// RDMA between two queue pairs of this port. false: bytes are copied from memory to memory, and packets are built
    /// only for requests that do not succeed at once. true: packets are built and parsed as for another port, so that
    /// tests of the transport need only one port.
    bool rdma_by_packet = false;
    /// Path of a pcapng file to which every frame of the port is written whole, with its time and direction; empty:
    /// none. The file is created, or emptied unless another port writes to it: ports of several processes may share a
    /// file, in which each is an interface. The engines write the file themselves, so a slow file slows them down;
    /// after a failed write, which the log reports, the port continues without the file. With `dump`, RDMA between two
    /// queue pairs of the port uses packets (rdma_by_packet); each is in the file twice, as sent and as received.
    std::string dump{};
    std::uint16_t mtu = 0; ///< 68 to 16,362, of a port that writes a capture file to 65,513; 0: the driver's own
    std::vector<std::string> eal_arguments{}; ///< extra EAL arguments, used if this port starts EAL
};

struct dma_engine_options {
    /// inline_worker: no thread. The engine runs once in each commit and in each iteration of a wait, of a CPU kernel
    /// or of the host, and in dma_engine::turn(). Work that one run leaves is done in the next: a program that commits
    /// and does not wait must call turn().
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep; ///< this and the next two options apply to the engine's thread
    int core = -1;                         ///< -1: the system decides
    int realtime = 0;                      ///< as port_options::realtime
};

struct file_engine_options {
    /// true: an operation that would fall back to a slower way (file_fall) fails with ENOTSUP, and the constructor of
    /// an engine that would fall back throws. The environment variable WEFTIO_FILE_STRICT=1 does the same for every
    /// engine.
    bool strict = false;
    /// The only way to use; none: the engine chooses. If the way is unavailable, the constructor of the engine throws.
    /// `cufile` is NVIDIA's library, at the path in WEFTIO_CUFILE_LIBRARY or in the key weftio.cufile_library, else
    /// where the CUDA toolkit installs it. The library stays open until the process ends, and file_queue does not use
    /// it.
    file_way only = file_way::none;
    /// Parts that one batch, or one large call, has in flight: 1 to 4096; 0: the configuration's
    /// execution.max_io_queue_depth, else default_depth.
    unsigned depth = 0;
    /// Threads of the pool that executes operations that do not use io_uring: 1 to 256; 0: the configuration's
    /// execution.max_io_threads, else default_threads. They are started when needed.
    unsigned threads = 0;
    static constexpr unsigned default_depth = 64, default_threads = 8;
    /// Larger transfers are split into parts of this size, which are in flight together: a power of two in
    /// 4 KiB .. 1 GiB.
    std::size_t part_bytes = std::size_t{1} << 20;
    /// true: a transfer bypasses the page cache if it is aligned and at least one part long, also if the file was
    /// opened without O_DIRECT; the engine opens the file a second time for this. Slower for files that are in the page
    /// cache: docs/files.md says which programs benefit ("Past the page cache").
    bool reopen_direct = false;
    /// Path of a cufile.json; empty: the file that WEFTIO_FILE_JSON, else CUFILE_ENV_PATH_JSON names, if any. Options
    /// override the file. A key without effect is logged with the reason (docs/files-check.md); a wrong value of a key
    /// that the engine reads is refused.
    std::string configuration{};
    /// This and the next three options apply to the engine's thread, which serves file_queue only.
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep;
    int core = -1;    ///< -1: the system decides
    int realtime = 0; ///< as port_options::realtime
};

} // namespace weftio
