#!/usr/bin/env bash
# Bad input and faults under weftio-run: wrong commands, memory that goes, processes that fork, exec, exit and die.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")/../verbs")
run=$build/apps/weftio-run
[ -x "$run" ] && [ -f "$build/lib/verbs/libweftio-verbs.so" ] || skip "faults under weftio-run: not built"
[ -f /usr/include/infiniband/verbs.h ] || skip "faults under weftio-run: no verbs.h: install libibverbs-dev"
unset LD_PRELOAD SYSFS_PATH ${!WEFTIO_RUN_*}
work=$(mktemp -d)
wire=faults-$$ other=''
trap '[ -z "$other" ] || kill -9 $other 2>/dev/null; rm -rf "$work"; rm -f /dev/shm/weftio-*-$wire*' EXIT

# program NAME LIBRARY...: builds it.
program() {
    cc -O1 -Wall -Wextra -Werror -std=gnu11 -o "$work/$1" "$here/$1.c" "${@:2}" || exit 1
}

# passes WHAT PROGRAM ARGUMENT...: it finds nothing wrong.
passes() {
    local what=$1
    shift
    bounded "$run" --wire "$wire" -- "$work/$1" "${@:2}" >"$work/out" 2>"$work/words"
    check "$what" "0 0 checks failed" "$? $(cat "$work/out")" || cat "$work/words"
}

program bad_commands -libverbs
passes "wrong commands" bad_commands
finish
