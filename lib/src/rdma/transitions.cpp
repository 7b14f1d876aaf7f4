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
    std::uint32_t must_of_datagram, may_of_datagram;

    constexpr transition of(rdma_service service) const noexcept
    {
        switch (service) {
            case rdma_service::reliable:
                return {.exists = from != rdma_state::send_queue_error,
                        .must = must | must_of_reliable,
                        .may = may | may_of_reliable};
            case rdma_service::unreliable: return {.exists = true, .must = must, .may = may};
            case rdma_service::datagram: return {.exists = true, .must = must_of_datagram, .may = may_of_datagram};
        }
        return {};
    }
};

constexpr std::uint32_t path = peer | path_mtu | peer_queue | receive_psn;
constexpr std::uint32_t repeats = timeout | retry_count | rnr_retry;
constexpr std::uint32_t other = other_path | migration;

/// All transitions except those to RESET and ERR, which exist from every state and set no attributes.
consteval auto make_ways()
{
    using enum rdma_state;
    return std::array{
        row{reset, init, partition_key | rights | port_number, 0, 0, 0, partition_key | queue_key | port_number, 0},
        row{init, init, 0, 0, partition_key | rights | port_number, 0, 0, partition_key | queue_key | port_number},
        row{init, ready_to_receive, path, most_reads_of_peer | min_rnr_timer, partition_key | rights | other_path, 0, 0,
            partition_key | queue_key},
        row{ready_to_receive, ready_to_send, send_psn, repeats | most_reads, present_state | rights | other,
            min_rnr_timer, send_psn, present_state | queue_key},
        row{ready_to_send, ready_to_send, 0, 0, present_state | rights | other, min_rnr_timer, 0,
            present_state | queue_key},
        row{ready_to_send, send_queue_drained, 0, 0, drained_event, 0, 0, drained_event},
        row{send_queue_drained, ready_to_send, 0, 0, present_state | rights | other, min_rnr_timer, 0,
            present_state | queue_key},
        row{send_queue_drained, send_queue_drained, 0, 0, partition_key | rights | peer | other,
            port_number | repeats | most_reads | most_reads_of_peer | min_rnr_timer, 0, partition_key | queue_key},
        row{send_queue_error, ready_to_send, 0, 0, present_state | rights, 0, 0, present_state | queue_key},
    };
}
constexpr auto ways = make_ways();

/// "path_mtu, peer_queue". Empty: queue_pair_attributes has none of them.
std::string names_of(std::uint32_t attributes)
{
    std::string all;
    for_each_attribute([&](attribute bit, const char* name, auto, auto) {
        if ((attributes & bit) != 0)
            all += (all.empty() ? "" : ", ") + std::string(name);
    });
    return all;
}

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
    std::uint32_t set = 0;
    for_each_attribute([&](attribute bit, const char*, auto member, auto) { set |= given.*member ? bit : 0u; });
    return set;
}

void require_transition(std::uint32_t queue, rdma_service service, rdma_state from, rdma_state to,
                        const queue_pair_attributes& given)
{
    const transition way = transition_of(service, from, to);
    const std::uint32_t set = attributes_of(given);
    const std::string missing = names_of(way.must & ~set), stray = names_of(set & ~(way.must | way.may));
    if (!way.exists)
        throw error(errc::invalid_argument, fmt::format("weftio: queue_pair {}: verbs have no transition from {} to "
                                                        "{}; go RESET, INIT, RTR, RTS, one after the other",
                                                        queue, to_string(from), to_string(to)));
    if (!missing.empty())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: queue_pair {}: the transition from {} to {} needs {}; set that", queue,
                                to_string(from), to_string(to), missing));
    if (!stray.empty())
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: queue_pair {}: the transition from {} to {} does not accept {}; leave that out", queue,
                        to_string(from), to_string(to), stray));
}

} // namespace weftio::rdma
