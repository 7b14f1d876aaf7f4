#!/usr/bin/env bash
# A soak of a few seconds does what one of hours does: loses nothing, watches its memory, and says when that has grown too much.
set -uo pipefail
soak=$1/bench/soak_bench
[ -x "$soak" ] || { echo "skipped: the build has no benchmarks (WEFTIO_BENCH): soaks were not run"; exit 77; }
failed=0

check()
{
    if [[ $2 == 1 ]]; then
        echo "ok: $1"
    else
        printf 'FAILED: %s\n%s\n' "$1" "$out"
        failed=1
    fi
}

for work in "forward --rate 20000" "pace --rate 500"; do
    # shellcheck disable=SC2086
    out=$("$soak" --do $work --minutes 0.05 --growth 64)
    check "$work: passes, with more frames than none" $(($? == 0 && $(sed -n 's/^conservation *\([0-9]*\) frames, none lost/\1/p' <<<"$out") > 0))
    check "$work: knows its memory" $(($(sed -n 's/^memory *\([0-9]*\)\..*/\1/p' <<<"$out") > 0))
done
out=$("$soak" --do forward --rate 20000 --minutes 0.2 --growth -1e6)
check "forward: memory that grows by more than it may fails" $(($? == 1 && $(grep -c '^FAILED' <<<"$out") == 1))
exit $failed
