#include "cm/agreement.hpp"

#include <algorithm>
#include <bit>

namespace weftio::cm {

namespace {

constexpr std::uint16_t permissive_lid = 0xffff; // RoCE has none

template <std::size_t size>
void copy(std::span<const std::uint8_t> from, private_bytes<size>& to, std::size_t at = 0)
{
    std::copy_n(from.begin(), std::min(from.size(), size - at), to.begin() + static_cast<std::ptrdiff_t>(at));
}

std::uint8_t code_of_mtu(std::uint32_t bytes) noexcept
{
    return static_cast<std::uint8_t>(std::bit_width(bytes) - 8); // 256 bytes: 1
}

} // namespace

req request_of(const proposal& ours, std::uint64_t service, const ip_header& ports, std::span<const std::uint8_t> data)
{
    constexpr std::uint8_t response_timeout = 16; // 0.27 s; the receiver sends MRA where its user takes longer
    constexpr std::uint8_t most_retries = 15;
    req made{.service = service,
             .queue = ours.queue,
             .responder_resources = ours.responder_resources,
             .initiator_depth = ours.initiator_depth,
             .remote_response_timeout = response_timeout,
             .transport = ours.transport,
             .flow_control = ours.flow_control,
             .first_psn = ours.first_psn,
             .local_response_timeout = response_timeout,
             .retry_count = ours.retry_count,
             .path_mtu = code_of_mtu(ours.path_mtu),
             .rnr_retry_count = ours.rnr_retry_count,
             .most_retries = most_retries,
             .shared_receives = ours.shared_receives};
    made.primary.local_lid = made.primary.remote_lid = permissive_lid;
    made.primary.traffic_class = ours.traffic_class;
    made.primary.hop_limit = ours.hop_limit;
    made.primary.ack_timeout = ours.ack_timeout;
    write_ip_header(std::span(made.data).first<ip_header::bytes>(), ports);
    copy(data, made.data, ip_header::bytes);
    return made;
}

rep reply_of(const proposal& ours, std::span<const std::uint8_t> data)
{
    constexpr std::uint8_t no_failover = 1;
    rep made{.queue = ours.queue,
             .first_psn = ours.first_psn,
             .responder_resources = ours.responder_resources,
             .initiator_depth = ours.initiator_depth,
             .failover = no_failover,
             .flow_control = ours.flow_control,
             .rnr_retry_count = ours.rnr_retry_count,
             .shared_receives = ours.shared_receives};
    copy(data, made.data);
    return made;
}

agreement agreed_by_active(const req& sent, const rep& received)
{
    return {.transport = sent.transport,
            .peer_queue = received.queue,
            .receive_psn = sent.first_psn,
            .send_psn = received.first_psn,
            .path_mtu = 128u << sent.path_mtu,
            .most_reads_of_peer = received.initiator_depth,
            .most_reads = received.responder_resources,
            .timeout = sent.primary.ack_timeout,
            .retry_count = sent.retry_count,
            .rnr_retry = received.rnr_retry_count};
}

agreement asked_of_passive(const req& received)
{
    return {.transport = received.transport,
            .peer_queue = received.queue,
            .receive_psn = 0,
            .send_psn = received.first_psn,
            .path_mtu = 128u << received.path_mtu,
            .most_reads_of_peer = received.initiator_depth,
            .most_reads = received.responder_resources,
            .timeout = received.primary.ack_timeout,
            .retry_count = received.retry_count,
            .rnr_retry = received.rnr_retry_count};
}

agreement agreed_by_passive(const req& received, const rep& sent)
{
    agreement made = asked_of_passive(received);
    made.receive_psn = sent.first_psn;
    made.most_reads_of_peer = sent.responder_resources;
    made.most_reads = sent.initiator_depth;
    return made;
}

} // namespace weftio::cm
