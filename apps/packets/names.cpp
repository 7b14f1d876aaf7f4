#include "names.hpp"

#include <cstddef>

#include "kernel/serve.kernel.h"

namespace weftio::packets {

namespace {

constexpr const char* tcp_names[] = {"opened",
                                     "opened_by_cookie",
                                     "closed",
                                     "reset_by_peer",
                                     "aborted",
                                     "timed_out",
                                     "idle_closed",
                                     "syn_received",
                                     "syn_expired",
                                     "cookies_sent",
                                     "cookies_failed",
                                     "table_full",
                                     "low_mss",
                                     "time_wait_reused",
                                     "time_wait_evicted",
                                     "resets_sent",
                                     "refused",
                                     "unknown",
                                     "bad_flags",
                                     "old_timestamps",
                                     "out_of_window",
                                     "out_of_order",
                                     "bad_acknowledgments",
                                     "challenges_sent",
                                     "challenges_withheld",
                                     "retransmitted",
                                     "fast_retransmits",
                                     "timeouts",
                                     "window_probes",
                                     "keep_alive_probes",
                                     "segments_received",
                                     "segments_sent",
                                     "bytes_accepted",
                                     "bytes_acknowledged"};
static_assert(sizeof(tcp_counters) == sizeof(weftio_u64) * std::size(tcp_names), "a name for each counter");

constexpr const char* packet_names[] = {"tcp.connections", "packets.received",   "packets.received_bytes",
                                        "packets.sent",    "packets.sent_bytes", "dns.wrong_names",
                                        "http.requests",   "http.refused"};
static_assert(offsetof(packets_counters, verdicts) == sizeof(weftio_u64) * std::size(packet_names),
              "a name for each counter");

} // namespace

std::vector<counter_name> counter_names()
{
    std::vector<counter_name> names;
    for (const char* const name : tcp_names)
        names.push_back({.name = std::string("tcp.") + name, .kind = HTTP_SUM});
    for (const char* const name : packet_names)
        names.push_back({.name = name, .kind = HTTP_SUM});
#define PACKETS_NAME(word, text) names.push_back({.name = "answered." #word, .kind = HTTP_SUM});
    PACKETS_ANSWERED(PACKETS_NAME)
#undef PACKETS_NAME
#define PACKETS_NAME(word, text) names.push_back({.name = "dropped." #word, .kind = HTTP_SUM});
    PACKETS_DROPPED(PACKETS_NAME)
#undef PACKETS_NAME
    return names;
}

} // namespace weftio::packets
