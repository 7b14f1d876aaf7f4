// The DPDK port of a device, for programs that set up and use one themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "weftio/eth_rxq.hpp"
#include "weftio/eth_txq.hpp"
#include "weftio/port.hpp"

struct rte_mempool;
struct rte_ring;

namespace weftio::doca {

/// Starts DPDK's EAL unless it runs, with threads for programs that launch functions on other cores.
/// @param without_pci  false: a port that is opened first decides how EAL looks for PCI devices
/// @throws weftio::error as weftio::port::open
void start_eal(bool without_pci);

/// A DPDK port on rings (net_ring), which the program configures, starts and polls as that of a NIC. A thread carries
/// packets between it and queues of the CPU at the device's Weftio port. The program's calls that set it up arrive here
/// (interposed.cpp), because net_ring refuses some of what NICs accept.
class program_port {
 public:
    static constexpr std::uint16_t most_queues = 16;

    /// @throws weftio::error errc::out_of_memory
    program_port();
    program_port(const program_port&) = delete;
    ~program_port();

    std::uint16_t id() const noexcept { return id_; }
    std::atomic<bool> is_probed{false};

    /// Makes a DPDK port again, unless there is one, with another number. @throws weftio::error errc::out_of_memory
    void open();
    /// The program has closed the DPDK port, whose number may be another's soon.
    void close() noexcept;

    /// Where packets come from and go to. Called once.
    void attach(const port& port) { port_ = port; }
    /// The pool of the program for packets of a receive queue.
    void set_pool(std::uint16_t queue, rte_mempool* pool);
    /// The queues that the program has set up get packets from now on. @throws weftio::error as eth_rxq, eth_txq
    void start();
    void stop() noexcept;
    /// The receive queue with this number, for rules; nullptr: the program has not started it.
    const eth_rxq* queue(std::uint16_t number);
    /// Whether the program has set up a receive queue with this number.
    bool has_queue(std::uint16_t number);

    /// The port with this DPDK number; nullptr: it is another's.
    static program_port* find(std::uint16_t id);

 private:
    struct receiver {
        rte_mempool* pool = nullptr;
        std::optional<eth_rxq> queue{};
    };

    void run();
    unsigned receive(std::uint16_t number);
    void deliver(std::uint16_t number, std::uint32_t index);
    unsigned send(std::uint16_t number);
    bool enqueue(void* mbuf);

    std::atomic<std::uint16_t> id_{0};
    std::atomic<bool> is_open_{false};
    std::optional<port> port_;
    std::vector<rte_ring*> receive_rings_, send_rings_;
    std::mutex mutex_; ///< of what follows, except in the thread
    std::vector<receiver> receivers_;
    std::optional<eth_txq> sender_;
    std::optional<buf_arr> frames_;
    std::uint32_t next_frame_ = 0;
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

} // namespace weftio::doca
