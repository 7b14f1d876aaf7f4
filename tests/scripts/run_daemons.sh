#!/usr/bin/env bash
# Children of fork() and daemons under weftio-run: they open devices of their own; a parent's open device fails with one sentence.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "daemons under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "daemons under weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program daemons -libverbs -lpthread
wire=daemons-$$
inherited="weftio-run: a device that a parent process opened before fork() cannot be used in this process (EIO): open it again here"

bounded "$run" --wire $wire -- "$work/daemons" >"$work/out" 2>"$work/log"
check "children" "0 0 checks failed" "$? $(cat "$work/out")"
check "children: the log has one sentence" "$inherited" "$(cat "$work/log")"

# daemon WHAT SENTENCE [OPTION...]: the process that was started ends at once, and the daemon after it.
daemon() {
    : >"$work/out"
    bounded "$run" --wire $wire "${@:3}" -- "$work/daemons" "$1" >"$work/out" 2>"$work/log"
    check "daemon, $1: its parent's exit status" 0 $?
    eventually grep -q "checks failed" "$work/out"
    check "daemon, $1 ${*:3}" "0 checks failed" "$(cat "$work/out")"
    check "daemon, $1: the log" "$2" "$(cat "$work/log")"
}
for end in exit _exit close; do
    daemon $end ""
done
daemon open "$inherited"
daemon _exit "" --address 198.18.77.1 # the parent's address is free again

is_gone() { ! ls /dev/shm | grep -qF "$wire"; }
within_patience is_gone
check "nothing is left of the wire" "" "$(ls /dev/shm | grep -F "$wire")"
finish
