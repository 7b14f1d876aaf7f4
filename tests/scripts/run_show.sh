#!/usr/bin/env bash
# weftio-run --show and --dump: a look at a program that runs, and at its packets.
#
#   run_show.sh BUILD_DIR
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "weftio-run --show"
command -v ibv_rc_pingpong >/dev/null || skip "ibv_rc_pingpong is not installed (ibverbs-utils)"
wire=show-$$
folder=$(mktemp -d)
trap 'end_all; rm -rf "$folder"; rm -f /dev/shm/weftio-*-$wire*' EXIT

"$run" --wire "$wire" --dump "$folder/dump.pcapng" -- ibv_rc_pingpong -g 0 -c -n 20 -p $((20000 + $$ % 20000)) >"$folder/server" 2>&1 &
server=$!
shown=
for _ in $(seq 300); do
    shown=$("$run" --show "$server" 2>/dev/null)
    [[ $shown == *"queue pair "*" 500 receives posted"* ]] && break
    sleep 0.1
done
check_has "--show names the device" "mlx5_0: port wire:$wire, MTU 4200, up, addresses " "$shown"
check_has "--show counts what there is" "1 protection domains, 1 memory regions, 1 completion queues, 1 queue pairs" "$shown"
check_has "--show tells the region" ", local write" "$shown"
check_has "--show tells what the queue pair waits for" ": INIT, not connected" "$shown"
check_has "--show tells its receives" "receives posted" "$shown"

# Who asks and does not wait for the answer takes nothing from the program, nor from the next who asks.
for _ in $(seq 20); do
    python3 -c 'import glob, socket, sys
to = socket.socket(socket.AF_UNIX)
to.connect(glob.glob(f"/dev/shm/weftio-run-{sys.argv[1]}-*/show")[0])' "$server"
done
check_has "--show answers after some who did not listen" ", local write" "$("$run" --show "$server")"

"$run" --wire "$wire" -- ibv_rc_pingpong -g 0 -c -n 20 -p $((20000 + $$ % 20000)) 127.0.0.1 >"$folder/client" 2>&1
check "the client ends well" 0 $?
wait_for_end $server
check "the server ends well, though it was looked at" 0 $?

said=$("$run" --show "$server" 2>&1)
check "--show of a process that has ended" 125 $?
check_has "it says so" "no such process answers" "$said"
said=$("$run" --show none 2>&1)
check "--show of no number" 125 $?
check_has "it says so" "--show none: not a process ID" "$said"
"$run" --show 1 true >/dev/null 2>&1
check "--show with a program" 125 $?

if command -v tshark >/dev/null; then
    packets=$(tshark -r "$folder/dump.pcapng" -Y infiniband 2>/dev/null | wc -l)
    check "--dump has all messages both ways" yes "$([ "$packets" -ge 160 ] && echo yes || echo "$packets packets")"
    check "no packet is malformed" "" "$(tshark -r "$folder/dump.pcapng" -Y _ws.malformed 2>/dev/null)"
fi
finish
