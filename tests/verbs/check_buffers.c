/* Preloaded beside weftio-run's library into perftest's programs, which compare no data. It fills what they have
 * registered when a queue pair becomes ready to receive, since they fill it themselves before, and says at the end what
 * lies there.
 *
 * CHECK_BUFFERS=source: a pattern that repeats after 64 KiB.
 * CHECK_BUFFERS=target: one other byte everywhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef _FORTIFY_SOURCE
#include <infiniband/verbs.h>
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum { most = 16, message = 65536, untouched = 0xee };

static struct {
    unsigned char* start;
    size_t bytes;
    struct ibv_mr* region;
} known[most];

static void* next(const char* name)
{
    void* const found = dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");
    return found ? found : dlsym(RTLD_NEXT, name);
}

static int is_source(void)
{
    const char* role = getenv("CHECK_BUFFERS");
    return role && strcmp(role, "source") == 0;
}

static unsigned char pattern(size_t at)
{
    const uint32_t mixed = (uint32_t)(at % message + 1) * 2654435761u;
    return (unsigned char)(mixed >> 24);
}

static struct ibv_mr* remember(struct ibv_mr* region, void* start, size_t bytes)
{
    for (int each = 0; region && each < most; ++each)
        if (!known[each].region) {
            known[each].start = start;
            known[each].bytes = bytes;
            known[each].region = region;
            break;
        }
    return region;
}

struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* start, size_t bytes, int access)
{
    struct ibv_mr* (*real)(struct ibv_pd*, void*, size_t, int) = next("ibv_reg_mr");
    return remember(real(pd, start, bytes, access), start, bytes);
}

struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* start, size_t bytes, uint64_t iova, unsigned access)
{
    struct ibv_mr* (*real)(struct ibv_pd*, void*, size_t, uint64_t, unsigned) = next("ibv_reg_mr_iova2");
    return remember(real(pd, start, bytes, iova, access), start, bytes);
}

int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* to, int mask)
{
    int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int) = next("ibv_modify_qp");
    if ((mask & IBV_QP_STATE) && to->qp_state == IBV_QPS_RTR)
        for (int each = 0; each < most; ++each)
            for (size_t at = 0; known[each].region && at < known[each].bytes; ++at)
                known[each].start[at] = is_source() ? pattern(at) : untouched;
    return real(qp, to, mask);
}

/* One line for each 64 KiB: which bytes lie there. */
static void tell(const unsigned char* start, size_t bytes)
{
    for (size_t first = 0; first < bytes; first += message) {
        size_t as_sent = 0, as_before = 0, here = bytes - first < message ? bytes - first : message;
        for (size_t at = first; at < first + here; ++at) {
            as_sent += start[at] == pattern(at);
            as_before += start[at] == untouched;
        }
        fprintf(stderr, "check_buffers: %zu bytes %s\n", here,
                as_sent == here     ? "as sent"
                : as_before == here ? "as before"
                                    : "WRONG");
    }
}

int ibv_dereg_mr(struct ibv_mr* region)
{
    int (*real)(struct ibv_mr*) = next("ibv_dereg_mr");
    for (int each = 0; each < most; ++each)
        if (known[each].region == region) {
            tell(known[each].start, known[each].bytes);
            known[each].region = NULL;
        }
    return real(region);
}
