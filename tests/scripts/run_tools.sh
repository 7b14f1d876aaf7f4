#!/usr/bin/env bash
# weftio-run below tools that start programs, and such tools below weftio-run: setsid, nohup, timeout, strace, gdb, valgrind.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "tools and weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "tools and weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program counters -libverbs # which writes from one queue pair to another
cd "$work" || exit 1
weftio=("$run" --wire tools-$$ --)

# both TOOL OPTION...: in front of weftio-run, and behind it. The program's last line is the last of all but gdb's.
both() {
    if ! "$@" true </dev/null >/dev/null 2>&1; then
        echo "not checked: $1 (it is not installed, or may not run here)"
        return
    fi
    bounded "$@" "${weftio[@]}" ./counters >out 2>log </dev/null
    check "$1 weftio-run" "0 0 checks failed" "$? $(grep -o '^[0-9]* checks failed' out)" || tail -20 out log
    bounded "${weftio[@]}" "$@" ./counters >out 2>log </dev/null
    check "weftio-run $1" "0 0 checks failed" "$? $(grep -o '^[0-9]* checks failed' out)" || tail -20 out log
}
both setsid --wait
both nohup
both timeout "$((2 * patience))"
both strace -f -o trace
both gdb -nx -q -batch -return-child-result -ex run --args
both valgrind -q --trace-children=yes --log-file=valgrind.%p
finish
