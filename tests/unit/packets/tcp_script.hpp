// Scripts of one connection, similar to packetdrill's. A segment is written as
//
//     FLAGS SEQUENCE[:END] [ack N] [win N] [mss N] [ws N] [ts VALUE ECHO]
//
// FLAGS are letters of S F R P A. Sequence numbers are relative to the initial ones of both ends. out() does not
// compare fields that are not written, except for flags, sequence number and length, which it always compares.
#pragma once

#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tcp_server.hpp"

namespace weftio::test {

class tcp_script : public testing::Test {
 protected:
    /// A segment of a script; fields that are not written are empty.
    struct line {
        std::uint8_t flags = 0;
        std::uint32_t sequence = 0, end = 0;
        std::optional<std::uint32_t> ack, win, mss, ws, ts_value, ts_echo;
    };
    static line parse(const std::string& text);

    /// The peer sends a segment; its payload is peer_content() of its sequence numbers.
    void in(const std::string& text);
    /// Expects that the next segment of the server is this one.
    void out(const std::string& text);
    /// Expects that the server has sent no more segments.
    void nothing();
    /// Drops the segments that the server has sent.
    void forget()
    {
        server.sent.clear();
        read_ = 0;
    }
    void pass(std::uint64_t milliseconds) { server.pass(milliseconds); }

    /// Establishes a connection with MSS 1000, no other options, and a window of 65,535.
    void connect(const std::string& syn = "S 0 win 65535 mss 1000");
    void queue(std::uint32_t bytes) { server.queue(id, bytes); }
    void close() { server.close(id); }
    [[nodiscard]] std::uint32_t events() { return server.session(id).events; }
    [[nodiscard]] tcp_connection& tcp() { return server.connection(id); }
    [[nodiscard]] const tcp_counters& counters() const { return server.endpoint.counters; }
    static char peer_content(std::uint32_t sequence) { return static_cast<char>('a' + sequence % 26); }

    void TearDown() override { EXPECT_EQ(server.inconsistency(), ""); }

    tcp_addresses addresses = {{0, 0, 0xffff, 0xc0000201}, {0, 0, 0xffff, 0xc0000202}};
    std::uint16_t peer_port = 40000, own_port = 80;
    std::uint32_t peer_initial = 5000, initial = 0; // initial: known from the SYN|ACK
    bool listens = true;
    tcp_server server{std::make_shared<tcp_world>()};
    std::uint32_t id = 0;

 private:
    [[nodiscard]] std::string text_of(const tcp_segment& segment, const line& like) const;
    std::size_t read_ = 0; // number of segments of server.sent that were compared
};

} // namespace weftio::test
