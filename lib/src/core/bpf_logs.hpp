// Sends the log output of libbpf and libxdp to the log sink.
#pragma once

namespace weftio::core {

/// Redirects their log lines from stderr to the sink: lines that contain "error" as warnings, others at debug level.
/// Does nothing if DPDK's drivers have not loaded the two libraries.
void redirect_bpf_logs();

} // namespace weftio::core
