// Chooses one of two ports for each frame, like tcpprep(1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/capture.hpp"
#include "send/link_type.hpp"

namespace weftio::replay {

enum class side { first, second };

struct split_options {
    enum class rule {
        none,   ///< all frames through the first port
        client, ///< clients through the first, servers through the second, others through the first
        server, ///< the same, but others through the second
        cidr,   ///< frames from one of the networks through the first
        port,   ///< frames to a TCP or UDP port below 1024 through the first
    } by = rule::none;
    struct network {
        std::array<std::uint8_t, 16> address{};
        unsigned bytes = 4, bits = 0;
    };
    std::vector<network> networks{};
};

/// Reads "client", "server", "port" or "cidr=10.0.0.0/8,fd00::/8"; nothing when it is not.
std::optional<split_options> parse_split(std::string_view text);

/// Sorts frames one after the other. Of two addresses, the client is the one that sends first, unless a TCP SYN tells
/// otherwise. Remembers a million pairs; frames of later pairs count as neither. One thread at a time.
class splitter {
 public:
    explicit splitter(split_options options) : options_(std::move(options)) {}

    side side_of(const frame& captured);

 private:
    using pair_of_addresses = std::array<std::uint8_t, 32>;
    struct hash {
        std::size_t operator()(const pair_of_addresses& addresses) const noexcept;
    };

    side by_client(const struct ip_packet& packet);

    split_options options_;
    ethernet_maker maker_;
    std::vector<std::uint8_t> room_;
    std::unordered_map<pair_of_addresses, bool, hash> lower_is_client_;
};

} // namespace weftio::replay
