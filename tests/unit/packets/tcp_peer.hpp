// A TCP client for tests that shares no code with the server: it keeps data that arrives out of order, delays ACKs, and
// retransmits after a fixed timeout. Also a link that drops, duplicates, delays and reorders segments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tcp_server.hpp"

namespace weftio::test {

struct tcp_peer_options {
    std::uint32_t initial = 1;
    std::uint16_t port = 1, mss = 1000;
    std::optional<std::uint8_t> scale{}; ///< offers a window scale
    bool timestamps = false;
    std::uint32_t buffer = 20000; ///< bytes that it accepts beyond the data in order
    bool closes_first = false;
    std::uint64_t sends = 0, wants = 0; ///< bytes to send and to receive
};

class tcp_peer {
 public:
    tcp_peer(tcp_peer_options options, std::mt19937& random) : options_(options), random_(random) {}

    /// The segments that it sends at `now_ns`: new data, or a retransmission of all data after a timeout.
    std::vector<tcp_message> poll(std::uint64_t now_ns);
    /// Receives a segment; its answers are part of the next poll().
    void receive(const tcp_message& message);

    [[nodiscard]] bool done() const { return server_fin_taken_ && fin_acknowledged_; }
    [[nodiscard]] bool was_reset() const { return reset_; }
    [[nodiscard]] std::uint64_t received() const { return received_; }
    [[nodiscard]] std::uint64_t wrong() const { return wrong_; }
    /// The byte that it sends at a position.
    static char content(std::uint64_t position) { return static_cast<char>('A' + position * 31 % 61); }

 private:
    enum class phase { closed, syn_sent, open };
    tcp_message make(std::uint8_t flags, std::uint64_t position, std::uint32_t count);
    void send_stream(std::vector<tcp_message>& out);
    void take_ack(const tcp_segment& segment);
    void take_payload(const tcp_message& message);
    [[nodiscard]] std::uint64_t window() const;
    [[nodiscard]] bool wants_to_close() const;

    tcp_peer_options options_;
    std::mt19937& random_;
    phase phase_ = phase::closed;
    std::uint32_t server_initial_ = 0, recent_ = 0;
    bool timestamps_ = false, scales_ = false, acknowledge_ = false, reset_ = false;
    bool fin_sent_ = false, fin_acknowledged_ = false, server_fin_taken_ = false;
    std::uint64_t now_ns_ = 0, last_sent_ns_ = 0, delay_ns_ = 0;
    std::uint64_t acknowledged_ = 0, next_ = 0, allowed_ = 0; // positions in the client's stream
    std::uint64_t received_ = 0, wrong_ = 0;                  // bytes of the server's stream
    std::optional<std::uint64_t> server_end_;
    std::map<std::uint64_t, std::string> early_;
};

struct tcp_link_options {
    double loss = 0, doubles = 0, late = 0;
    std::uint64_t delay_ns = 2'000'000;
};

/// Messages in one direction.
class tcp_link {
 public:
    tcp_link(tcp_link_options options, std::mt19937& random) : options_(options), random_(random) {}
    void send(const tcp_message& message, std::uint64_t now_ns);
    std::vector<tcp_message> arrived(std::uint64_t now_ns);

 private:
    [[nodiscard]] bool happens(double probability) const
    {
        return random_() < static_cast<std::uint64_t>(probability * 0x1p32);
    }
    tcp_link_options options_;
    std::mt19937& random_;
    std::multimap<std::uint64_t, tcp_message> under_way_;
};

} // namespace weftio::test
