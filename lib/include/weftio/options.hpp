// How engines run, and how ports are opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weftio {

/// What an engine's thread does while it is idle.
enum class idle_policy {
    sleep, ///< spin briefly, then yield briefly, then sleep 20 us at a time: the default
    yield, ///< spin briefly, then yield
    busy,  ///< always spin: lowest latency
};

/// Who runs the engines.
enum class engine_mode {
    thread, ///< a thread for each engine
    /// Receive and push calls of a CPU kernel, or port::turn(). Kernels on other devices drive no engine: beside them
    /// the application calls port::turn().
    inline_worker,
};

struct port_options {
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep;
    /// Number of port queues in each direction, 1 to most_engines, each with an engine of its own. Engines share
    /// nothing while they work. The port's hash distributes flows over the queues; eth_rxq and eth_txq tell at which
    /// engine they are. In inline mode every engine must be driven, by kernels that use a queue there or by
    /// port::turn(); packets of its port queue wait until then.
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
    /// RDMA between two queue pairs of this port: copies go from memory to memory, and no packet is built. true: packets are
    /// built and read as for another port, so that tests of the transport need one port only.
    bool rdma_by_packet = false;
    std::uint16_t mtu = 0;                    ///< 68 to 16,362; 0: the driver's own
    std::vector<std::string> eal_arguments{}; ///< extra EAL arguments, used if this port starts EAL
};

struct dma_engine_options {
    /// inline_worker: no thread. Each commit and each look of a wait of a CPU kernel, or of the host, is a turn; so is
    /// dma_engine::turn(). What one turn leaves is for the next: who commits and does not wait calls turn().
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep; ///< as the next two, of the engine's thread
    int core = -1;                         ///< -1: wherever the system puts it
    int realtime = 0;                      ///< as port_options::realtime
};

} // namespace weftio
