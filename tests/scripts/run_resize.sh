#!/usr/bin/env bash
# ibv_resize_cq() under weftio-run: larger and smaller, while completions lie unread and while others come, of 64 and 128 bytes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
export WEFTIO_LOG=error # what the programs are refused is what they ask for here
build=$(realpath "$1") here=$(dirname "$(realpath "$0")")/../verbs
run=$build/apps/weftio-run
[ -x "$run" ] && [ -f "$build/lib/verbs/libweftio-verbs.so" ] || skip "ibv_resize_cq under weftio-run: not built"
[ -f /usr/include/infiniband/verbs.h ] || skip "ibv_resize_cq under weftio-run: no verbs.h: install libibverbs-dev"
unset LD_PRELOAD SYSFS_PATH ${!WEFTIO_RUN_*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O1 -Wall -Wextra -Werror -std=gnu11 -o "$work/resize" "$here/resize.c" -libverbs || exit 1
for bytes in 64 128; do
    MLX5_CQE_SIZE=$bytes bounded "$run" --wire resize-$$ -- "$work/resize" >"$work/out" 2>"$work/words"
    check "completions of $bytes bytes" "0 0 checks failed" "$? $(head -5 "$work/out")"
    check "completions of $bytes bytes: no words of libmlx5" "" "$(cat "$work/words")"
done
finish
