#!/usr/bin/env bash
# weftio-run --stale: memory that goes under a key and comes back, as others have reported it (each case of tests/verbs/stale.c names its
# report), is told under report, refused under fail, and neither under off; which calls are seen; what is not stale.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "stale registrations under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "stale registrations under weftio-run"
work=$(mktemp -d) disk=$(mktemp -d -p "$build") # /tmp may be in memory
wire=stale-$$
trap 'end_all; rm -rf "$work" "$disk"; rm -f /dev/shm/weftio-*-$wire*' EXIT
c_program stale -libverbs -lpthread
c_program without_userfault

# below OPTIONS ARGUMENT...: its words are in out and words.
below() {
    cd "$disk" || return
    # shellcheck disable=SC2086
    bounded "$run" --wire "$wire" $1 -- "$work/stale" "${@:2}" >"$work/out" 2>"$work/words"
}
told() { grep -c 'weftio-run: stale key' "$work/words"; }

# found CASE ACCESS UNMAPPED REFUSED TIMES: under each of the three. REFUSED: the status under fail. TIMES: lines of out that it is for.
found() {
    local line='' mode=''
    for mode in report fail off; do
        below "--stale $mode" "$1"
        check "$1, $mode: exit status" 0 $? || cat "$work/out" "$work/words"
        check "$1, $mode: keys told" "$([ $mode = off ] && echo 0 || echo 1)" "$(told)"
        check "$1, $mode: accesses refused" "$([ $mode = fail ] && echo "$5" || echo 0)" "$(grep -c ": $4$" "$work/out")" || cat "$work/out"
        [ $mode = fail ] || check "$1, $mode: all is done" "" "$(grep -v ': done, there$' "$work/out")"
        [ $mode != off ] || continue
        line=$(grep 'weftio-run: stale key' "$work/words")
        check_has "$1, $mode: the access" "$2" "$line"
        check_has "$1, $mode: who has unmapped" "$3" "$(sed -E 's/thread [0-9]+ \(stale\) called/thread N called/' <<<"$line")"
        check_has "$1, $mode: who has registered" "(stale) registered " "$line"
        check_has "$1, $mode: what follows" "$([ $mode = fail ] && echo "it is refused" || echo "a ConnectX would access the pages that are gone")" "$line"
    done
}
remote="remote access error" write="the peer's WRITE to queue pair 17 (peer: queue pair 16 at "
found fixed "$write" "thread N called munmap(0x" "$remote" 2
found previous "the peer's READ to queue pair 17 (peer: queue pair 16 at " "thread N called mmap(0x" "$remote" 1
found blocks "$write" "thread N called munmap(0x" "$remote" 1
found child "$write" "thread N called munmap(0x" "$remote" 1
found parts "$write" "with MADV_DONTNEED" "$remote" 1
found local "an entry of this process reads 64 bytes" "thread N called munmap(0x" "local protection error" 1
found remapped "$write" "with MAP_FIXED" "$remote" 1
found resized "$write" "thread N called mremap(0x" "$remote" 1
found window "$write" "thread N called mmap(0x" "$remote" 1

# What is where the gone pages were, at the first byte that the access names.
while read -r case there; do
    below "--stale report" "$case"
    check "$case: exit status" 0 $?
    check_has "$case: what is there now" "whose pages are gone, and $there there now: " "$(cat "$work/words")"
done <<'ROWS'
fixed others are
half none are
half_with_last_page others are
ROWS

# The rows of docs/verbs.md#stale-registrations: how many keys are told behind each call.
while read -r call keys why; do
    below "--stale fail" seen "$call"
    check "$call: exit status" 0 $?
    check "$call: keys told${why:+ ($why)}" "$keys" "$(told)" || cat "$work/words"
    [ "$keys" = 1 ] && status="$remote" || status="done, there"
    check "$call: the access" "$call: $status" "$(cat "$work/out")"
done <<'ROWS'
munmap 1
by_number 1
mmap 1
mremap 1
mremap_over 1
dontneed 1
shared_remove 1
brk 1
shared_munmap 1
file_munmap 1
file_remove 1
shmdt 1
unmapped 1
shared_dontneed 0 the pages stay in the shared memory
free 0 pages that are pinned stay
mprotect 0 the pages stay
file_by_number 0 nobody tells of it
file_truncate 0 nobody tells of it
ROWS

# Nothing is said of what is not stale.
for case in heap storm exits profiled; do
    below "" "$case"
    check "$case: exit status" 0 $? || cat "$work/out"
    check "$case: words" "" "$(cat "$work/words")"
done

# Beside UCX, which overwrites functions of the C library and of the preloaded one.
if [[ $(PATH=$PATH:/sbin ldconfig -p) == *libucs.so.0* ]]; then
    for call in munmap mmap dontneed brk file_munmap shmdt; do # its mremap() drops the fifth argument
        STALE_UCX=1 below "--stale fail" seen "$call"
        check "UCX, $call: exit status" 0 $? || cat "$work/out"
        check "UCX, $call: keys told" 1 "$(told)" || cat "$work/words"
        check "UCX, $call: the access" "$call: $remote" "$(cat "$work/out")"
    done
    for case in blocks child; do
        STALE_UCX=1 below "--stale fail" "$case"
        check "UCX, $case: keys told" "0 1" "$? $(told)" || cat "$work/out" "$work/words"
    done
    STALE_UCX=1 below "" storm
    check "UCX, storm: exit status" 0 $? || cat "$work/out"
    check "UCX, storm: words" "" "$(cat "$work/words")"
else
    echo "not checked: beside UCX (libucx0 is not installed)"
fi

# What the program does with its memory goes first.
for case in grown own_userfault; do
    below "--stale fail" "$case"
    check "$case: exit status" 0 $? || cat "$work/out"
    check "$case: keys told" 1 "$(told)" || cat "$work/words"
done

# Where the pages went, in words.
WEFTIO_LOG=debug below "" fixed
check_has "debug: where it was registered" ": registered at $work/stale(" "$(cat "$work/words")"
check_has "debug: where it was unmapped" ": unmapped at $work/stale(" "$(cat "$work/words")"

# Where the system refuses userfaultfd.
# refused OPTIONS CASE: as below()
refused() {
    # shellcheck disable=SC2086
    bounded "$work/without_userfault" "$run" --wire "$wire" $1 -- "$work/stale" "${@:2}" >"$work/out" 2>"$work/words"
}
words="weftio-run: --stale: the system refuses userfaultfd with events (Operation not permitted)"
refused "" heap
check "userfaultfd is refused: exit status" 0 $?
check "userfaultfd is refused: words" "" "$(cat "$work/words")"
refused "--stale report" heap
check_has "userfaultfd is refused, --stale report" "$words" "$(cat "$work/words")"
refused "--stale fail" fixed
check "userfaultfd is refused: the program's own call" 1 "$(told)"
refused "--stale fail" blocks
check "userfaultfd is refused: a call of the C library" 0 "$(told)"
finish
