/* A program of UCP, for tests/scripts/run_ucx.sh: two processes put, get, send by tag and by stream, and do 64-bit
 * atomics; each compares all bytes that arrive.
 *
 *   ucp [ROUNDS]
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define NEED(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("line %d: %s fails\n", __LINE__, #what);                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { most_bytes = 1 << 20, counters = 16 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h peer;
static int other; /* socket to the other process */
static uint8_t *ours, *theirs_at;
static ucp_mem_h region;
static ucp_rkey_h key;

static void tell(const void* bytes, size_t count)
{
    for (size_t done = 0; done != count;) {
        const ssize_t more = write(other, (const char*)bytes + done, count - done);
        NEED(more > 0);
        done += (size_t)more;
    }
}

static void hear(void* bytes, size_t count)
{
    for (size_t done = 0; done != count;) {
        const ssize_t more = recv(other, (char*)bytes + done, count - done, MSG_DONTWAIT);
        NEED(more != 0); /* the other process has ended */
        if (more > 0)
            done += (size_t)more;
        else
            ucp_worker_progress(worker);
    }
}

/* Both processes have come here. The other one makes progress until then. */
static void meet(void)
{
    char all = 1;
    tell(&all, 1);
    hear(&all, 1);
}

static void finish(ucs_status_ptr_t request)
{
    NEED(!UCS_PTR_IS_ERR(request));
    if (request == NULL)
        return;
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    NEED(status == UCS_OK);
    ucp_request_free(request);
}

static void flush(void)
{
    const ucp_request_param_t none = {0};
    finish(ucp_worker_flush_nbx(worker, &none));
}

static void swap_blobs(const void* mine, size_t bytes, void** got, size_t* count)
{
    tell(&bytes, sizeof bytes);
    tell(mine, bytes);
    hear(count, sizeof *count);
    NEED(*got = malloc(*count));
    hear(*got, *count);
}

static void open_all(void)
{
    const ucp_params_t wanted = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features =
                                     UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_STREAM};
    const ucp_worker_params_t plain = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                       .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_address_t* address;
    void *blob, *its_address, *its_key;
    size_t bytes, count;
    NEED(ucp_init(&wanted, NULL, &context) == UCS_OK);
    NEED(ucp_worker_create(context, &plain, &worker) == UCS_OK);
    NEED(ucp_worker_get_address(worker, &address, &bytes) == UCS_OK);
    swap_blobs(address, bytes, &its_address, &count);
    const ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = its_address};
    NEED(ucp_ep_create(worker, &to, &peer) == UCS_OK);

    NEED(ours = aligned_alloc(4096, 3 * most_bytes));
    memset(ours, 0, 3 * most_bytes);
    const ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                      .address = ours,
                                      .length = 3 * most_bytes};
    NEED(ucp_mem_map(context, &map, &region) == UCS_OK);
    NEED(ucp_rkey_pack(context, region, &blob, &bytes) == UCS_OK);
    swap_blobs(blob, bytes, &its_key, &count);
    tell(&ours, sizeof ours);
    hear(&theirs_at, sizeof theirs_at);
    NEED(ucp_ep_rkey_unpack(peer, its_key, &key) == UCS_OK);
    ucp_rkey_buffer_release(blob);
    ucp_worker_release_address(worker, address);
    free(its_address);
    free(its_key);
}

static uint8_t byte_of(unsigned who, size_t size, size_t at)
{
    return (uint8_t)(at * 31 + at / 251 + size * 7 + who * 101 + 1);
}

static void fill(uint8_t* at, unsigned who, size_t size)
{
    for (size_t each = 0; each < size; ++each)
        at[each] = byte_of(who, size, each);
}

static void compare(const char* what, const uint8_t* at, unsigned who, size_t size)
{
    for (size_t each = 0; each < size; ++each)
        if (at[each] != byte_of(who, size, each)) {
            printf("%s of %zu bytes: byte %zu is %u instead of %u\n", what, size, each, at[each],
                   byte_of(who, size, each));
            exit(1);
        }
}

static void move(unsigned who, size_t size)
{
    const ucp_request_param_t none = {0};
    const ucp_request_param_t all = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    uint8_t *first = ours, *second = ours + most_bytes, *third = ours + 2 * most_bytes;
    size_t got;
    /* put: from the first third to the other's second */
    fill(first, who, size);
    memset(second, 0, size);
    meet();
    finish(ucp_put_nbx(peer, first, size, (uint64_t)(uintptr_t)(theirs_at + most_bytes), key, &none));
    flush();
    meet();
    compare("put", second, !who, size);
    /* get: the other's first third */
    memset(third, 0, size);
    finish(ucp_get_nbx(peer, third, size, (uint64_t)(uintptr_t)theirs_at, key, &none));
    compare("get", third, !who, size);
    meet();
    /* by tag */
    memset(second, 0, size);
    ucs_status_ptr_t taken = ucp_tag_recv_nbx(worker, second, size, 7 + who, UINT64_MAX, &none);
    finish(ucp_tag_send_nbx(peer, first, size, 7 + !who, &none));
    finish(taken);
    compare("tag", second, !who, size);
    /* by stream */
    memset(third, 0, size);
    ucs_status_ptr_t sent = ucp_stream_send_nbx(peer, first, size, &none);
    finish(ucp_stream_recv_nbx(peer, third, size, &got, &all));
    finish(sent);
    compare("stream", third, !who, size);
    meet();
}

static uint64_t fetch(ucp_atomic_op_t operation, uint64_t operand, uint64_t* reply, unsigned at)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                       .datatype = ucp_dt_make_contig(8),
                                       .reply_buffer = reply};
    finish(ucp_atomic_op_nbx(peer, operation, &operand, 1, (uint64_t)(uintptr_t)(theirs_at + 8 * at), key, &param));
    return *reply;
}

/* Each process works on words of the other one: every answer, and what stands there in the end, is known. */
static void count_up(unsigned rounds)
{
    uint64_t* const words = (uint64_t*)(void*)ours;
    uint64_t* const reply = (uint64_t*)(void*)(ours + most_bytes);
    const ucp_request_param_t plain = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(8)};
    memset(words, 0, counters * sizeof *words);
    meet();
    uint64_t sum = 0, last = 0;
    for (unsigned round = 1; round <= rounds; ++round) {
        const uint64_t one = round;
        NEED(fetch(UCP_ATOMIC_OP_ADD, one, reply, 0) == sum);
        sum += one;
        NEED(fetch(UCP_ATOMIC_OP_SWAP, round * 3, reply, 1) == last);
        last = round * 3;
        *reply = round * 5; /* what is put there if the word is as expected; then what was there */
        NEED(fetch(UCP_ATOMIC_OP_CSWAP, (round - 1) * 5, reply, 2) == (round - 1) * 5);
        finish(ucp_atomic_op_nbx(peer, UCP_ATOMIC_OP_ADD, &one, 1, (uint64_t)(uintptr_t)(theirs_at + 24), key, &plain));
    }
    flush();
    meet();
    NEED(words[0] == sum && words[1] == last && words[2] == rounds * 5 && words[3] == sum);
}

static void run(unsigned who, unsigned rounds)
{
    open_all();
    for (unsigned round = 0; round < rounds; ++round)
        for (size_t size = 1; size <= most_bytes; size = size * 5 + round)
            move(who, size);
    count_up(20 * rounds);
    ucp_rkey_destroy(key);
    const ucp_request_param_t none = {0};
    finish(ucp_ep_close_nbx(peer, &none));
    meet();
    NEED(ucp_mem_unmap(context, region) == UCS_OK);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int main(int count, char** arguments)
{
    const unsigned rounds = count > 1 ? (unsigned)atoi(arguments[1]) : 2;
    int ends[2], how = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    NEED(rounds > 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t child = fork(); /* before either opens a device */
    NEED(child >= 0);
    other = ends[child == 0];
    close(ends[child != 0]);
    run(child == 0, rounds);
    if (child == 0)
        return 0;
    NEED(waitpid(child, &how, 0) == child && how == 0);
    puts("all data is right");
    return 0;
}
