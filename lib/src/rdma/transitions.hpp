// The state transitions of a queue pair, with the attributes that must and may be set.
#pragma once

#include <cstdint>
#include <string>

#include "net/roce_connection.hpp"
#include "weftio/queue_pair.hpp"

namespace weftio::rdma {

/// Attributes, one bit for each: enum ibv_qp_attr_mask of verbs. queue_pair_attributes lacks those marked "verbs only".
enum attribute : std::uint32_t {
    next_state = 1u << 0,    ///< verbs only
    present_state = 1u << 1, ///< verbs only
    drained_event = 1u << 2, ///< verbs only
    rights = 1u << 3,
    partition_key = 1u << 4,
    port_number = 1u << 5, ///< verbs only
    queue_key = 1u << 6,
    peer = 1u << 7,
    path_mtu = 1u << 8,
    timeout = 1u << 9,
    retry_count = 1u << 10,
    rnr_retry = 1u << 11,
    receive_psn = 1u << 12,
    most_reads = 1u << 13,
    other_path = 1u << 14, ///< verbs only
    min_rnr_timer = 1u << 15,
    send_psn = 1u << 16,
    most_reads_of_peer = 1u << 17,
    migration = 1u << 18, ///< verbs only
    peer_queue = 1u << 20,
};

/// No member of net::roce_connection with a range from 0.
struct special {};
/// A member of net::roce_connection, from 0 to `most`.
template <class T>
struct number {
    T net::roce_connection::*to;
    std::uint32_t most;
};
template <class T> // Clang 14 deduces no aggregates
number(T net::roce_connection::*, std::uint32_t)->number<T>;

/// All attributes of queue_pair_attributes. Calls each(attribute, name, member, number or special).
template <class Each>
constexpr void for_each_attribute(Each&& each)
{
    using from = queue_pair_attributes;
    using to = net::roce_connection;
    each(partition_key, "partition_key", &from::partition_key, number{&to::partition_key, 0xffff});
    each(rights, "rights", &from::rights, special{});
    each(peer, "peer_address", &from::peer_address, special{});
    each(path_mtu, "path_mtu", &from::path_mtu, special{});
    each(peer_queue, "peer_queue", &from::peer_queue, number{&to::peer_queue, 0xffffff});
    each(queue_key, "queue_key", &from::queue_key, number{&to::queue_key, UINT32_MAX});
    each(receive_psn, "receive_psn", &from::receive_psn, number{&to::receive_psn, 0xffffff});
    each(send_psn, "send_psn", &from::send_psn, number{&to::send_psn, 0xffffff});
    each(most_reads_of_peer, "most_reads_of_peer", &from::most_reads_of_peer, number{&to::most_reads_of_peer, 16});
    each(most_reads, "most_reads", &from::most_reads, number{&to::most_reads, 16});
    each(min_rnr_timer, "min_rnr_timer", &from::min_rnr_timer, number{&to::min_rnr_timer, 31});
    each(timeout, "timeout", &from::timeout, number{&to::timeout, 31});
    each(retry_count, "retry_count", &from::retry_count, number{&to::retry_count, 7});
    each(rnr_retry, "rnr_retry", &from::rnr_retry, number{&to::rnr_retry, 7});
}

/// The attributes that one transition must and may set.
struct transition {
    bool exists = false;
    std::uint32_t must = 0, may = 0;

    /// Whether the transition exists, and takes exactly these attributes.
    bool takes(std::uint32_t set) const noexcept
    {
        return exists && (must & ~set) == 0 && (set & ~(must | may | next_state)) == 0;
    }
};

/// The table of verbs (InfiniBand 11.2.5.2 and 11.2.5.3, ibv_modify_qp(3)).
transition transition_of(rdma_service service, rdma_state from, rdma_state to) noexcept;
/// The attributes that are set in `given`.
std::uint32_t attributes_of(const queue_pair_attributes& given) noexcept;
/// @throws weftio::error errc::invalid_argument the table does not have this transition, or not with these attributes
void require_transition(std::uint32_t queue, rdma_service service, rdma_state from, rdma_state to,
                        const queue_pair_attributes& given);

} // namespace weftio::rdma
