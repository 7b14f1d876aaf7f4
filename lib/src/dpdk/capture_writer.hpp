// Writes what a port sends to a capture file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dpdk/capture_claim.hpp"

struct rte_mbuf;

namespace weftio::nic {

/// A pcap file with nanosecond timestamps. DPDK's net_pcap ignores write errors and reports such frames as sent, so the
/// engine writes the file itself.
///
/// - Threads: one writes. After a failure the file ends with its last whole frame and takes no more.
class capture_writer {
 public:
    /// Creates or empties the file and writes its head. Throws weftio::error errc::not_found, errc::permission_denied,
    /// errc::in_use, errc::invalid_argument, errc::device_error. @param spec  of the port, for the error
    capture_writer(std::string_view spec, const std::string& path);
    capture_writer(const capture_writer&) = delete;
    capture_writer& operator=(const capture_writer&) = delete;
    ~capture_writer();

    /// Writes frames and frees their mbufs, in order, until one cannot be written. Blocks as long as the file does.
    /// Returns how many it took.
    std::uint16_t write(rte_mbuf** frames, std::uint16_t count) noexcept;
    /// errno of the write that failed; 0: none.
    int failure() const noexcept { return failure_; }

 private:
    void begin(std::string_view spec, const std::string& path);

    capture_claim claim_;
    int descriptor_ = -1;
    int failure_ = 0;
    std::int64_t end_ = 0; ///< bytes of the head and of whole frames
};

/// Sees that the file can be written, and creates it if need be. A pipe is left alone: its reader would take this for
/// all that comes. Throws as the constructor of capture_writer does.
void require_writable(std::string_view spec, const std::string& path);

} // namespace weftio::nic
