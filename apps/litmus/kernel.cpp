#include <fmt/format.h>

#include "cuda.hpp"

namespace weftio::litmus {

namespace {

// One thread. An acquire of the flag, so that nothing of this GPU's own order is in question; then the data in
// descending order, eight loads in flight. Round r: each word of data is r times an odd number, the flag is r.
constexpr const char* text = R"(
.version 6.0
.target sm_70
.address_size 64
.visible .entry weftio_litmus(
    .param .u64 p_flags, .param .u64 p_data, .param .u64 p_control, .param .u64 p_pairs, .param .u64 p_words,
    .param .u64 p_trials, .param .u64 p_until, .param .u64 p_asks)
{
    .reg .pred is;
    .reg .u64 flags, data, control, pairs, words, trials, until, asks;
    .reg .u64 round, wanted, pair, done, stale, bad, at, left, seen, number, spins;
    .reg .u64 w<8>;

    ld.param.u64 flags, [p_flags];
    ld.param.u64 data, [p_data];
    ld.param.u64 control, [p_control];
    ld.param.u64 pairs, [p_pairs];
    ld.param.u64 words, [p_words];
    ld.param.u64 trials, [p_trials];
    ld.param.u64 until, [p_until];
    ld.param.u64 asks, [p_asks];
    mov.u64 round, 0;
    mov.u64 done, 0;
    mov.u64 stale, 0;
    mov.u64 spins, 0;

NEXT_ROUND:
    add.u64 round, round, 1;
    mul.lo.u64 wanted, round, 0x9e3779b97f4a7c15;
    mov.u64 pair, 0;

NEXT_PAIR:
    shl.b64 at, pair, 6;
    add.u64 at, flags, at;
WAIT:
    ld.acquire.sys.global.u64 seen, [at];
    setp.eq.u64 is, seen, round;
    @is bra FLAG_SEEN;
    add.u64 spins, spins, 1;
    and.b64 seen, spins, 63;
    setp.ne.u64 is, seen, 0;
    @is bra WAIT;
    ld.relaxed.sys.global.u64 seen, [control];
    setp.eq.u64 is, seen, 0;
    @is bra WAIT;
    bra END;

FLAG_SEEN:
    add.u64 number, done, 1;
    setp.eq.u64 is, asks, 0;
    @is bra READ;
    st.release.sys.global.u64 [control+64], number;
ASKED:
    ld.acquire.sys.global.u64 seen, [control+8];
    setp.eq.u64 is, seen, number;
    @is bra READ;
    ld.relaxed.sys.global.u64 seen, [control];
    setp.eq.u64 is, seen, 0;
    @is bra ASKED;
    bra END;

READ:
    mul.lo.u64 at, pair, words;
    add.u64 at, at, words;
    shl.b64 at, at, 3;
    add.u64 at, data, at;
    mov.u64 left, words;
    mov.u64 bad, 0;
EIGHT:
    setp.lt.u64 is, left, 8;
    @is bra ONE;
    ld.relaxed.sys.global.u64 w0, [at+-8];
    ld.relaxed.sys.global.u64 w1, [at+-16];
    ld.relaxed.sys.global.u64 w2, [at+-24];
    ld.relaxed.sys.global.u64 w3, [at+-32];
    ld.relaxed.sys.global.u64 w4, [at+-40];
    ld.relaxed.sys.global.u64 w5, [at+-48];
    ld.relaxed.sys.global.u64 w6, [at+-56];
    ld.relaxed.sys.global.u64 w7, [at+-64];
    xor.b64 w0, w0, wanted;
    or.b64 bad, bad, w0;
    xor.b64 w1, w1, wanted;
    or.b64 bad, bad, w1;
    xor.b64 w2, w2, wanted;
    or.b64 bad, bad, w2;
    xor.b64 w3, w3, wanted;
    or.b64 bad, bad, w3;
    xor.b64 w4, w4, wanted;
    or.b64 bad, bad, w4;
    xor.b64 w5, w5, wanted;
    or.b64 bad, bad, w5;
    xor.b64 w6, w6, wanted;
    or.b64 bad, bad, w6;
    xor.b64 w7, w7, wanted;
    or.b64 bad, bad, w7;
    sub.u64 at, at, 64;
    sub.u64 left, left, 8;
    bra EIGHT;
ONE:
    setp.eq.u64 is, left, 0;
    @is bra ALL_READ;
    ld.relaxed.sys.global.u64 w0, [at+-8];
    xor.b64 w0, w0, wanted;
    or.b64 bad, bad, w0;
    sub.u64 at, at, 8;
    sub.u64 left, left, 1;
    bra ONE;

ALL_READ:
    mov.u64 done, number;
    setp.ne.u64 is, bad, 0;
    selp.u64 bad, 1, 0, is;
    add.u64 stale, stale, bad;
    st.relaxed.sys.global.u64 [control+72], done;
    st.relaxed.sys.global.u64 [control+80], stale;
    setp.eq.u64 is, done, trials;
    @is bra END;
    setp.eq.u64 is, until, 0;
    @is bra GO_ON;
    setp.ge.u64 is, stale, until;
    @is bra END;
GO_ON:
    add.u64 pair, pair, 1;
    setp.lt.u64 is, pair, pairs;
    @is bra NEXT_PAIR;
    st.release.sys.global.u64 [control+88], round;
    bra NEXT_ROUND;

END:
    st.release.sys.global.u64 [control+96], 1;
    ret;
}
)";

} // namespace

reading_kernel::reading_kernel()
{
    need(driver::library().cuModuleLoadData(&module_, text), "the driver does not compile the kernel");
    if (const int status = driver::library().cuModuleGetFunction(&function_, module_, "weftio_litmus"); status != 0) {
        driver::library().cuModuleUnload(module_);
        need(status, "the compiled kernel is not there");
    }
}

reading_kernel::~reading_kernel()
{
    driver::library().cuModuleUnload(module_);
}

void reading_kernel::start(stream& in, task what)
{
    void* arguments[] = {&what.flags, &what.data,   &what.control, &what.pairs,
                         &what.words, &what.trials, &what.until,   &what.asks};
    in.launch(function_, arguments);
}

} // namespace weftio::litmus
