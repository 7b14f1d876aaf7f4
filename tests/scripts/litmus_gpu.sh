#!/usr/bin/env bash
# weftio-litmus with memory of a GPU, on stand-ins of libibverbs and of NVIDIA's driver (whose kernel is a thread of the CPU): where
# bytes are late there are stale reads without a flush, and none with one; so too with late copies. Then the same under weftio-run, and
# the kernel's text in the hands of NVIDIA's assembler. With WEFTIO_CUDA_DRIVER=FOLDER the driver under weftio-run is NVIDIA's.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
litmus=$build/apps/weftio-litmus late=$build/tests/vendor/verbs vendor=$build/tests/vendor
[ -x "$litmus" ] && [ -f "$late/libibverbs.so.1" ] && [ -f "$vendor/libcuda.so.1" ] ||
    skip "stale reads in memory of a GPU: weftio-litmus is not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rows FILE KEY...: how many rows have which values of these keys, trials, and stale reads or none
rows()
{
    python3 -c '
import collections, json, sys
count = collections.Counter()
for row in json.load(open(sys.argv[1]))["rows"]:
    if "not_there" not in row:
        words = [str(row[key]) for key in sys.argv[2:]]
        count[" | ".join(words + [str(row.get("trials", row.get("not_run"))), "are_some" if row.get("stale") else "are_none"])] += 1
for words, rows in sorted(count.items()):
    print(rows, words)' "$@"
}

# why FILE: how many rows are not there, and why
why()
{
    python3 -c '
import collections, json, sys
reasons = collections.Counter(row["not_there"] for row in json.load(open(sys.argv[1]))["rows"] if "not_there" in row)
for reason, rows in sorted(reasons.items()):
    print(rows, reason)' "$1"
}

# stands_in OPTION...: litmus on the stand-ins; a byte of GPU memory that the CPU touches ends it
stands_in()
{
    STAND_IN_HIDES=1 LD_LIBRARY_PATH=$late:$vendor timeout $((10 * patience)) "$litmus" "$@"
}

all="--gpu 0 --peer-gpu 1 -d stand_in_0 --second stand_in_1"
# Few pairs, many rounds: the first data of each are late in some of them, also where threads wait for processors.
# Memory of a GPU by cuMemAlloc() and by cuMemCreate().
for memory in alloc vmm; do
    stands_in $all --memory $memory --only "WRITE,data in GPU" --pairs 16 --trials 6000 --json >"$work/late"
    check "$memory, late bytes in a GPU: exit status" 3 $?
    check "$memory, late bytes in a GPU: no flush, and flushes" "60 READ, other pair | 6000 | are_none
60 READ, same pair | 6000 | are_none
60 driver's call | 6000 | are_none
60 none | 6000 | are_some" "$(rows "$work/late" flush | grep -v second)"
    check "$memory, four parties: a READ by the NIC that wrote the flag alone is no flush" "18 READ, second NIC | 6000 | are_some" \
        "$(rows "$work/late" flush | grep second)"
    check "$memory, late bytes in a GPU: who reads" "are_some CPU by copies
are_some GPU
are_some second GPU" "$(rows "$work/late" reader flush | sed -n "s/[0-9]* \(.*\) | none | 6000 | \(.*\)/\2 \1/p")"
done
check "--memory vmm: only such memory of a GPU" "258 GPU VMM" "$(rows "$work/late" memory | awk '{n += $1; m = $2 " " $3} END {print n, m}')"
stands_in $all --only "WRITE,data in host / read by GPU" --pairs 16 --trials 6000 --json >"$work/host"
check "late bytes in the host, read by a GPU" "14 READ, other pair | 6000 | are_none
14 READ, same pair | 6000 | are_none
14 none | 6000 | are_some" "$(rows "$work/host" flush | grep -v -e CPU -e second)"
STAND_IN_NIC=orderly stands_in $all --trials 500 --json >"$work/orderly"
check "a NIC that keeps the order: exit status" 0 $?
check "a NIC that keeps the order" "" "$(rows "$work/orderly" flush | grep -v "| 500 | are_none")"
check "rows that are not there" "1 a CPU load before the CPU reads the data is no row of its own: it loads them anyway
2 the CPU can load from memory of a GPU only where GDRCopy maps it, which this program does not use
1 the CPU can store into memory of a GPU only where GDRCopy maps it, which this program does not use" "$(why "$work/orderly")"

STAND_IN_NIC=orderly STAND_IN_COPIES=late stands_in $all --only "copy engine" --trials 6000 --json >"$work/copies"
check "late copies: exit status" 3 $?
check "late copies: no flush, and the driver's call" "6 driver's call | 6000 | are_none
6 none | 6000 | are_some" "$(rows "$work/copies" flush)"
STAND_IN_NIC=orderly STAND_IN_COPIES=late stands_in $all --only "copy, NIC" --trials 6000 --json >"$work/copies"
check "late copies, the NIC's flag: a READ by the NIC is no flush" "6 READ, other pair | 6000 | are_some
6 driver's call | 6000 | are_none
6 none | 6000 | are_some" "$(rows "$work/copies" flush)"

stands_in --gpu 1 --only "WRITE / host memory / none,read by GPU" --strict --until 3 --pairs 8 >"$work/table"
check "--until 3: exit status" 3 $?
check_has "--until 3: the kernel ends there" "
3 stale reads of " "$(cat "$work/table")"
check_has "the GPU's promises are told" \
    "GPU: stand-in 1; GPU_DIRECT_RDMA_WRITES_ORDERING 100 (owner), FLUSH_WRITES_OPTIONS 1 (driver's call)" "$(cat "$work/table")"
check_has "registered by its address" "Memory of the GPU was registered by ibv_reg_mr." "$(cat "$work/table")"
STAND_IN_NIC=dma_buf,orderly stands_in --gpu 0 --only "WRITE / other region / none,data in GPU" --memory alloc,vmm --trials 100 >"$work/dma_buf"
check "a NIC that takes dma-bufs only: exit status" 0 $?
check "a NIC that takes dma-bufs only: rows of both memories" "4 4" \
    "$(grep -c "^GPU  *[GCs]" "$work/dma_buf") $(grep -c "^GPU VMM" "$work/dma_buf")"
check_has "registered by a dma-buf" "Memory of the GPU was registered by ibv_reg_dmabuf_mr." "$(cat "$work/dma_buf")"
STAND_IN_LACKS=110 stands_in --gpu 0 --memory alloc,vmm --only "WRITE / same region / none" --strict --trials 100 >"$work/lacks"
check_has "a GPU without mapped memory for NICs" \
    "the GPU has no mapped memory (cuMemCreate) that NICs reach: GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED is 0" "$(cat "$work/lacks")"
check "a GPU without mapped memory for NICs: the others are there" "0" "$(grep -c "^GPU VMM" "$work/lacks")"
STAND_IN_REFUSES=cuMemCreate stands_in --gpu 0 --memory alloc,vmm --only "WRITE / same region / none,read by GPU,data in GPU" --strict \
    --trials 100 >"$work/refused"
check_has "a driver that creates no memory: the row says so" \
    "not run: the GPU gives no memory that NICs reach (cuMemCreate): STAND_IN (801)" "$(cat "$work/refused")"
check "a driver that creates no memory: rows of cuMemAlloc() run" 1 "$(grep -c "^GPU  *GPU .* 100 " "$work/refused")"
: >"$work/long"
STAND_IN_HIDES=1 LD_LIBRARY_PATH=$late:$vendor "$litmus" --gpu 0 --only "data in GPU / read by GPU" --trials 1000000000 >"$work/long" 2>&1 &
program=$!
eventually grep -q "Trials/s" "$work/long"
kill -INT $program
wait $program
status=$?
check "Ctrl-C ends the kernel" "ended" "$([ $status = 130 ] || [ $status = 3 ] && echo ended || echo "status $status")"

# refused WORDS OPTION...: exit status and words
refused()
{
    check "${*:2}" "$1" "$(out=$(stands_in "${@:2}" 2>&1); echo "$? $out")"
}
refused "2 weftio-litmus: there is no GPU 2; there are 2, numbered from 0" --gpu 2
refused "2 weftio-litmus: there is no GPU at 0000:17:00.0; \`nvidia-smi -L\` and \`lspci\` list them" --gpu 0000:17:00.0
refused "2 weftio-litmus: --peer-gpu is the GPU of --gpu; give another one" --gpu 1 --peer-gpu 1
refused "1 weftio-litmus: --peer-gpu requires --gpu
Run with --help for usage." --peer-gpu 1
refused "1 weftio-litmus: --memory alloc,managed: managed is no memory of a GPU; give alloc, vmm, or alloc,vmm
Run with --help for usage." --memory alloc,managed
refused "2 weftio-litmus: --second stand_in_0: that is the first device, too; give another one, or -d" --second stand_in_0
check "no driver" 2 "$(LD_LIBRARY_PATH=$late "$litmus" --gpu 0 >"$work/words" 2>&1; echo $?)"
[ -e /dev/nvidia0 ] || check_has "no driver: why" "weftio-litmus: no driver of NVIDIA's GPUs (libcuda.so.1: " "$(cat "$work/words")"
LD_LIBRARY_PATH=$late "$litmus" --only "data in GPU / read by GPU" >"$work/table"
check "rows that all need a GPU, without one" 2 $?
check_has "rows that all need a GPU: why" "needs --gpu" "$(cat "$work/table")"

if [ -x "$build/apps/weftio-run" ]; then
    needs_weftio_run "weftio-litmus with memory of a GPU under weftio-run"
    bounded env STAND_IN_HIDES=1 LD_LIBRARY_PATH="${WEFTIO_CUDA_DRIVER:-$vendor}" "$run" --wire litmus-gpu-$$ --devices 2 -- \
        "$litmus" --gpu 0 -d mlx5_0 --second mlx5_1 --memory alloc,vmm --strict --only GPU --trials 300 --json >"$work/run" 2>"$work/words"
    check "under weftio-run: exit status" 0 $? || head "$work/words"
    check "under weftio-run" "" "$(rows "$work/run" flush | grep -v "| 300 | are_none")"
    check_has "under weftio-run: no atomics" "32 the NIC refuses atomics in memory of a GPU" "$(why "$work/run")"
fi

if assembler=$(PATH=$PATH:/usr/local/cuda/bin command -v ptxas); then
    sed -n '/R"(/,/)"/p' "$source/apps/litmus/kernel.cpp" | sed '1d;$d' >"$work/kernel.ptx"
    check "the kernel is PTX" 0 "$("$assembler" -arch=sm_90 "$work/kernel.ptx" -o "$work/kernel.cubin" >"$work/words" 2>&1; echo $?)" ||
        cat "$work/words"
    check "the kernel's accesses of memory are all of the system's scope" "" \
        "$(grep -E '^ *(ld|st)\.' "$work/kernel.ptx" | grep -vE '\.(param|acquire\.sys|relaxed\.sys|release\.sys)\.')"
fi
finish
