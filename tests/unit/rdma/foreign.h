/*
 * Device code as if it were not written for Weftio: it includes none of its headers, posts mlx5 entries and polls mlx5
 * completions as published device code does, and uses only the data of a queue pair that verbs provide. C++ or CUDA
 * C++.
 */
#pragma once

#if defined(__CUDACC__)
#define FOREIGN_FN static __device__ __forceinline__
#define FOREIGN_PAUSE(POLLS) ((void)(POLLS))
#else
#include <sched.h>
#define FOREIGN_FN static inline
#define FOREIGN_PAUSE(POLLS) ((POLLS) % 64 == 63 ? (void)sched_yield() : (void)0)
#endif

typedef unsigned int foreign_u32;
typedef unsigned long long foreign_u64;

/* One end, in memory that the host can access too. */
struct foreign_end {
    foreign_u32* sq;       /* of blocks of 64 bytes */
    foreign_u32 sq_blocks; /* power of two */
    unsigned char* rq;
    foreign_u32 rq_count, rq_stride;
    foreign_u32* record; /* receive, send */
    foreign_u64* doorbell;
    foreign_u32 qpn, lkey;
    foreign_u64 memory; /* that lkey names */
    foreign_u32 sq_next, sq_done, rq_next, rq_done;
    foreign_u32 last_bytes, last_immediate, last_opcode; /* of the last receive */
};

struct foreign_cq {
    unsigned char* ring;
    foreign_u32 count, stride; /* 64 or 128 */
    foreign_u32* record;
    foreign_u32 next;
};

/* Parameters and result of foreign_play(). */
struct foreign_game {
    struct foreign_end ends[2];
    struct foreign_cq cqs[2]; /* of each end; twice the same ring if both ends share it */
    foreign_u32 shared_cq;
    foreign_u32 rkey; /* of the memory of end 1 */
    foreign_u32 rounds;
    foreign_u32 result; /* 0: success; else the line that failed */
    foreign_u32 syndrome;
};

#define FOREIGN_AREA 65536u   /* bytes of each memory: half of it for writes, half for receives */
#define FOREIGN_LONGEST 2000u /* bytes of a message */
#define FOREIGN_SLOTS 16u     /* of receives */

FOREIGN_FN foreign_u32 foreign_be(foreign_u32 x)
{
    return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
}
FOREIGN_FN void foreign_store(foreign_u32* at, foreign_u32 value)
{
#if defined(__CUDACC__)
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}
FOREIGN_FN foreign_u32 foreign_load(const foreign_u32* at)
{
#if defined(__CUDACC__)
    foreign_u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}
FOREIGN_FN void foreign_store_64(foreign_u64* at, foreign_u64 value)
{
#if defined(__CUDACC__)
    asm volatile("st.relaxed.mmio.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELEASE); /* after the doorbell record */
#endif
}

/* The operation of round `round`. */
enum foreign_kind { FOREIGN_WRITE, FOREIGN_SEND, FOREIGN_WRITE_IMM, FOREIGN_INLINE_WRITE, FOREIGN_READ, FOREIGN_KINDS };
struct foreign_move {
    foreign_u32 kind, bytes, from, to; /* offsets; for a READ `to` is in local memory */
};
#if !defined(__CUDACC__)
inline
#else
static __host__ __device__ __forceinline__
#endif
    struct foreign_move
    foreign_move_of(foreign_u32 round)
{
    struct foreign_move move;
    foreign_u32 random = round * 2654435761u;

    move.kind = round % FOREIGN_KINDS;
    move.bytes = 1 + (random >> 8) % (move.kind == FOREIGN_INLINE_WRITE ? 28 : FOREIGN_LONGEST);
    move.from = (random >> 4) % (FOREIGN_AREA / 2 - FOREIGN_LONGEST);
    move.to = (random >> 12) % (FOREIGN_AREA / 2 - FOREIGN_LONGEST);
    return move;
}

/* Takes the next completion, if there is one. Returns 1; 0: none; 2: an error. */
FOREIGN_FN foreign_u32 foreign_poll(struct foreign_game* game, foreign_u32 which)
{
    struct foreign_cq* cq = &game->cqs[game->shared_cq ? 0 : which];
    foreign_u32* cqe =
        (foreign_u32*)(cq->ring + (foreign_u64)(cq->next & (cq->count - 1)) * cq->stride + (cq->stride - 64));
    foreign_u32 last = foreign_load(cqe + 15);
    foreign_u32 opcode = last >> 28, owner = last >> 24 & 1, counter = foreign_be(last) >> 16;
    foreign_u32 qpn, syndrome, bytes, immediate;
    struct foreign_end* end;

    if (owner != ((cq->next / cq->count) & 1)) /* opcode 15 is not checked, as in code for newer GPUs */
        return 0;
    qpn = foreign_be(cqe[14]) & 0xffffff;
    syndrome = foreign_be(cqe[13]) & 0xffff;
    bytes = foreign_be(cqe[11]);
    immediate = foreign_be(cqe[9]);
    /* Queue pairs of two ports may have the same number. */
    end = &game->ends[!game->shared_cq ? which : qpn == game->ends[0].qpn ? 0 : 1];
    ++cq->next; /* it is read, and may be overwritten */
    foreign_store(cq->record, foreign_be(cq->next & 0xffffff));
    if (opcode == 13 || opcode == 14) {
        game->syndrome = syndrome;
        return 2;
    }
    if (opcode == 0) { /* all earlier entries are done, too */
        foreign_u32 ds = foreign_be(end->sq[(foreign_u64)(counter & (end->sq_blocks - 1)) * 16 + 1]) & 0x3f;
        end->sq_done += (counter + (ds + 3) / 4 - end->sq_done) & 0xffff;
        return 1;
    }
    if (counter != (end->rq_done & 0xffff))
        return 2;
    ++end->rq_done;
    end->last_opcode = opcode;
    end->last_bytes = bytes;
    end->last_immediate = immediate;
    return 1;
}

/* Writes one entry of one block. foreign_ring() makes it known to the NIC. */
FOREIGN_FN void foreign_post(struct foreign_end* end, foreign_u32 opcode, foreign_u32 ds, foreign_u32 signaled,
                             foreign_u32 immediate)
{
    foreign_u32* block = end->sq + (foreign_u64)(end->sq_next & (end->sq_blocks - 1)) * 16;

    block[3] = immediate;
    block[2] = signaled ? foreign_be(8) : 0;
    block[1] = foreign_be(end->qpn << 8 | ds);
    block[0] = foreign_be((end->sq_next & 0xffff) << 8 | opcode);
    end->sq_next += 1;
}

/* Habit 0: the record, then the doorbell. Habit 1: the doorbell, the record, the same doorbell again. Habit 2: both far
 * apart. */
FOREIGN_FN void foreign_ring(struct foreign_end* end, foreign_u32 habit)
{
    foreign_u64 value = (foreign_u64)foreign_be(end->qpn << 8) << 32 | foreign_be((end->sq_next & 0xffff) << 8);
    volatile foreign_u32 pause = 0;

    if (habit != 0)
        foreign_store_64(end->doorbell, value);
    for (foreign_u32 i = 0; habit == 2 && i < 2000; ++i)
        pause = pause + 1;
    foreign_store(end->record + 1, foreign_be(end->sq_next & 0xffff));
    foreign_store_64(end->doorbell, value);
}

FOREIGN_FN void foreign_data(foreign_u32* segment, foreign_u64 address, foreign_u32 bytes, foreign_u32 lkey)
{
    segment[0] = foreign_be(bytes);
    segment[1] = foreign_be(lkey);
    segment[2] = foreign_be((foreign_u32)(address >> 32));
    segment[3] = foreign_be((foreign_u32)address);
}

/* Posts the receive of slot rq_next into the second half of the memory. */
FOREIGN_FN void foreign_post_receive(struct foreign_end* end)
{
    foreign_u32* entry = (foreign_u32*)(end->rq + (foreign_u64)(end->rq_next & (end->rq_count - 1)) * end->rq_stride);

    foreign_data(entry, end->memory + FOREIGN_AREA / 2 + end->rq_next % FOREIGN_SLOTS * 2048u, FOREIGN_LONGEST,
                 end->lkey);
    if (end->rq_stride > 16)
        foreign_data(entry + 4, 0, 0, 0x100);
    ++end->rq_next;
    foreign_store(end->record, foreign_be(end->rq_next & 0xffff));
}

#define FOREIGN_POLLS 200000000u /* then something is lost */
#define FOREIGN_UNTIL(CONDITION, END)                                                                                  \
    for (foreign_u32 polls = 0; !(CONDITION); ++polls) {                                                               \
        if (foreign_poll(game, END) == 2 || polls == FOREIGN_POLLS) {                                                  \
            game->result = __LINE__;                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        FOREIGN_PAUSE(polls);                                                                                          \
    }

/* One round: an entry of end 0, and the receive of end 1 for it if it needs one. */
FOREIGN_FN void foreign_round(struct foreign_game* game, foreign_u32 round)
{
    struct foreign_end *ours = &game->ends[0], *theirs = &game->ends[1];
    struct foreign_move move = foreign_move_of(round);
    foreign_u32* block = ours->sq + (foreign_u64)(ours->sq_next & (ours->sq_blocks - 1)) * 16;
    foreign_u32 received = theirs->rq_done, takes = move.kind == FOREIGN_SEND || move.kind == FOREIGN_WRITE_IMM;
    foreign_u32 fills_ring = (ours->sq_next + 1) % ours->sq_blocks == 0;
    foreign_u32 signaled = fills_ring || move.kind == FOREIGN_READ || round % 3 == 0 || round + 1 == game->rounds;
    foreign_u64 remote = theirs->memory + (move.kind == FOREIGN_READ ? move.from : move.to);
    foreign_u32 at = 4, ds, opcode;

    FOREIGN_UNTIL(ours->sq_next - ours->sq_done < ours->sq_blocks, 0)
    if (takes)
        foreign_post_receive(theirs);
    opcode = move.kind == FOREIGN_SEND        ? 0x0a
             : move.kind == FOREIGN_WRITE_IMM ? 0x09
             : move.kind == FOREIGN_READ      ? 0x10
                                              : 0x08;
    if (move.kind != FOREIGN_SEND) {
        block[at] = foreign_be((foreign_u32)(remote >> 32));
        block[at + 1] = foreign_be((foreign_u32)remote);
        block[at + 2] = foreign_be(game->rkey);
        block[at + 3] = 0;
        at += 4;
    }
    ds = at / 4 + 1;
    if (move.kind == FOREIGN_INLINE_WRITE) {
        unsigned char* bytes = (unsigned char*)(block + at + 1);
        block[at] = foreign_be(0x80000000u | move.bytes);
        for (foreign_u32 i = 0; i < move.bytes; ++i)
            bytes[i] = ((const unsigned char*)ours->memory)[move.from + i];
        ds = at / 4 + (move.bytes + 4 + 15) / 16;
    } else {
        foreign_data(block + at, ours->memory + (move.kind == FOREIGN_READ ? move.to : move.from), move.bytes,
                     ours->lkey);
    }
    foreign_post(ours, opcode, ds, signaled, foreign_be(round));
    foreign_ring(ours, round % 3);
    if (takes) {
        FOREIGN_UNTIL(theirs->rq_done != received, 1)
        if (theirs->last_bytes != move.bytes ||
            (move.kind == FOREIGN_WRITE_IMM && (theirs->last_opcode != 1 || theirs->last_immediate != round)) ||
            (move.kind == FOREIGN_SEND && theirs->last_opcode != 2))
            game->result = __LINE__;
    }
    if (move.kind == FOREIGN_READ) /* the next entry may send the bytes that this READ brings */
        FOREIGN_UNTIL(ours->sq_done == ours->sq_next, 0)
}

FOREIGN_FN void foreign_play(struct foreign_game* game)
{
    for (foreign_u32 round = 0; round < game->rounds && game->result == 0; ++round)
        foreign_round(game, round);
    if (game->result == 0)
        FOREIGN_UNTIL(game->ends[0].sq_done == game->ends[0].sq_next, 0)
}
