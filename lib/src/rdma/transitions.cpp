#include "rdma/transitions.hpp"

#include <fmt/format.h>

#include <array>

#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

struct row {
    rdma_state from, to;
    std::uint32_t must, must_of_reliable; ///< RC: both; UC: the first
    std::uint32_t may, may_of_reliable;

    constexpr transition of(rdma_service service) const noexcept
    {
        switch (service) {
            case rdma_service::reliable:
                return {.exists = from != rdma_state::send_queue_error,
                        .must = must | must_of_reliable,
                        .may = may | may_of_reliable};
            case rdma_service::unreliable: return {.exists = true, .must = must, .may = may};
        }
        return {};
    }
};

constexpr std::uint32_t path = peer | path_mtu | peer_queue | receive_psn;
constexpr std::uint32_t repeats = timeout | retry_count | rnr_retry;

/// All transitions except those to RESET and ERR, which exist from every state and set no attributes.
consteval auto make_ways()
{
    using enum rdma_state;
    return std::array{
        row{reset, init, partition_key | rights, 0, 0, 0},
        row{init, init, 0, 0, partition_key | rights, 0},
        row{init, ready_to_receive, path, most_reads_of_peer | min_rnr_timer, partition_key | rights, 0},
        row{ready_to_receive, ready_to_send, send_psn, repeats | most_reads, rights, min_rnr_timer},
        row{ready_to_send, ready_to_send, 0, 0, rights, min_rnr_timer},
        row{ready_to_send, send_queue_drained, 0, 0, 0, 0},
        row{send_queue_drained, ready_to_send, 0, 0, rights, min_rnr_timer},
        row{send_queue_drained, send_queue_drained, 0, 0, partition_key | rights | peer,
            repeats | most_reads | most_reads_of_peer | min_rnr_timer},
        row{send_queue_error, ready_to_send, 0, 0, rights, 0},
    };
}
constexpr auto ways = make_ways();

constexpr std::array<const char*, all_attributes> names{
    "partition_key",      "rights",     "peer_address",  "path_mtu", "peer_queue",  "receive_psn", "send_psn",
    "most_reads_of_peer", "most_reads", "min_rnr_timer", "timeout",  "retry_count", "rnr_retry"};

} // namespace

transition transition_of(rdma_service service, rdma_state from, rdma_state to) noexcept
{
    if (to == rdma_state::reset || to == rdma_state::error)
        return {.exists = true};
    for (const row& way : ways)
        if (way.from == from && way.to == to)
            return way.of(service);
    return {};
}

std::uint32_t attributes_of(const queue_pair_attributes& given) noexcept
{
    return (given.partition_key ? partition_key : 0u) | (given.rights ? rights : 0u) |
           (given.peer_address ? peer : 0u) | (given.path_mtu ? path_mtu : 0u) | (given.peer_queue ? peer_queue : 0u) |
           (given.receive_psn ? receive_psn : 0u) | (given.send_psn ? send_psn : 0u) |
           (given.most_reads_of_peer ? most_reads_of_peer : 0u) | (given.most_reads ? most_reads : 0u) |
           (given.min_rnr_timer ? min_rnr_timer : 0u) | (given.timeout ? timeout : 0u) |
           (given.retry_count ? retry_count : 0u) | (given.rnr_retry ? rnr_retry : 0u);
}

std::string names_of(std::uint32_t attributes)
{
    std::string all;
    for (unsigned each = 0; each != all_attributes; ++each)
        if ((attributes >> each & 1) != 0)
            all += (all.empty() ? "" : ", ") + std::string(names[each]);
    return all;
}

void require_transition(std::uint32_t queue, rdma_service service, rdma_state from, rdma_state to,
                        const queue_pair_attributes& given)
{
    const transition way = transition_of(service, from, to);
    const std::uint32_t set = attributes_of(given), missing = way.must & ~set, other = set & ~(way.must | way.may);
    if (!way.exists)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: verbs have no transition from {} to "
                                                        "{}; go RESET, INIT, RTR, RTS, one after the other",
                                                        queue, to_string(from), to_string(to)));
    if (missing != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: queue_pair {}: the transition from {} to {} needs {}; set that", queue,
                                to_string(from), to_string(to), names_of(missing)));
    if (other != 0)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: queue_pair {}: the transition from {} to {} does not accept {}; leave that out", queue,
                        to_string(from), to_string(to), names_of(other)));
}

} // namespace weftio::rdma
