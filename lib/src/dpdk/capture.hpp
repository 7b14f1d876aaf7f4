// Checks of capture files that DPDK's net_pcap does not make.
#pragma once

#include <string>
#include <string_view>

namespace weftio::dpdk {

/// The bytes of the built-in capture.
std::string_view builtin_capture() noexcept;

/// Path of the built-in capture, readable for as long as the process lives.
std::string builtin_capture_path();

/// Throws weftio::error if `path` cannot be read as a capture of Ethernet frames. `spec` appears in the error text.
void require_capture(std::string_view spec, const std::string& path);

/// Whether a capture ends inside a record, or has a malformed record. Reads record headers only.
bool capture_is_damaged(const std::string& path);

} // namespace weftio::dpdk
