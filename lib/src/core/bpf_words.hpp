// What libbpf and libxdp say, for the log sink.
#pragma once

namespace weftio::detail {

/// From now on their lines go to the sink and not to stderr: what says "error" as a warning, the rest at debug level.
/// Nothing happens where DPDK's drivers have not brought them along.
void take_bpf_words();

} // namespace weftio::detail
