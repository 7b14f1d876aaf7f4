#!/usr/bin/env bash
# Counters of a running program, read with DPDK's own tool: names, types, and that they only grow.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$1
command -v dpdk-telemetry.py >/dev/null || skip "dpdk-telemetry.py is missing (apt-get install dpdk-dev): telemetry was not read"
[ "$(id -u)" = 0 ] || skip "not root, whose run folder dpdk-telemetry.py reads: telemetry was not read"
work=$(mktemp -d)
own=weftio_telemetry_$$ # a name that no other program has
trap 'end_all; rm -rf "$work" "/run/dpdk/$own"' EXIT
cp "$build/samples/simple_receive" "$work/$own"

# Starts a program and waits for its telemetry; sets `program` and `socket`.
start()
{
    "$@" >"$work/out" 2>&1 &
    program=$!
    eventually_by $program finds_socket
}
# Several DPDK programs may run: ours is the socket whose peer has our process id.
finds_socket()
{
    socket=$(ss -xlp 2>/dev/null | awk -v me="pid=$program," 'index($0, me) && /dpdk_telemetry/ {print $5; exit}')
    [ -n "$socket" ]
}
# ask PROGRAM: runs it. It ends with 75 when it has waited for too long.
ask()
{
    python3 "$1" "$socket" "$patience"
    local status=$?
    [ $status != 75 ] || out_of_time "telemetry of $program"
    check "${1##*/}: exit status" 0 $status
}

start "$work/$own" -n null --seconds $((10 * patience))
cat >"$work/ask.py" <<'EOF'
import json, socket, sys, time
def ask(command):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(int(sys.argv[2]))
    s.connect(sys.argv[1])
    s.recv(16384)
    s.send(command.encode())
    try:
        answer = json.loads(s.recv(65536))
    except TimeoutError:
        print("no answer in time to", command)
        sys.exit(75)
    s.close()
    return list(answer.values())[0]
def rows(command):
    answer = ask(command) or {}
    return {name: row for name, row in answer.items() if name.isdigit()}
def eventually(what, holds):
    for _ in range(10 * int(sys.argv[2])):
        if holds():
            return
        time.sleep(0.1)
    print("not in time:", what)
    sys.exit(75)
eventually("a port", lambda: ask("/weftio/ports") and rows("/weftio/flow,0"))
assert ask("/weftio/ports") == {"0": "null"}, ask("/weftio/ports")
before = ask("/weftio/port,0")
def grows():
    global after
    after = ask("/weftio/port,0")
    for name, value in before.items():
        if isinstance(value, int) and name != "held":
            assert after[name] >= value, (name, value, after[name])
    return after["received"] > before["received"] and after["dropped_no_match"] > before["dropped_no_match"]
eventually("counters that grow", grows)
for name in ("no_match", "dropped_by_flow", "out_of_buffer", "too_long", "runt", "queue_closed"):
    assert "dropped_" + name in after, name
assert ask("/weftio/eth_rxq,0")["0"]["packets"] == 1024
assert ask("/weftio/eth_txq,0") == {"total": 0}
assert ask("/weftio/flow,0")["0"]["packets"] == 0
for wrong in ("77", "0x", "0,1", "zero", "99999999999", ""):
    assert ask("/weftio/port," + wrong) is None, wrong
print("telemetry of ports and queues: ok")
EOF
ask "$work/ask.py" || finish
echo /weftio/ports | timeout -k 5 $patience dpdk-telemetry.py -f "$own" >"$work/answer" 2>&1
grep -q '"0": "null"' "$work/answer" || { echo "dpdk-telemetry.py -f $own does not find it:"; cat "$work/answer"; exit 1; }
kill "$program"
wait_for_end "$program" 2>/dev/null

start "$build/samples/receive_process" -n null --seconds $((10 * patience))
sed '/^eventually("a port"/,$d' "$work/ask.py" >"$work/objects.py"
cat >>"$work/objects.py" <<'EOF'
def by_name():
    return {row["name"]: row for row in rows("/weftio/kernel").values()}
eventually("kernels", lambda: len(by_name()) == 2)
assert all(row["alive"] == 1 and row["blocks"] == 1 and row["queues"] > 0 for row in by_name().values()), by_name()
semaphores = rows("/weftio/semaphore")
assert len(semaphores) == 2, semaphores
seen = [row for row in semaphores.values() if "FREE" in row]
assert len(seen) == 1, semaphores  # the other one is where the CPU cannot look
assert seen[0]["items"] == sum(seen[0][status] for status in ("FREE", "READY", "HOLD", "DONE", "ERROR")), seen
assert all(row["illegal_transitions"] == 0 for row in semaphores.values()), semaphores
before = by_name()
eventually("kernels that beat", lambda: all(row["beats_of_its_queues"] != before[name]["beats_of_its_queues"] for name, row in by_name().items()))
print("telemetry of kernels and semaphores: ok")
EOF
ask "$work/objects.py"
finish
