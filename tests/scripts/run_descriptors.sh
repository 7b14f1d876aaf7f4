#!/usr/bin/env bash
# Descriptors under weftio-run: what objects cost, with and without a hard limit above the soft one; EMFILE and ENFILE as Linux gives them; 200
# connections with channels of their own below `ulimit -n 1024`; 1,000 queue pairs on one context.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "descriptors under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "descriptors under weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program descriptors -libverbs

# limited LIMIT WHAT [LOG]: its words are in out and log. LIMIT: options of ulimit.
limited() {
    (
        ulimit $1 || exit 1
        exec "$run" --wire descriptors-$$ -- "$work/descriptors" "$2"
    ) >"$work/out" 2>"$work/log" &
    wait_for_end $!
    check "$2, ulimit $1: exit status" 0 $?
    check "$2, ulimit $1: the log" "${3:-}" "$(cat "$work/log")"
}
if [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -gt 300 ]; then
    limited "-Sn 256" costs
    check "costs are Linux's" "context 2, channel 1, queue with a channel 0, without 0, queue pair 0" "$(head -1 "$work/out")"
else
    echo "not checked: costs below a hard limit of more ($(ulimit -Hn) descriptors)"
fi
limited "-n 64" costs
check "costs at the hard limit" "context 4, channel 2, queue with a channel 0, without 0, queue pair 0" "$(head -1 "$work/out")"
for limit in -n -Sn; do
    limited "$limit 64" none
    check "no descriptor is free" "0 checks failed" "$(cat "$work/out")"
done
limited "-n 64" full
check "the system's table is full" "0 checks failed" "$(cat "$work/out")"
bounded "$run" --wire descriptors-$$ -- "$work/descriptors" "full from the beginning" >"$work/out" 2>"$work/log"
check "the table is full from the beginning: no devices" "0 0 checks failed" "$? $(cat "$work/out")"
check "one line says why" 1 "$(wc -l <"$work/log")"
check_has "in the system's words" "Too many open files in system" "$(cat "$work/log")"
closed="warning: weftio-run: the program has closed descriptors that it has not opened, among them the engine's: it can open no device any more \
(EBADF); close those that it has opened, or all before it looks for devices (docs/verbs.md#what-is-not-there)"
for limit in -n -Sn; do
    limited "$limit 64" "closes all" "$closed"
    check "a program that closes all" "0 checks failed" "$(cat "$work/out")"
done
limited "-n 64" "closes all and opens others" "$closed"
check "a program that closes all and opens others" "0 checks failed" "$(cat "$work/out")"
limited "-n 1024" connections
check "200 connections" "0 checks failed" "$(cat "$work/out")"
limited "-n 64" pairs
check "1,000 queue pairs" "0 checks failed" "$(cat "$work/out")"
finish
