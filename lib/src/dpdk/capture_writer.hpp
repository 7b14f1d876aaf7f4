// Writes what a port sends to a capture file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dpdk/capture_claim.hpp"

struct rte_mbuf;

namespace weftio::dpdk {

/// A pcap file with nanosecond timestamps, written by the engine itself: DPDK's net_pcap ignores write errors and
/// reports such frames as sent.
///
/// - Threads: one writes.
/// - Errors: after a failure the file ends with its last whole frame, and the writer takes no more.
class capture_writer {
 public:
    /// Creates or truncates the file and writes its header. Throws weftio::error errc::not_found,
    /// errc::permission_denied, errc::in_use, errc::invalid_argument, errc::device_error. @param spec  of the port, for
    /// the error text
    capture_writer(std::string_view spec, const std::string& path);
    capture_writer(const capture_writer&) = delete;
    capture_writer& operator=(const capture_writer&) = delete;
    ~capture_writer();

    /// Writes frames in order and frees their mbufs, until one cannot be written. Blocks as long as the file does.
    /// Returns how many frames it took.
    std::uint16_t write(rte_mbuf** frames, std::uint16_t count) noexcept;
    /// errno of the failed write; 0 if none has failed.
    int failure() const noexcept { return failure_; }

 private:
    void begin(std::string_view spec, const std::string& path);

    capture_claim claim_;
    int descriptor_ = -1;
    int failure_ = 0;
    std::int64_t end_ = 0; ///< file length up to the last whole frame
};

/// Checks that the file can be written, and creates it if it is missing. Does not open a pipe, whose reader would see
/// an end of file. Throws what the constructor of capture_writer throws.
void require_writable(std::string_view spec, const std::string& path);

} // namespace weftio::dpdk
