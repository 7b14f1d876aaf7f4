#!/usr/bin/env bash
# Every sample on the CPU device with one lane and with many. A build with WEFTIO_SHUFFLE_LANES runs the lanes in another order at
# every switch, so a barrier that is missing shows here as a wrong count.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect NAME TEXT COMMAND...: the command's output has a line that begins with TEXT.
expect()
{
    local name=$1 text=$2
    shift 2
    timeout -k 5 "$patience" "$@" >"$work/out" 2>&1
    local status=$?
    [ $status != 124 ] || grep -q Sanitizer: "$work/out" || out_of_time "$name"
    check "$name: exit status" 0 $status && grep -q "^$text" "$work/out" && return
    check "$name: a line \"$text\"" 0 1
    tail -n 20 "$work/out"
}

for lanes in 1 2 32 33 256; do
    expect "simple_receive, $lanes lanes" "received 50, delivered 23, dropped 27" "$build/samples/simple_receive" --lanes $lanes
    lines=$(grep -c '^Lane ' "$work/out")
    check "simple_receive, $lanes lanes: lines" 23 "$lines"
    expect "receive_process, $lanes lanes" "udp  *23  *11420" "$build/samples/receive_process" --lanes $lanes
    expect "send_wait_time, $lanes lanes" "sent 256, failed 0, flushed 0" "$build/samples/send_wait_time" -t 100000 --lanes $lanes
    expect "produce_send, $lanes lanes" "sent 5000, failed 0, flushed 0" "$build/samples/produce_send" --count 5000 --lanes $lanes
    expect "dma_memcpy, $lanes lanes" "copied 3000, failed 0, flushed 0; 3000 of 3000 pieces verified" "$build/samples/dma_memcpy" --count 3000 --bytes 500 --lanes $lanes
done
finish
