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
trap 'end_all; rm -rf "$folder"; rm -rf /dev/shm/weftio-*-$wire*' EXIT

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

# refuses WHAT PROCESS SENTENCE [BEFORE...]: --show of it is refused with the sentence.
refuses() {
    local said
    said=$("${@:4}" timeout 30 "$run" --show "$2" 2>&1)
    check "--show of $1" 125 $?
    check "--show of $1: what it says" "weftio-run: --show $2: $3" "$said"
}

# A process that is stopped accepts none, and the kernel keeps a few connections for it: later ones must not wait for ever.
is_in_state() { [ "$(awk '/^State:/ { print $2 }' /proc/"$1"/status)" = "$2" ]; }
kill -STOP "$server"
eventually is_in_state "$server" T
for each in 1 2 3 4 5 6; do
    refuses "a process that is stopped, $each" "$server" "is stopped; continue it (kill -CONT $server) and ask again"
done
kill -CONT "$server"
check_has "--show answers when it is continued" ", local write" "$("$run" --show "$server")"

if [ "$(id -u)" = 0 ]; then
    refuses "another user's process" "$server" "is a process of another user; ask as that user or as root" \
        setpriv --reuid 65534 --regid 65534 --clear-groups
else
    refuses "another user's process" 1 "is a process of another user; ask as that user or as root"
fi
refuses "a process that weftio-run has not started" $$ "was not started by weftio-run; name a process that was"
"$run" --wire "$wire" -- sleep 1000 &
sleeper=$!
is_sleeping() { [ "$(cat /proc/"$1"/comm)" = sleep ]; }
eventually is_sleeping "$sleeper"
refuses "a process without devices" "$sleeper" "has not searched for devices yet; ask again when it has"
python3 -c 'import os, socket, sys, time
folder = f"/dev/shm/weftio-run-{os.getpid()}-{sys.argv[1]}"
os.mkdir(folder)
to = socket.socket(socket.AF_UNIX)
to.bind(folder + "/show")
to.listen(4)
open(sys.argv[2], "w")
time.sleep(1000)' "$wire" "$folder/listens" &
silent=$!
eventually test -f "$folder/listens"
refuses "a process that does not accept" "$silent" "does not answer within 2 s; ask again"
kill -KILL $sleeper $silent
wait $sleeper $silent 2>/dev/null
rm -rf "/dev/shm/weftio-run-$silent-$wire"

"$run" --wire "$wire" -- ibv_rc_pingpong -g 0 -c -n 20 -p $((20000 + $$ % 20000)) 127.0.0.1 >"$folder/client" 2>&1
check "the client ends well" 0 $?
wait_for_end $server
check "the server ends well, though it was looked at" 0 $?

refuses "a process that has ended" "$server" "no such process; name one that weftio-run has started"
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
