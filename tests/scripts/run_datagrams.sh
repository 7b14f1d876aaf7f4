#!/usr/bin/env bash
# Unreliable datagrams (UD) under weftio-run: address handles, completions, multicast groups, over IPv4 and IPv6.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "datagrams under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "datagrams under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program datagrams -libverbs
for gid in 0 1; do
    bounded "$run" --wire datagrams-$$ -- "$work/datagrams" $gid >"$work/out" 2>"$work/words"
    check "datagrams at GID index $gid" "0 0 checks failed" "$? $(head -20 "$work/out")"
    check_has "datagrams at GID index $gid: why a receive fails" "the message is longer than the receive entry" "$(cat "$work/words")"
done
finish
