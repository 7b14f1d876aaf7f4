#!/usr/bin/env bash
# ibv_modify_qp() and ibv_query_qp() under weftio-run: every way between two states with every attribute, of RC and UC, as Linux has
# them; what is flushed in ERR; RESET and around again.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
export WEFTIO_LOG=error # what the programs are refused is what they ask for here
build=$(realpath "$1") here=$(dirname "$(realpath "$0")")/../verbs
run=$build/apps/weftio-run
[ -x "$run" ] && [ -f "$build/lib/verbs/libweftio-verbs.so" ] || skip "states under weftio-run: not built"
[ -f /usr/include/infiniband/verbs.h ] || skip "states under weftio-run: no verbs.h: install libibverbs-dev"
unset LD_PRELOAD SYSFS_PATH ${!WEFTIO_RUN_*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O1 -Wall -Wextra -Werror -std=gnu11 -o "$work/states" "$here/states.c" -libverbs || exit 1
for service in rc uc; do
    bounded "$run" --wire states-$$ -- "$work/states" $service >"$work/out" 2>"$work/words"
    check "states of $service" "0 0 checks failed" "$? $(head -20 "$work/out")"
    check "states of $service: no other words" "" "$(grep -v 'entry at position 0 failed: .*no memory region has that key' "$work/words")"
done
finish
