#!/usr/bin/env bash
# A soak of a few seconds does what one of hours does: loses nothing, watches its memory, and says when that has grown too much.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
soak=$1/bench/soak_bench
[ -x "$soak" ] || skip "soaks: the build has no benchmarks (WEFTIO_BENCH)"

# number NAME PATTERN: that the line NAME of the soak's words has, 0 without one
number() { sed -n "s/^$1 *$2.*/\1/p" <<<"$out" | grep . || echo 0; }
for work in "forward --rate 20000" "pace --rate 500"; do
    # shellcheck disable=SC2086
    out=$("$soak" --do $work --minutes 0.05 --growth 64)
    check "$work: exit status" 0 $? || echo "$out"
    check "$work: more frames than none, none lost" 1 $(($(number conservation '\([0-9]*\) frames, none lost') > 0)) || echo "$out"
    check "$work: knows its memory" 1 $(($(number memory '\([0-9]*\)\.') > 0)) || echo "$out"
done
out=$("$soak" --do forward --rate 20000 --minutes 0.2 --growth -1e6)
check "forward: memory that grows by more than it may: exit status" 1 $? || echo "$out"
check "forward: memory that grows by more than it may is said" 1 "$(grep -c '^FAILED' <<<"$out")" || echo "$out"
finish
