#!/usr/bin/env bash
# Memory of a GPU under weftio-run: ibv_reg_mr and ibv_reg_dmabuf_mr of what cuMemAlloc has allocated. The driver is NVIDIA's where there
# is one (WEFTIO_CUDA_DRIVER names its folder), else the stand-in, of whose memory the CPU can touch no byte but by copies.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "memory of GPUs under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "memory of GPUs under weftio-run"
folder=${WEFTIO_CUDA_DRIVER:-$build/tests/vendor}
[ -e "$folder/libcuda.so.1" ] || skip "memory of GPUs under weftio-run: no libcuda.so.1 in $folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_program gpu_memory -ldl -libverbs

# with CASE OPTION...: one case of the program below weftio-run. What the engine logs goes to $work/words.
with() {
    bounded env STAND_IN_HIDES=1 LD_LIBRARY_PATH="$folder" "$run" --wire gpu-memory-$$ "${@:2}" -- "$work/gpu_memory" "$1" \
        >"$work/out" 2>"$work/words"
    check "$*" "0 0 checks failed" "$? $(head -20 "$work/out")" || head -20 "$work/words"
}
with touch
with dma_buf
check_has "why a dma-buf is refused" "pass the address of the memory as iova" "$(cat "$work/words")"
for devices in 1 2; do
    for case in reliable unreliable datagrams atomics freed context; do
        with $case --devices $devices
    done
done
with reliable --dump "$work/packets"
with loss --devices 2 --loss 0.02,11
with freed
check_has "why a queue pair fails that writes to freed memory" "the peer's WRITE was refused: " "$(cat "$work/words")"
with atomics
check_has "why an atomic is refused" "where copies take the place of stores" "$(cat "$work/words")"
with reliable --devices 2
check "a program that does nothing wrong has nothing in the log" "" "$(cat "$work/words")"
finish
