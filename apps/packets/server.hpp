// The server: a port, its queues, and the kernels that own them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/serve.kernel.h"
#include "options.hpp"
#include "weftio/weftio.hpp"

namespace weftio::packets {

/// Sum of the counters of all kernels, and what the port says beside them.
struct totals {
    packets_report kernels{};
    port_counters port{};
    std::uint64_t out_of_buffer = 0; ///< frames that found no free slot of a receive queue
    std::uint64_t too_long = 0;
    std::uint64_t unread = 0; ///< delivered to queues, and not yet taken by a kernel
    std::uint64_t sent = 0;   ///< frames that the NIC has sent
    std::uint64_t lost = 0;   ///< frames that kernels enqueued and the NIC did not send: a failed queue
};

/// A port whose packets kernels answer.
///
/// - Ownership: owns all it needs; the destructor stops the kernels and closes the port.
/// - Threads: one at a time.
class packet_server {
 public:
    /// Opens port and device and starts the kernels. Blocks until they run: with OpenCL some seconds.
    /// @throws weftio::error what opening ports and devices and launching kernels throws
    explicit packet_server(const server_options& options);
    ~packet_server();
    packet_server(const packet_server&) = delete;
    packet_server& operator=(const packet_server&) = delete;

    const weftio::port& port() const noexcept { return port_; }
    const weftio::device& device() const noexcept { return device_; }
    /// All addresses, the link-local one last.
    const std::vector<address>& addresses() const noexcept { return addresses_; }

    /// Takes the reports of the kernels. Never blocks. Brings a kernel back whose send queue has failed because the
    /// link was down, once the link is up again. Returns a sentence for the user when something happened, else an empty
    /// text.
    /// @throws weftio::error errc::device_error a kernel ended with a fault; errc::closed the port is gone
    std::string look_after();
    /// Calls `visit` for each ping since the last call; they are reported only with server_options::ping_report.
    void for_each_ping(const std::function<void(const ping_info&)>& visit);
    /// As the kernels have reported last. Once they have stopped: exact.
    totals counters() const;
    /// Ends the kernels: the counters are exact afterwards, and nothing is answered any more.
    void stop();

 private:
    struct worker;

    void make_settings(const server_options& options);
    void make_tables(const server_options& options);
    packets_worker describe(const server_options& options, const worker& worker) const;
    memory shared_memory(std::size_t bytes) const;
    void make_workers(const server_options& options);
    void launch(std::size_t number);
    std::string revive(std::size_t number);

    weftio::device device_;
    weftio::port port_;
    bool inline_; ///< kernels run the engines
    std::vector<address> addresses_;
    memory settings_, site_, tcp_settings_, pool_, records_, workers_memory_; ///< of all kernels
    std::vector<std::unique_ptr<worker>> workers_;
    std::uint32_t snapshot_bytes_ = 0; ///< of one /stats
    std::vector<flow> flows_;
    bool stopped_ = false;
};

} // namespace weftio::packets
