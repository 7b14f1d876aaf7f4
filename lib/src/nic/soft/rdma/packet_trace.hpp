// The last packets of a port's queue pairs, for diagnosis after a failure.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "net/pcapng.hpp"

namespace weftio::nic::soft {

/// Keeps the first bytes of the last packets. Called by the engine's thread only, in a turn or in a change between two
/// turns.
class packet_trace {
 public:
    static constexpr std::uint32_t most_packets = 256, most_bytes = 96;

    packet_trace() : ring_(most_packets) {}

    void note(std::span<const std::uint8_t> frame, std::uint32_t whole_bytes, std::uint64_t time_ns,
              net::frame_direction direction) noexcept
    {
        packet& to = ring_[noted_++ % most_packets];
        to.time_ns = time_ns;
        to.whole_bytes = whole_bytes;
        to.kept_bytes = static_cast<std::uint16_t>(frame.size() < most_bytes ? frame.size() : most_bytes);
        to.direction = direction;
        std::memcpy(to.start.data(), frame.data(), to.kept_bytes);
    }
    /// Returns a capture file, the oldest packet first. @param comment  the comment in the file
    std::vector<std::uint8_t> pcapng(std::string_view comment) const;

 private:
    struct packet {
        std::uint64_t time_ns = 0;
        std::uint32_t whole_bytes = 0;
        std::uint16_t kept_bytes = 0;
        net::frame_direction direction{};
        std::array<std::uint8_t, most_bytes> start{};
    };

    std::vector<packet> ring_;
    std::uint64_t noted_ = 0;
};

/// Writes the trace to a new file in `folder`, and logs its path or why it could not be written. One file for each
/// failure of a queue pair; at most 64 per process. Blocks while the file is written.
void write_trace_of_failure(const packet_trace& trace, std::string_view folder, std::uint32_t queue,
                            std::string_view why) noexcept;
/// The folder named by WEFTIO_RDMA_TRACE; empty: none.
std::string_view folder_of_traces() noexcept;

} // namespace weftio::nic::soft
