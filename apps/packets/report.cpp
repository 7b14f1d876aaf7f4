#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <nlohmann/json.hpp>

#include "names.hpp"

namespace weftio::packets {

namespace {

struct line {
    const char* name;
    const char* text;
    bool answered;
};

constexpr line lines[] = {
#define PACKETS_LINE(name, text) {#name, text, true},
    PACKETS_ANSWERED(PACKETS_LINE)
#undef PACKETS_LINE
#define PACKETS_LINE(name, text) {#name, text, false},
        PACKETS_DROPPED(PACKETS_LINE)
#undef PACKETS_LINE
};
static_assert(std::size(lines) == VERDICTS);

std::string duration_text(double ns)
{
    return ns < 1e6 ? fmt::format("{:.1f} us", ns / 1e3) : fmt::format("{:.1f} ms", ns / 1e6);
}

std::string times_text(const packets_counters& counters)
{
    const auto middle = answer_time(counters, 50), high = answer_time(counters, 99);
    return middle ? fmt::format("answer time p50 {}, p99 {}\n", duration_text(*middle), duration_text(*high)) : "";
}

std::string row(const char* text, std::uint64_t total, std::uint64_t before, double seconds)
{
    return fmt::format("  {:<48} {:>14} {:>12.0f}\n", text, total, static_cast<double>(total - before) / seconds);
}

std::string verdict_rows(const totals& now, const totals& before, double seconds)
{
    std::string rows;
    for (std::size_t each = 0; each < VERDICTS; ++each)
        if (now.kernels.packets.verdicts[each] != 0)
            rows += row(lines[each].answered ? lines[each].text : fmt::format("dropped: {}", lines[each].text).c_str(),
                        now.kernels.packets.verdicts[each], before.kernels.packets.verdicts[each], seconds);
    return rows;
}

/// What the HTTP server does; nothing while it has had nothing to do.
std::string server_rows(const totals& now, const totals& before, double seconds)
{
    const tcp_counters& tcp = now.kernels.tcp;
    if (tcp.syn_received + tcp.cookies_sent == 0)
        return "";
    std::string rows =
        fmt::format("  {:<48} {:>14}\n", "TCP connections now, including TIME_WAIT", now.kernels.packets.connections);
    rows += row("TCP connections opened", tcp.opened, before.kernels.tcp.opened, seconds);
    if (tcp.low_mss != 0)
        rows += row(fmt::format("TCP SYNs with an MSS below {0}, which get {0}", int{TCP_LOWEST_MSS}).c_str(),
                    tcp.low_mss, before.kernels.tcp.low_mss, seconds);
    if (tcp.retransmitted != 0)
        rows += row("TCP segments retransmitted", tcp.retransmitted, before.kernels.tcp.retransmitted, seconds);
    rows += row("HTTP requests", now.kernels.packets.requests, before.kernels.packets.requests, seconds);
    if (now.kernels.packets.refused_requests != 0)
        rows += row("HTTP requests refused", now.kernels.packets.refused_requests,
                    before.kernels.packets.refused_requests, seconds);
    return rows;
}

/// Every counter by its name in /stats.
nlohmann::ordered_json counters_json(const packets_report& report)
{
    std::uint64_t words[sizeof report / sizeof(std::uint64_t)];
    std::memcpy(words, &report, sizeof words);
    nlohmann::ordered_json members;
    std::size_t each = 0;
    for (const counter_name& counter : counter_names())
        members[counter.name] = words[each++];
    return members;
}

nlohmann::ordered_json verdicts_json(const packets_counters& counters)
{
    nlohmann::ordered_json members;
    for (std::size_t each = 0; each < VERDICTS; ++each)
        members[lines[each].name] = counters.verdicts[each];
    return members;
}

} // namespace

std::optional<double> answer_time(const packets_counters& counters, double percent)
{
    const std::uint64_t all = std::accumulate(std::begin(counters.times), std::end(counters.times), std::uint64_t{0});
    if (all == 0)
        return {};
    const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(all) * percent / 100));
    std::uint64_t seen = 0;
    unsigned bucket = 0;
    for (; bucket + 1 < PACKETS_TIMES; ++bucket)
        if (seen += counters.times[bucket]; seen >= wanted)
            break;
    return std::ldexp(64.0 * (bucket % 4 + 5), static_cast<int>(bucket / 4)); // as time_bucket() in counters.h has it
}

std::string start_text(const packet_server& server, const command& wanted)
{
    std::vector<std::string> names;
    for (const address& own : server.addresses())
        names.push_back(with_prefix(own));
    const unsigned kernels = wanted.server.queues;
    std::string services;
    if (wanted.server.http_port != 0)
        services =
            fmt::format("HTTP at port {}{}, ", wanted.server.http_port,
                        wanted.server.root.empty() ? "" : fmt::format(" with the files of {}", wanted.server.root));
    if (wanted.server.echo_port != 0)
        services += fmt::format("echo at UDP port {}, ", wanted.server.echo_port);
    std::string text =
        fmt::format("weftio-packets: {} on {} ({}, MTU {}), {} kernel{} on {}; {}Ctrl-C ends\n", fmt::join(names, ", "),
                    server.port().spec(), server.port().driver(), server.port().mtu(), kernels, kernels == 1 ? "" : "s",
                    server.device().name(), services);
    const address& own = wanted.server.addresses[0];
    if (server.port().spec().starts_with("tap:") && !wanted.peer)
        text += fmt::format("In another terminal:  ip addr add {} dev {}; ip link set {} up; ping {}\n",
                            with_prefix(neighbor_of(own)), server.port().spec().substr(4),
                            server.port().spec().substr(4), to_string(own));
    return text;
}

std::string to_table(const totals& now, const totals& before, double seconds)
{
    std::string text = fmt::format("  {:<48} {:>14} {:>12}\n", "", "total", "a second");
    text += row("received", now.kernels.packets.frames, before.kernels.packets.frames, seconds);
    text += row("received, bytes", now.kernels.packets.bytes, before.kernels.packets.bytes, seconds);
    text += verdict_rows(now, before, seconds);
    if (now.port.dropped_total() != 0)
        text += row("dropped by the port", now.port.dropped_total(), before.port.dropped_total(), seconds);
    text += row("sent", now.kernels.packets.sent, before.kernels.packets.sent, seconds);
    text += server_rows(now, before, seconds);
    return text + "  " + times_text(now.kernels.packets);
}

bool is_conserved(const totals& all) noexcept
{
    const packets_counters& kernels = all.kernels.packets;
    const std::uint64_t verdicts =
        std::accumulate(std::begin(kernels.verdicts), std::end(kernels.verdicts), std::uint64_t{0});
    return kernels.frames == verdicts && kernels.sent == all.sent + all.lost &&
           all.port.received == kernels.frames + all.unread + all.port.held + all.port.dropped_total();
}

std::string to_summary(const totals& all, double seconds)
{
    std::string text = fmt::format("\n{:.1f} s: received {}, sent {}\n", seconds, all.port.received, all.sent);
    text += verdict_rows(all, {}, std::max(seconds, 1e-9)) + server_rows(all, {}, std::max(seconds, 1e-9));
    for (const auto& [count, why] :
         {std::pair{all.out_of_buffer, "found no free slot"}, std::pair{all.too_long, "were longer than the MTU"},
          std::pair{all.unread, "arrived too late for a kernel"}, std::pair{all.lost, "could not be sent"}})
        if (count != 0)
            text += fmt::format("  {:<48} {:>14}\n", why, count);
    text += times_text(all.kernels.packets);
    return text + (is_conserved(all) ? "every frame is accounted for\n" : "frames are NOT all accounted for\n");
}

std::string to_json(const totals& all, const packet_server& server, double seconds)
{
    const packets_counters& kernels = all.kernels.packets;
    const nlohmann::ordered_json made{{"port", server.port().spec()},
                                      {"driver", server.port().driver()},
                                      {"seconds", seconds},
                                      {"received", kernels.frames},
                                      {"received_bytes", kernels.bytes},
                                      {"verdicts", verdicts_json(kernels)},
                                      {"dropped_by_port", all.port.dropped_total()},
                                      {"out_of_buffer", all.out_of_buffer},
                                      {"too_long", all.too_long},
                                      {"unread", all.unread},
                                      {"sent", all.sent},
                                      {"sent_bytes", kernels.sent_bytes},
                                      {"lost", all.lost},
                                      {"answer_p50_ns", answer_time(kernels, 50).value_or(0)},
                                      {"answer_p99_ns", answer_time(kernels, 99).value_or(0)},
                                      {"conserved", is_conserved(all)},
                                      {"counters", counters_json(all.kernels)}};
    return made.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n'; // a port's name may be any bytes
}

std::string ping_text(const ping_info& ping, std::uint64_t before_ns)
{
    address from{.version = ping.version};
    std::ranges::copy(ping.source, from.bytes.begin());
    std::string text = fmt::format("ping from {}: {} bytes, identifier {}, sequence {}", to_string(from), ping.bytes,
                                   ping.identifier, ping.sequence);
    if (before_ns != 0)
        text += fmt::format(", {:.3f} ms after the previous one",
                            (static_cast<double>(ping.arrival_ns) - static_cast<double>(before_ns)) / 1e6);
    return text + "\n";
}

} // namespace weftio::packets
