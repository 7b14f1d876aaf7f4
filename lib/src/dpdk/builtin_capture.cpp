// The bytes of the built-in capture. A compiler cache keeps no file that embeds others, so this one is small.
#include "core/embed.hpp"
#include "dpdk/capture.hpp"

WEFTIO_EMBED(builtin_capture_bytes, "dpdk/builtin.pcap");

std::string_view weftio::dpdk::builtin_capture() noexcept
{
    return builtin_capture_bytes();
}
