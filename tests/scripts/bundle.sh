#!/usr/bin/env bash
# A bundle unpacked below /tmp, where everybody may write: its program runs with the bundle's own libraries and drivers only, and
# what a reader wants is in it.
set -uo pipefail
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d /tmp/weftio-bundle.XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# A library of the build has no package, and so no license of its own; it lies where LD_LIBRARY_PATH says, too.
LD_LIBRARY_PATH=$(realpath "$build/lib") WEFTIO_BUNDLE_ONLY="simple_receive|weftio-replay|doca_test|forward_bench|steering_bench" \
    "$here/cmake/bundle.sh" "$build" "$work/bundle.tar.gz" >"$work/words" 2>&1 || fail "no bundle: $(cat "$work/words")"

# What is not built is named, and the archive of an earlier call does not stay.
echo "of an earlier call" >"$work/old.tar.gz"
WEFTIO_BUNDLE_ONLY="simple_receive|no_such_program" "$here/cmake/bundle.sh" "$build" "$work/old.tar.gz" >"$work/words" 2>&1 &&
    fail "a bundle without a program that was asked for: $(cat "$work/words")"
grep -q "no_such_program, which is not in $build" "$work/words" || fail "it does not say which program is missing: $(cat "$work/words")"
[[ ! -e $work/old.tar.gz ]] || fail "the archive of an earlier call is still there"
tar -C "$work" -xzf "$work/bundle.tar.gz" || fail "the archive cannot be unpacked"
cd "$work/weftio" || fail "no folder weftio in the archive"

[[ $(stat -c %A /tmp) == *w? ]] || fail "not everybody may write to /tmp here, so EAL's refusal would not be met"
bin/weftio-replay -t --json - "$here/lib/src/dpdk/builtin.pcap" "pcap:tx=$work/out.pcap" >"$work/report" 2>"$work/words" ||
    fail "weftio-replay ended with status $?: $(cat "$work/words")"
[[ $(stat -c %s "$work/out.pcap") -gt 1000 ]] || fail "nothing was sent"
bin/simple_receive >"$work/received" 2>&1 || fail "simple_receive ended with status $?: $(cat "$work/received")"
grep -q "EAL" "$work/received" "$work/words" && fail "EAL speaks: $(grep -h EAL "$work/received" "$work/words")"

# Its drivers lie beside EAL, also when libweftio_doca.so, which has EAL's calls too, lies elsewhere.
for place in "$work/weftio/lib" "$work/elsewhere"; do
    mkdir -p "$place"
    [[ $place == */lib ]] || mv lib/libweftio_doca.so "$place/"
    LD_LIBRARY_PATH=$place bin/doca_test --gtest_filter=DocaPackets.ArriveInOrderWithZerosBehindThem >"$work/doca" 2>&1 ||
        fail "doca_test with its library in $place ended with status $?: $(cat "$work/doca")"
done

# Nothing of DPDK may come from the machine.
WEFTIO_LOG=debug LD_DEBUG=libs bin/simple_receive 2>&1 | grep -o "calling init: /.*librte_[^ ]*" | awk '{print $3}' >"$work/loaded"
[[ -s $work/loaded ]] || fail "it loads no DPDK at all"
grep -v "^$work/" "$work/loaded" && fail "libraries of DPDK that are not the bundle's"

for file in LICENSE README.md docs/troubleshooting.md docs/guide.md share/man/man1/weftio-replay.1; do
    [[ -s $file ]] || fail "$file is missing"
done
said=$(bench/pairs --list --only forward 2>&1)
[[ $said == forward_bench ]] || fail "bench/pairs does not run in it: $said"
# Figures of a machine with nothing installed; beside testpmd where this machine has one to pack.
bench/figures --only steering_bench --words="--only parse --rounds 1 --seconds 0.001" --json "$work/figures.json" >"$work/said" 2>&1 ||
    fail "bench/figures ended with status $?: $(cat "$work/said")"
[[ $(grep -c '"program": "steering_bench"' "$work/figures.json") == 2 ]] || fail "bench/figures has no rows: $(cat "$work/said")"
if command -v dpdk-testpmd >/dev/null; then
    bench/figures --only versus --words="--only ring --rounds 1 --seconds 0.05" --json "$work/versus.json" >"$work/said" 2>&1 || fail "bench/figures with testpmd ended with status $?: $(cat "$work/said")"
    grep -q '"peer": "forward ring 64: testpmd macswap"' "$work/versus.json" || fail "no figure is beside testpmd: $(cat "$work/said")"
    LD_DEBUG=libs bin/dpdk-testpmd --help 2>&1 | grep -o "calling init: /.*librte_[^ ]*" | awk '{print $3}' >"$work/loaded"
    grep -q net_null "$work/loaded" || fail "testpmd loads no drivers"
    grep -v "^$work/" "$work/loaded" && fail "testpmd loads libraries of DPDK that are not the bundle's"
fi
[[ -z $(find bench -name '*.pyc') ]] || fail "programs in Python write into the bundle"
grep -q "BSD" licenses/*rte* licenses/*dpdk* 2>/dev/null || fail "DPDK's license is missing: $(ls licenses)"
echo "a bundle below /tmp: runs, with drivers, licenses and documentation of its own"
