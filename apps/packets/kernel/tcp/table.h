/*
 * Where connections are: records of all blocks under one lock, and of each block its buckets by name, its timing wheel
 * and its list of those that wait in TIME_WAIT. Connections are numbered from 1; 0 is none.
 */
#pragma once

#include "cookie.h"
#include "timer.h"

/** Takes a free record, or TCP_NONE. Waits only for the lock, which is held for a few instructions. */
WEFTIO_FN weftio_u32 tcp_pool_take(WEFTIO_GLOBAL struct tcp_endpoint* endpoint)
{
    WEFTIO_GLOBAL struct tcp_pool* pool = endpoint->pool;
    weftio_u32 taken;

    for (weftio_u32 attempt = 0; weftio_compare_exchange_acquire_u32(&pool->lock, 0, 1) != 0; ++attempt)
        weftio_relax(attempt);
    taken = pool->first_free;
    if (taken != TCP_NONE)
        pool->first_free = tcp_connection_of(endpoint, taken)->next;
    else if (pool->used_once < pool->limit)
        taken = ++pool->used_once;
    if (taken != TCP_NONE)
        ++pool->in_use;
    weftio_store_release_sys_u32(&pool->lock, 0);
    return taken;
}
WEFTIO_FN void tcp_pool_give(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 connection)
{
    WEFTIO_GLOBAL struct tcp_pool* pool = endpoint->pool;

    for (weftio_u32 attempt = 0; weftio_compare_exchange_acquire_u32(&pool->lock, 0, 1) != 0; ++attempt)
        weftio_relax(attempt);
    tcp_connection_of(endpoint, connection)->next = pool->first_free;
    pool->first_free = connection;
    --pool->in_use;
    weftio_store_release_sys_u32(&pool->lock, 0);
}

/** The bucket of a name. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u32* tcp_bucket(const WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                               const struct tcp_addresses* addresses, weftio_u32 ports)
{
    weftio_u64 hash = tcp_hash(endpoint->settings, addresses, ports, TCP_HASH_BUCKET, 0, 0);

    return endpoint->buckets + ((weftio_u32)hash & endpoint->bucket_mask);
}
WEFTIO_FN weftio_u32 tcp_is_named(const WEFTIO_GLOBAL struct tcp_connection* connection,
                                  const struct tcp_addresses* addresses, weftio_u32 ports)
{
    weftio_u32 differs = ((weftio_u32)connection->peer_port << 16 | connection->own_port) ^ ports;

    for (weftio_u32 i = 0; i < 4; ++i)
        differs |=
            (connection->addresses.peer[i] ^ addresses->peer[i]) | (connection->addresses.own[i] ^ addresses->own[i]);
    return differs == 0;
}
/** Looks for a connection. `steps`: how many the bucket has in front of it, or in all. */
WEFTIO_FN weftio_u32 tcp_find(const WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                              weftio_u32 ports, weftio_u32* steps)
{
    weftio_u32 found = *tcp_bucket(endpoint, addresses, ports);

    for (*steps = 0; found != TCP_NONE; ++*steps) {
        const WEFTIO_GLOBAL struct tcp_connection* connection = tcp_connection_of(endpoint, found);
        if (tcp_is_named(connection, addresses, ports))
            return found;
        found = connection->next_in_bucket;
    }
    return TCP_NONE;
}

/** Takes a connection out of its list, if it is in one. */
WEFTIO_FN void tcp_list_remove(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 connection)
{
    WEFTIO_GLOBAL struct tcp_connection* gone = tcp_connection_of(endpoint, connection);
    WEFTIO_GLOBAL weftio_u32* first;

    if (gone->list == 0)
        return;
    first = endpoint->lists + gone->list - 1;
    if (gone->next == connection) {
        *first = TCP_NONE;
    } else {
        tcp_connection_of(endpoint, gone->previous)->next = gone->next;
        tcp_connection_of(endpoint, gone->next)->previous = gone->previous;
        if (*first == connection)
            *first = gone->next;
    }
    gone->list = 0;
}
/** Puts a connection, which is in no list, at the end of one. */
WEFTIO_FN void tcp_list_append(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 list, weftio_u32 connection)
{
    WEFTIO_GLOBAL struct tcp_connection* added = tcp_connection_of(endpoint, connection);
    weftio_u32 first = endpoint->lists[list];

    added->list = list + 1;
    if (first == TCP_NONE) {
        endpoint->lists[list] = added->next = added->previous = connection;
        return;
    }
    added->next = first;
    added->previous = tcp_connection_of(endpoint, first)->previous;
    tcp_connection_of(endpoint, added->previous)->next = connection;
    tcp_connection_of(endpoint, first)->previous = connection;
}

/** The slot of a deadline: not before the next one, and within a round. */
WEFTIO_FN weftio_u32 tcp_wheel_tick(const WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 deadline)
{
    if (!tcp_before(endpoint->wheel, deadline))
        return endpoint->wheel + 1;
    return endpoint->wheel + weftio_min_u32(deadline - endpoint->wheel, TCP_WHEEL_SLOTS - 1);
}
/** Sees to it that a connection is looked at by `deadline`. One that is looked at sooner stays where it is. */
WEFTIO_FN void tcp_schedule(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 connection, weftio_u32 deadline)
{
    weftio_u32 list = tcp_connection_of(endpoint, connection)->list;
    weftio_u32 tick = tcp_wheel_tick(endpoint, deadline), slot;

    if (list != 0 && list <= TCP_WHEEL_SLOTS) {
        slot = (list - 1 - endpoint->wheel - 1) % TCP_WHEEL_SLOTS; /* slots until it is looked at, less 1 */
        if (slot <= tick - endpoint->wheel - 1)
            return;
    }
    tcp_list_remove(endpoint, connection);
    tcp_list_append(endpoint, tick % TCP_WHEEL_SLOTS, connection);
}

/** Frees a connection: it is in no list, in no bucket and in no count afterwards. */
WEFTIO_FN void tcp_free(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 connection)
{
    WEFTIO_GLOBAL struct tcp_connection* gone = tcp_connection_of(endpoint, connection);
    struct tcp_addresses addresses = gone->addresses;
    WEFTIO_GLOBAL weftio_u32* link =
        tcp_bucket(endpoint, &addresses, (weftio_u32)gone->peer_port << 16 | gone->own_port);

    while (*link != connection)
        link = &tcp_connection_of(endpoint, *link)->next_in_bucket;
    *link = gone->next_in_bucket;
    tcp_list_remove(endpoint, connection);
    if (gone->flags & TCP_HALF_OPEN)
        --endpoint->half_open;
    --endpoint->connections;
    gone->state = TCP_STATE_CLOSED;
    gone->flags = 0;
    tcp_pool_give(endpoint, connection);
}

/** Frees this block's oldest connection in TIME_WAIT. Returns 0 if it has none. */
WEFTIO_FN weftio_u32 tcp_evict(WEFTIO_GLOBAL struct tcp_endpoint* endpoint)
{
    weftio_u32 oldest = endpoint->lists[TCP_LIST_TIME_WAIT];

    if (oldest == TCP_NONE)
        return 0;
    tcp_free(endpoint, oldest);
    ++endpoint->counters.time_wait_evicted;
    return 1;
}

/** Makes a connection of a name that the table does not have. TCP_NONE: no record left, even after an eviction. */
WEFTIO_FN weftio_u32 tcp_make(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                              weftio_u32 ports)
{
    WEFTIO_GLOBAL struct tcp_connection* made;
    WEFTIO_GLOBAL weftio_u32* bucket = tcp_bucket(endpoint, addresses, ports);
    weftio_u32 connection = tcp_pool_take(endpoint);

    if (connection == TCP_NONE && tcp_evict(endpoint))
        connection = tcp_pool_take(endpoint);
    if (connection == TCP_NONE)
        return TCP_NONE;
    made = tcp_connection_of(endpoint, connection);
    bytes_zero((WEFTIO_GLOBAL weftio_u8*)made, sizeof(*made));
    made->addresses = *addresses;
    made->peer_port = (weftio_u16)(ports >> 16);
    made->own_port = (weftio_u16)ports;
    made->next_in_bucket = *bucket;
    *bucket = connection;
    ++endpoint->connections;
    return connection;
}
