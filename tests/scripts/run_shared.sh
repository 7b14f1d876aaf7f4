#!/usr/bin/env bash
# Shared receive queues under weftio-run: ibv_create_srq, ibv_modify_srq, ibv_query_srq, ibv_post_srq_recv, and their events.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "shared receive queues under weftio-run"
needs_file /usr/include/infiniband/mlx5dv.h libibverbs-dev "shared receive queues under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program shared -libverbs -lmlx5
for options in "" "--dump $work/packets"; do
    # shellcheck disable=SC2086
    bounded "$run" --wire shared-$$ $options -- "$work/shared" >"$work/out" 2>"$work/words"
    check "shared receive queues${options:+, --dump}" "0 0 checks failed" "$? $(head -20 "$work/out")"
    check_has "shared receive queues${options:+, --dump}: why their size is fixed" "the size of a shared receive queue is fixed" \
        "$(cat "$work/words")"
done
finish
