// Writes what a port sends to a capture file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct rte_mbuf;

namespace weftio::nic {

/// A pcap file with nanosecond timestamps. DPDK's net_pcap ignores write errors and reports such frames as sent, so the
/// engine writes the file itself.
///
/// - Threads: one writes. After a failure the file ends with its last whole frame and takes no more.
class capture_writer {
 public:
    /// Creates or empties the file and writes its head. Throws weftio::error errc::not_found, errc::permission_denied,
    /// errc::device_error. @param spec  of the port, for the error
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
    int descriptor_ = -1;
    int failure_ = 0;
    std::int64_t end_ = 0; ///< bytes of the head and of whole frames
};

} // namespace weftio::nic
