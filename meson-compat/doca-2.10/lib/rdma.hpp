// RDMA contexts and their connections.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctx.hpp"
#include "dev.hpp"
#include "doca_gpunetio_dev_rdma.cuh"
#include "doca_rdma.h"
#include "weftio/progress.hpp"
#include "weftio/rdma_connect.hpp"
#include "weftio/rdma_connections.hpp"

struct doca_rdma_addr {
    static constexpr const char* noun = "RDMA address";

    std::string address; ///< IPv4 or IPv6
    std::uint16_t port = 0;
};

/// One way to a peer. Members are used by the thread that makes progress, but for those that say otherwise.
struct doca_rdma_connection {
    static constexpr const char* noun = "RDMA connection";
    enum class life { requested, exported, connecting, established, ended };

    doca_rdma_connection(std::weak_ptr<doca_rdma> of, life begin) : rdma(std::move(of)), state(begin) {}
    ~doca_rdma_connection() { gives_up = true; } // then `pending` ends soon

    const std::weak_ptr<doca_rdma> rdma;
    life state;
    std::uint32_t index = 0; ///< of the queue pair, unless it is a request
    doca_data user_data{};
    std::string text;                        ///< what the peer needs
    std::atomic<bool> gives_up = false;      ///< read by the thread that connects
    std::atomic<bool> peer_has_left = false; ///< written by the connection manager
    std::optional<weftio::rdma_request> request;
    std::optional<weftio::rdma_connection> held; ///< by the connection manager
    std::future<weftio::rdma_connection> pending;

    /// What it asks of the connection manager.
    weftio::rdma_connect_options options()
    {
        return {.stop = [this] { return gives_up.load(); }, .on_disconnect = [this] { peer_has_left = true; }};
    }
};

struct doca_rdma : doca_ctx, std::enable_shared_from_this<doca_rdma> {
    static constexpr const char* noun = "RDMA context";
    using life = doca_rdma_connection::life;
    using connection_pointer = std::shared_ptr<doca_rdma_connection>;
    enum class event { request, established, failure, disconnection };

    explicit doca_rdma(std::shared_ptr<doca_dev> on) : dev(std::move(on)) {}
    ~doca_rdma() override;

    void start() override;
    void stop() override;
    bool progress() override;
    doca_gpu_dev_rdma* handle() const;
    weftio::rdma_queue& queue(std::uint32_t index) { return single_ ? *single_ : (*several_)[index]; }

    /// A connection with the next free index. @throws failure DOCA_ERROR_FULL
    connection_pointer add(life begin);
    /// Gives a request the next free index. @throws failure DOCA_ERROR_FULL
    void place(const connection_pointer& connection);
    void leave(const connection_pointer& connection); ///< its index is free again
    void set_established(const connection_pointer& connection);
    void connect(const connection_pointer& connection, std::string_view text);
    void connect_to(const doca_rdma_addr& address, doca_data user_data);
    void accept(const connection_pointer& connection, std::vector<std::uint8_t> private_data);
    void disconnect(const connection_pointer& connection);
    void listen(std::uint16_t port);
    void stop_listening(std::uint16_t port);

    const std::shared_ptr<doca_dev> dev;
    std::uint32_t gid_index = 0, send_entries = 1024, receive_entries = 1024, connections = 1;
    weftio::access rights = weftio::access::none;
    doca_rdma_connection_request_cb_t on_request = nullptr;
    doca_rdma_connection_established_cb_t on_established = nullptr;
    doca_rdma_connection_failure_cb_t on_failure = nullptr;
    doca_rdma_connection_disconnection_cb_t on_disconnection = nullptr;

 private:
    void make_queues();
    void make_handle();
    void publish(std::uint32_t index);
    void failed(std::uint32_t index, const weftio::send_failure& failure);
    bool hear_requests();
    void hear(const connection_pointer& connection);
    void tell(event what, const connection_pointer& connection);
    void call_back(event what, doca_rdma_connection& connection) const;
    void end(const connection_pointer& connection);
    void end_all();

    std::shared_ptr<weftio::rdma_device> at_;
    std::optional<weftio::rdma_queue> single_; ///< of the one connection
    std::optional<weftio::rdma_connections> several_;
    std::optional<weftio::progress_engine> engine_;
    weftio::memory table_;                     ///< doca_gpu_dev_rdma and its pointers
    std::vector<weftio::memory> blocks_;       ///< weftio_doca_connection of each
    std::vector<connection_pointer> slots_;    ///< by index; null: it was never used
    std::vector<connection_pointer> requests_; ///< not answered yet
    std::map<std::uint16_t, weftio::rdma_listener> listeners_;
    std::vector<std::pair<event, connection_pointer>> events_; ///< whose callbacks are due
};
