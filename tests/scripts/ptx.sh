#!/usr/bin/env bash
# What nvcc makes of platform/cuda.h: each primitive is the PTX instruction that the contract names, and ordinary accesses stay on
# their side of it. No GPU is needed.
set -uo pipefail
source=$(realpath "$(dirname "$0")/../..")
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) || {
    echo "skipped: the order of memory accesses in PTX: nvcc is not installed"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$nvcc" -std=c++17 -O3 -arch=sm_90 -ptx -I"$source/device/include" "$source/tests/gpu/codegen.cu" -o "$work/ptx" || exit 1

# Memory instructions of one kernel, in order, less the reading of parameters and addresses.
accesses() {
    sed -n "/\.entry $1(/,/^}/p" "$work/ptx" | grep -oE '^\s*(@%p[0-9]+ )?(ld|st|atom|fence|membar|red)\.[a-z0-9_.]+' |
        grep -vE 'ld\.param|ld\.global\.u64' | awk '{print $NF}' | sed -E 's/\.b32$/.u32/; s/^(ld|st)\.global/\1/' | paste -sd' '
}

failures=0
expect() { # kernel, its accesses
    local seen
    seen=$(accesses "$1")
    if [[ " $seen " == *" $2 "* ]]; then
        echo "ok: $1: $2"
    else
        printf 'FAILED: %s\n    expected %s\n    seen     %s\n' "$1" "$2" "${seen:-no such kernel}"
        failures=$((failures + 1))
    fi
}

expect load_relaxed "ld.relaxed.sys.u32 st.u32"
expect load_acquire "ld.acquire.gpu.u32 ld.u32 st.u32"
expect load_acquire_sys "ld.acquire.sys.u32 ld.u32 st.u32"
expect load_acquire_sys_wide "ld.acquire.sys.u64 ld.u32 st.u64"
expect store_relaxed "st.relaxed.sys.u32"
expect store_release "st.u32 st.release.gpu.u32"
expect store_release_sys "st.u32 st.release.sys.u32"
expect store_release_sys_wide "st.u32 st.release.sys.u64"
expect load_x4 "ld.v4.u32 st.u32"
expect store_x4 "st.v4.u32"
expect doorbell "st.u32 fence.acq_rel.sys st.mmio.relaxed.sys.u64"
expect fetch_add "st.u32 atom.acq_rel.gpu.add.u32 st.u32"
expect compare_exchange "st.u32 atom.acquire.gpu.cas.u32 st.u32"
expect fetch_add_relaxed "atom.relaxed.gpu.add.u32 st.u32"
expect load_constant "ld.u32 st.u32 st.u32 st.u32 st.u32"
expect fetch_add_acquire "atom.acquire.gpu.add.u32 ld.u32 st.u32"
expect publish_together "st.u32 ld.relaxed.gpu.u32 ld.relaxed.gpu.u32 fence.acq_rel.sys st.relaxed.sys.u32"

# A send: frame, entry (its control segment last), record, doorbell. A receive: how far, publication
# word, completion, packet, slot back.
words() { accesses "$1" | tr ' ' '\n' | grep -vE '^ld\.(relaxed|u32|u64)' | paste -sd' '; }
send=$(words send)
[[ $send == "st.u32 st.v4.u32 st.v4.u32 st.v4.u32 st.relaxed.sys.u32 fence.acq_rel.sys st.relaxed.sys.u32 fence.acq_rel.sys st.mmio.relaxed.sys.u64" ]] &&
    echo "ok: send: $send" || { echo "FAILED: send: $send"; failures=$((failures + 1)); }
receive=$(accesses receive | tr ' ' '\n' | uniq | paste -sd' ')
[[ $receive == "ld.relaxed.sys.u32 ld.acquire.sys.u32 ld.u32 st.u32 st.release.sys.u32" ]] &&
    echo "ok: receive: $receive" || { echo "FAILED: receive: $receive"; failures=$((failures + 1)); }

[ $failures = 0 ] || { echo "$failures of 20 failed"; exit 1; }
echo "all 20 passed"
