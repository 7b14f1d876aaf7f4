#!/usr/bin/env bash
# Every public header compiles alone: as C++20, as OpenCL C and CUDA C++ where it is for kernels, and for aarch64, whose barriers are
# read in the assembly; ptx.sh reads those of CUDA.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/passed_before.bash"
cd "$(dirname "$0")/../.."
clang=$(command -v clang-14 || command -v clang)
arm=$(command -v aarch64-linux-gnu-g++)
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)
skip_if_passed device/include lib/include -- "${CXX:-g++}" $clang $arm $nvcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-Wall -Wextra -Wconversion -Werror)
mapfile -t for_kernels < <(cd device/include && find weftio -name '*.h' ! -path '*/platform/*' | sort)
mapfile -t for_hosts < <(cd lib/include && find weftio -name '*.hpp' | sort)
check "there are headers" yes "$([ ${#for_kernels[@]} -ge 10 ] && [ ${#for_hosts[@]} -ge 10 ] && echo yes)"

# alone WHAT SUFFIX HEADER COMPILER...: compiles a file that includes this header twice, and nothing else.
alone() {
    local what=$1 file=$work/alone.$2 header=$3
    shift 3
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$file"
    check "$header alone, $what" "" "$("$@" -Idevice/include "$file" 2>&1)"
}

for header in "${for_kernels[@]}" "${for_hosts[@]}"; do
    alone "C++20" cpp "$header" "${CXX:-g++}" -std=c++20 "${warnings[@]}" -fsyntax-only -Ilib/include
done

if [ -n "$clang" ]; then
    for header in "${for_kernels[@]}"; do
        alone "OpenCL C 3.0" cl "$header" "$clang" -x cl -cl-std=CL3.0 -Xclang -finclude-default-header \
            --target=spir64 -Wall -Wextra -Werror -fsyntax-only
    done
else
    echo "skipped: clang is missing (apt-get install clang-14): headers were not compiled as OpenCL C"
fi

if [ -n "$nvcc" ]; then
    for header in "${for_kernels[@]}"; do
        alone "CUDA" cu "$header" "$nvcc" -std=c++17 -arch=sm_90 -Werror all-warnings -ptx -o "$work/ptx"
    done
else
    echo "skipped: nvcc is missing: headers were not compiled as CUDA C++"
fi

[ -n "$arm" ] || skip "aarch64: its compiler is missing (apt-get install g++-aarch64-linux-gnu)"
for header in "${for_kernels[@]}"; do
    alone "aarch64" cpp "$header" "$arm" -std=c++20 "${warnings[@]}" -fsyntax-only
done

# instructions FUNCTION: of a function of the file below, in order, without what moves its arguments about.
instructions() {
    awk -v name="$1:" '$1 == name {inside = 1} inside && $1 == "ret" {exit} inside' "$work/barriers.s" |
        grep -oE '^[[:space:]]+(ldar|ldapr|stlr|dmb[[:space:]]+[a-z]+|str|ldr|yield|ldaxr|stlxr|bl)\b' | xargs
}
cat >"$work/barriers.cpp" <<'END'
#include "weftio/device/platform.h"
extern "C" {
weftio_u32 acquire(const weftio_u32* at) { return weftio_load_acquire_sys_u32(at); }
void release(weftio_u32* at, weftio_u32 value) { weftio_store_release_sys_u32(at, value); }
void release64(weftio_u64* at, weftio_u64 value) { weftio_store_release_sys_u64(at, value); }
weftio_u32 relaxed(const weftio_u32* at) { return weftio_load_relaxed_u32(at); }
void doorbell(weftio_u64* at, weftio_u64 value) { weftio_store_doorbell_u64(at, value); }
}
END
check "barriers for aarch64 compile" "" "$("$arm" -std=c++20 -O2 -S -Idevice/include -o "$work/barriers.s" "$work/barriers.cpp" 2>&1)"
check "aarch64: an acquire is one" "ldar" "$(instructions acquire)"
check "aarch64: a release is one" "stlr" "$(instructions release)"
check "aarch64: a release of 64 bits is one" "stlr" "$(instructions release64)"
check "aarch64: a relaxed load has no barrier" "ldr" "$(instructions relaxed)"
check "aarch64: a doorbell comes behind what was written, and leaves write-combining buffers" "stlr dmb oshst" "$(instructions doorbell)"
finish_passed
