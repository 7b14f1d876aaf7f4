// A TCP endpoint in host memory with its kernel loop, for tests: segments go in and out as bytes, and the test sets the
// time. Each block has a server; several servers may share the connection records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/tcp/endpoint.h"

namespace weftio::test {

/// A sent segment: header fields and payload, as tcp_parse reads them.
struct tcp_message {
    tcp_addresses addresses; // as the server sees them: `peer` is the client
    tcp_segment segment;
    std::string payload;
};

/// The test's data of a connection, in place of the application's part of the record.
struct tcp_session {
    std::string received;
    std::uint32_t events = 0;
    std::uint64_t queued = 0;
    std::uint32_t acknowledged = 0;
};

/// Records and settings that blocks share.
struct tcp_world {
    struct record {
        tcp_connection tcp;
        std::uint64_t application;
    };
    explicit tcp_world(std::uint32_t limit = 64) : records(limit)
    {
        tcp_default_settings(&settings);
        settings.key[0] = 0x0706050403020100;
        settings.key[1] = 0x0f0e0d0c0b0a0908;
        pool.limit = limit;
    }
    tcp_settings settings{};
    tcp_pool pool{};
    std::vector<record> records;
};

class tcp_server {
 public:
    explicit tcp_server(std::shared_ptr<tcp_world> world, std::uint32_t buckets = 64);
    tcp_server(tcp_server&&) = default; // the endpoint points to elements of vectors, whose addresses do not change
    tcp_server& operator=(tcp_server&&) = default;

    /// Writes the header of the segment, parses it and passes it to the endpoint. `listens`: see tcp_receive.
    void receive(const tcp_message& message, bool listens = true);
    /// As receive(), for the bytes of a packet. Returns the result of tcp_parse.
    std::uint32_t receive_bytes(const tcp_addresses& addresses, const std::vector<std::uint8_t>& bytes,
                                bool listens = true);
    /// Serves the connections that are due, `most` at most.
    void run(std::uint32_t most = 1u << 20);
    void pass(std::uint64_t milliseconds);

    void queue(std::uint32_t connection, std::uint32_t bytes);
    void close(std::uint32_t connection);
    void abort(std::uint32_t connection);
    void open_window(std::uint32_t connection, std::uint32_t bytes);

    tcp_connection& connection(std::uint32_t number) { return world_->records[number - 1].tcp; }
    tcp_session& session(std::uint32_t number) { return sessions_[number]; }
    [[nodiscard]] std::uint32_t now() const { return tcp_ticks(now_ns); }
    tcp_settings& settings() { return world_->settings; }
    tcp_world& world() { return *world_; }
    /// Checks that lists, buckets and counts agree with the records of this block.
    [[nodiscard]] std::string inconsistency() const;

    /// The byte of every stream at a position.
    static char content(std::uint64_t position) { return static_cast<char>(position * 2654435761u >> 13); }

    std::uint64_t now_ns = 1'000'000'000'000;
    std::uint32_t room = ~0u;   ///< free entries of the send ring; tests refill it
    std::uint32_t window = ~0u; ///< bytes that the application can accept; ~0: any number
    std::uint32_t last = 0;     ///< connection that was served last
    std::vector<tcp_message> sent;
    std::function<void(tcp_server&, std::uint32_t connection, std::uint32_t events)> application;
    tcp_endpoint endpoint{};

 private:
    void serve(tcp_result& result, const char* payload);
    void take(tcp_result& result, const char* payload);
    void drain(std::uint32_t connection);
    void send(const tcp_addresses& addresses, const tcp_segment& segment, std::uint64_t position);

    std::shared_ptr<tcp_world> world_;
    std::vector<weftio_u32> buckets_, lists_;
    std::map<std::uint32_t, tcp_session> sessions_;
};

} // namespace weftio::test
