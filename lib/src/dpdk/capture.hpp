// Capture files as ports: what DPDK's net_pcap does not check.
#pragma once

#include <string>
#include <string_view>

namespace weftio::nic {

/// A path under which the capture that is part of the library can be read for as long as the process lives.
std::string builtin_capture_path();

/// Throws weftio::error when `path` cannot be read as a capture of Ethernet frames. `spec` is for the text.
void require_capture(std::string_view spec, const std::string& path);

/// Whether a capture ends inside a record, or has a record that cannot be one. Reads record headers only.
bool capture_is_damaged(const std::string& path);

} // namespace weftio::nic
