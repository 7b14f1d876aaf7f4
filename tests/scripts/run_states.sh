#!/usr/bin/env bash
# ibv_modify_qp() and ibv_query_qp() under weftio-run: every way between two states with every attribute, of RC and UC, as Linux has
# them; what is flushed in ERR; RESET and around again.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
export WEFTIO_LOG=error # what the programs are refused is what they ask for here
build=$(realpath "$1")
needs_weftio_run "states under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "states under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program states -libverbs
for service in rc uc; do
    bounded "$run" --wire states-$$ -- "$work/states" $service >"$work/out" 2>"$work/words"
    check "states of $service" "0 0 checks failed" "$? $(head -20 "$work/out")"
    check "states of $service: no other words" "" "$(grep -v 'entry at position 0 failed: ' "$work/words")"
done
finish
