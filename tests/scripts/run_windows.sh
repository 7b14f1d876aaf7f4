#!/usr/bin/env bash
# Memory windows under weftio-run: ibv_alloc_mw, ibv_bind_mw, IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "memory windows under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "memory windows under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program windows -libverbs
for options in "" "--dump $work/packets"; do
    # shellcheck disable=SC2086
    bounded "$run" --wire windows-$$ $options -- "$work/windows" >"$work/out" 2>"$work/words"
    check "memory windows${options:+, --dump}" "0 0 checks failed" "$? $(head -20 "$work/out")"
    check "memory windows${options:+, --dump}: no words but ours" "" "$(grep -v '^error: weftio: rdma_queue' "$work/words")"
    check_has "memory windows${options:+, --dump}: the reason of a refused bind" "the region lacks access::bind" "$(cat "$work/words")"
done
finish
