#!/usr/bin/env bash
# Asynchronous events under weftio-run: of queue pairs, completion queues and ports, and what the log says of failures.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1") script=$(realpath "$0")
needs_weftio_run "events under weftio-run"
needs_file /usr/include/infiniband/mlx5dv.h libibverbs-dev "events under weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program events -libverbs -lmlx5

if [ "${2:-}" != port ]; then
    bounded "$run" --wire events-$$ -- "$work/events" >"$work/out" 2>"$work/log"
    check "events of queue pairs and completion queues" "0 0 checks failed" "$? $(cat "$work/out")"
    sentence() { check_has "the log: $1" "$2" "$(grep -E "$3" "$work/log")"; }
    sentence "a refused request" ": the peer refused access to its memory: wrong key, range, rights or protection domain (peer: queue pair " \
        "entry at position 0 failed: 8 bytes at 0x[0-9a-f]+ with key 0x[0-9a-f]+:"
    sentence "why it was refused" "with key 0x" "the peer's WRITE was refused: 8 bytes at 0x[0-9a-f]+ .*\(peer: queue pair [0-9]+ at [0-9.]+\)$"
    sentence "a right that is missing" "the queue's rights lack access::remote_read" "the peer's READ was refused"
    sentence "a receive" "the message is longer than the receive entry" "receive entry at position 0"
    check "the log: one sentence for each failure" 10 "$(grep -c 'weftio: rdma_queue' "$work/log")"

    as=(unshare --net)
    [ "$(id -u)" = 0 ] || as+=(--user --map-root-user)
    if "${as[@]}" ip link add v0 type veth peer name v1 2>/dev/null; then
        "${as[@]}" bash "$script" "$build" port || failures=$((failures + 1))
    else
        echo "not checked: events of ports (no network namespaces here)"
    fi
    finish
fi

ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up || exit 1
: >"$work/out"
"$run" --port iface:v0 -- "$work/events" port >"$work/out" 2>"$work/log" &
process=$!
eventually_by $process grep -q ^ready "$work/out"
ip link set v1 down
eventually_by $process grep -q ^down "$work/out"
ip link set v1 up
wait_for_end $process
check "events of a port: exit status" 0 $?
check "events of a port" "ready down 0 checks failed" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"
finish
