/*
 * Many posters on one queue pair, as if not written for Weftio (foreign.h): each claims the next position of the ring,
 * writes its entry, and publishes in the order of positions. One more worker polls, and checks what arrives. Entries
 * are WRITEs and SENDs with immediate data, which is the position.
 */
#pragma once

#include "foreign.h"

/* In memory that the workers access fast; zeroed at first. */
struct foreign_crowd {
    foreign_u32 reserved; /* positions that have been claimed */
    foreign_u32 ready;    /* positions below are written */
    foreign_u32 rung;     /* and known to the NIC */
    foreign_u32 lock;     /* 1: a poster rings for all */
    foreign_u32 done;     /* positions below are completed */
    foreign_u32 checked;  /* positions below have arrived and were checked; a multiple of FOREIGN_AT_ONCE */
    foreign_u32 failed;   /* the line that failed; all workers end */
};

/* How posters publish: each rings in its turn, or one rings for all that are ready. */
enum foreign_manner { FOREIGN_EACH_RINGS, FOREIGN_ONE_RINGS };

#define FOREIGN_AT_ONCE (FOREIGN_SLOTS / 2) /* so many posters may go on at the same time */
#define FOREIGN_SHORTEST 4u
#define FOREIGN_WORDS 64u /* of the longest message */

FOREIGN_FN foreign_u32 foreign_add(foreign_u32* at, foreign_u32 value)
{
#if defined(__CUDACC__)
    foreign_u32 before;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
    return before;
#else
    return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
#endif
}
FOREIGN_FN foreign_u32 foreign_swap(foreign_u32* at, foreign_u32 value)
{
#if defined(__CUDACC__)
    foreign_u32 before;
    asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
    return before;
#else
    return __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);
#endif
}

/* The message at `position`: of whole words, into the slot of the position. */
#if !defined(__CUDACC__)
inline
#else
static __host__ __device__ __forceinline__
#endif
    struct foreign_move
    foreign_message_of(foreign_u32 position)
{
    struct foreign_move message;
    foreign_u32 random = position * 2654435761u;

    message.kind = random >> 31 ? FOREIGN_SEND : FOREIGN_WRITE_IMM;
    message.bytes = FOREIGN_SHORTEST + (random >> 8) % FOREIGN_WORDS * 4;
    message.from = (random >> 12) % (FOREIGN_AREA / 8) * 4;
    message.to = position % FOREIGN_SLOTS * 2048u + (message.kind == FOREIGN_SEND ? FOREIGN_AREA / 2 : 0);
    return message;
}

/* Returns 0 when the condition holds, or when another worker has failed or this one has waited too long. */
#define FOREIGN_CROWD_UNTIL(CONDITION)                                                                                 \
    for (foreign_u32 polls = 0; !(CONDITION); ++polls) {                                                               \
        if (foreign_load(&crowd->failed) || polls == FOREIGN_POLLS) {                                                  \
            foreign_crowd_fail(crowd, __LINE__);                                                                       \
            return 0;                                                                                                  \
        }                                                                                                              \
        FOREIGN_PAUSE(polls);                                                                                          \
    }

FOREIGN_FN void foreign_crowd_fail(struct foreign_crowd* crowd, foreign_u32 line)
{
    if (foreign_load(&crowd->failed) == 0)
        foreign_store(&crowd->failed, line);
}

/* Writes the entry at `end->sq_next`. */
FOREIGN_FN void foreign_crowd_write(struct foreign_end* end, const struct foreign_game* game)
{
    foreign_u32 position = end->sq_next, every = end->sq_blocks < 4 ? end->sq_blocks : 4, at = 4;
    foreign_u32* block = end->sq + (foreign_u64)(position & (end->sq_blocks - 1)) * 16;
    struct foreign_move message = foreign_message_of(position);
    foreign_u64 remote = game->ends[1].memory + message.to;

    if (message.kind == FOREIGN_WRITE_IMM) {
        block[4] = foreign_be((foreign_u32)(remote >> 32));
        block[5] = foreign_be((foreign_u32)remote);
        block[6] = foreign_be(game->rkey);
        block[7] = 0;
        at = 8;
    }
    foreign_data(block + at, end->memory + message.from, message.bytes, end->lkey);
    foreign_post(end, message.kind == FOREIGN_SEND ? 0x0b : 0x09, at / 4 + 1,
                 (position + 1) % every == 0 || position + 1 == game->rounds, foreign_be(position));
}

/* Makes the entry in front of `end->sq_next` known to the NIC. Returns whether that was done. */
FOREIGN_FN foreign_u32 foreign_crowd_publish(struct foreign_end* end, struct foreign_crowd* crowd, foreign_u32 manner)
{
    foreign_u32 after = end->sq_next;

    FOREIGN_CROWD_UNTIL(foreign_load(&crowd->ready) == after - 1)
    if (manner == FOREIGN_EACH_RINGS) {
        foreign_ring(end, 0);
        foreign_store(&crowd->ready, after);
        return 1;
    }
    foreign_store(&crowd->ready, after);
    for (foreign_u32 polls = 0; (int)(foreign_load(&crowd->rung) - after) < 0; ++polls) {
        FOREIGN_PAUSE(polls);
        if (foreign_swap(&crowd->lock, 1))
            continue;
        end->sq_next = foreign_load(&crowd->ready);
        foreign_ring(end, 0);
        foreign_store(&crowd->rung, end->sq_next);
        foreign_store(&crowd->lock, 0);
    }
    return 1;
}

/* One poster: posts until all positions are claimed. Returns 1; 0: a worker has failed. */
FOREIGN_FN foreign_u32 foreign_crowd_post(const struct foreign_game* game, struct foreign_crowd* crowd,
                                          foreign_u32 manner)
{
    struct foreign_end end = game->ends[0];
    foreign_u32 rounds = game->rounds, position;

    while ((position = foreign_add(&crowd->reserved, 1)) < rounds) {
        /* The entry that was in its place is completed, and a receive waits for this one. */
        FOREIGN_CROWD_UNTIL(position - foreign_load(&crowd->done) < end.sq_blocks)
        FOREIGN_CROWD_UNTIL(position - foreign_load(&crowd->checked) < FOREIGN_SLOTS)
        end.sq_next = position;
        foreign_crowd_write(&end, game);
        if (!foreign_crowd_publish(&end, crowd, manner))
            return 0;
    }
    return 1;
}

/* Whether the last receive is the message at `position`, with its bytes. */
FOREIGN_FN foreign_u32 foreign_crowd_is_right(const struct foreign_game* game, foreign_u32 position)
{
    const struct foreign_end *ours = &game->ends[0], *theirs = &game->ends[1];
    struct foreign_move message = foreign_message_of(position);
    const volatile foreign_u32 *from = (const volatile foreign_u32*)(ours->memory + message.from),
                               *to = (const volatile foreign_u32*)(theirs->memory + message.to);
    foreign_u32 different = 0;

    for (foreign_u32 word = 0; word < message.bytes / 4; ++word)
        different |= from[word] ^ to[word];
    return !different && theirs->last_immediate == position && theirs->last_bytes == message.bytes &&
           theirs->last_opcode == (message.kind == FOREIGN_SEND ? 3u : 1u);
}

/* Polls once. Returns 1; 0: an entry has failed, or something else than the message at `*checked` has arrived. */
FOREIGN_FN foreign_u32 foreign_crowd_poll(struct foreign_game* game, struct foreign_crowd* crowd, foreign_u32 which,
                                          foreign_u32* checked)
{
    foreign_u32 received = game->ends[1].rq_done;

    if (foreign_poll(game, which) == 2)
        return 0;
    if (game->ends[0].sq_done != foreign_load(&crowd->done))
        foreign_store(&crowd->done, game->ends[0].sq_done);
    if (game->ends[1].rq_done == received)
        return 1;
    if (!foreign_crowd_is_right(game, *checked))
        return 0;
    foreign_post_receive(&game->ends[1]);
    if (++*checked % FOREIGN_AT_ONCE == 0)
        foreign_store(&crowd->checked, *checked);
    return 1;
}

/* The worker that polls, for one crowd of posters. @pre the receive ring has FOREIGN_SLOTS entries or more */
FOREIGN_FN void foreign_crowd_check(struct foreign_game* game, struct foreign_crowd* crowd)
{
    foreign_u32 checked = 0, idle = 0;

    for (foreign_u32 slot = 0; slot < FOREIGN_SLOTS; ++slot)
        foreign_post_receive(&game->ends[1]);
    while ((checked != game->rounds || game->ends[0].sq_done != game->rounds) && !foreign_load(&crowd->failed)) {
        foreign_u32 before = checked;
        if (!foreign_crowd_poll(game, crowd, 0, &checked) || !foreign_crowd_poll(game, crowd, 1, &checked) ||
            idle == FOREIGN_POLLS)
            foreign_crowd_fail(crowd, __LINE__);
        idle = checked == before ? idle + 1 : 0;
        FOREIGN_PAUSE(idle);
    }
    game->result = foreign_load(&crowd->failed);
}
