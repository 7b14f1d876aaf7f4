/* Counters of the port in /sys, for tests/scripts/run_counters.sh. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "ends.h"

static const char folder[] = "/sys/class/infiniband/mlx5_0/ports/1";

static int open_counter(const char* name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int opened = open(path, O_RDONLY | O_CLOEXEC);
    NEED(opened >= 0);
    return opened;
}

static unsigned long long value_at(int opened)
{
    char text[32] = "";
    NEED(pread(opened, text, sizeof text - 1, 0) > 0);
    NEED(strchr(text, '\n'));
    return strtoull(text, NULL, 10);
}

static unsigned long long value_of(const char* name)
{
    const int opened = open_counter(name);
    const unsigned long long value = value_at(opened);
    close(opened);
    return value;
}

enum { writes = 100, bytes = 1000 };

static void data_and_packets(void)
{
    struct end a, b;
    const int sent = open_counter("counters/port_xmit_data"), got = open_counter("counters/port_rcv_data");
    char path[256];
    snprintf(path, sizeof path, "%s/counters/port_xmit_data", folder);
    FILE* const stream = fopen(path, "r"); /* reads again without a call that a library can intercept */
    NEED(stream);
    CHECK("nothing has been sent", 0, value_at(sent) + value_at(got) + value_of("counters/port_xmit_packets"));
    make_end(&a, 128, IBV_QPT_RC);
    make_end(&b, 128, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    for (uint64_t each = 0; each < writes; ++each) {
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, bytes, mr->rkey, each));
        CHECK("write", IBV_WC_SUCCESS, next_completion(a.cq).status);
    }
    const unsigned long long words = value_at(sent), packets = value_of("counters/port_xmit_packets");
    CHECK("words", 1, words >= writes * bytes / 4 && words < 2 * writes * bytes / 4);
    CHECK("packets", 1, packets >= writes && packets < 10 * writes);
    CHECK("both directions", 1, value_at(got) >= writes * bytes / 4 && value_of("counters/port_rcv_packets") >= writes);
    CHECK("seek", 0, lseek(sent, 0, SEEK_SET));
    char text[32] = "";
    NEED(read(sent, text, sizeof text - 1) > 0);
    CHECK("by read", 1, strtoull(text, NULL, 10) >= words);
    end_end(&a);
    end_end(&b);
    const double end = seconds() + patience();
    unsigned long long by_stream = 0;
    while (by_stream < words && seconds() < end) { /* nothing else runs now */
        rewind(stream);
        NEED(fgets(text, sizeof text, stream));
        by_stream = strtoull(text, NULL, 10);
        usleep(10000);
    }
    CHECK("by a stream", 1, by_stream >= words);
    fclose(stream);
    close(sent);
    close(got);
}

static void failures(void)
{
    struct end a, b;
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    rnr_retry = 1;
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("post", 0, post(a.qp, IBV_WR_SEND, 8, 0, 1)); /* no receive is posted */
    CHECK("post", 0, post(a.qp, IBV_WR_SEND, 8, 0, 2));
    CHECK("no receive", IBV_WC_RNR_RETRY_EXC_ERR, next_completion(a.cq).status);
    CHECK("the next", IBV_WC_WR_FLUSH_ERR, next_completion(a.cq).status);
    for (int round = 0; round < 2; ++round) { /* those of queue pairs that are gone stay */
        CHECK("out_of_buffer", 1, value_of("hw_counters/out_of_buffer") >= 1);
        CHECK("rnr_nak_retry_err", 1, value_of("hw_counters/rnr_nak_retry_err"));
        CHECK("req_cqe_error", 1, value_of("hw_counters/req_cqe_error"));
        CHECK("req_cqe_flush_error", 1, value_of("hw_counters/req_cqe_flush_error"));
        if (round == 0) {
            end_end(&a);
            end_end(&b);
        }
    }
}

int main(void)
{
    open_device();
    data_and_packets();
    failures();
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
