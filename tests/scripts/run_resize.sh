#!/usr/bin/env bash
# ibv_resize_cq() under weftio-run: larger and smaller, while completions lie unread and while others come, of 64 and 128 bytes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
export WEFTIO_LOG=error # what the programs are refused is what they ask for here
build=$(realpath "$1")
needs_weftio_run "ibv_resize_cq under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "ibv_resize_cq under weftio-run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program resize -libverbs
for bytes in 64 128; do
    MLX5_CQE_SIZE=$bytes bounded "$run" --wire resize-$$ -- "$work/resize" >"$work/out" 2>"$work/words"
    check "completions of $bytes bytes" "0 0 checks failed" "$? $(head -5 "$work/out")"
    check "completions of $bytes bytes: no words of libmlx5" "" "$(cat "$work/words")"
done
finish
