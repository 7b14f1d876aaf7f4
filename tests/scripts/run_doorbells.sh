#!/usr/bin/env bash
# Doorbells below weftio-run: where libmlx5 stores them, 8 or 64 bytes, that the NIC takes them, and that it hears of each of many
# sleeping queue pairs. By hand, on a machine that is idle: tests/scripts/run_doorbells.sh BUILD 1000 4000 says how soon.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "doorbells under weftio-run"
needs_file /usr/include/infiniband/mlx5dv.h libibverbs-dev "doorbells under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program doorbells -libverbs -lmlx5
for bytes in 8 64; do
    WEFTIO_RUN_DOORBELL_BYTES=$bytes bounded "$run" --wire doorbells-$$ -- "$work/doorbells" words $bytes >"$work/out" 2>"$work/words"
    check "doorbells of $bytes bytes" "0 0 checks failed" "$? $(head -20 "$work/out")" || cat "$work/words"
    WEFTIO_RUN_DOORBELL_BYTES=$bytes bounded "$run" --wire doorbells-$$ -- "$work/doorbells" 200 50 >"$work/out" 2>"$work/words"
    check "200 queue pairs that sleep, $bytes bytes" "0 0 checks failed" "$? $(tail -n +2 "$work/out" | head -20)" || cat "$work/words"
done
for pairs in "${@:2}"; do
    "$run" --wire doorbells-$$ -- "$work/doorbells" "$pairs"
done
finish
