#!/usr/bin/env bash
# Counters of a running program, read with DPDK's own tool: names, types, and that they only grow.
set -uo pipefail
build=$1
command -v dpdk-telemetry.py >/dev/null || { echo "skipped: dpdk-telemetry.py is missing (apt-get install dpdk-dev): telemetry was not read"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: not root, whose run folder dpdk-telemetry.py reads: telemetry was not read"; exit 77; }
work=$(mktemp -d)
own=weftio_telemetry_$$ # a name that no other program has
trap 'kill "${program:-0}" 2>/dev/null; rm -rf "$work" "/run/dpdk/$own"' EXIT
cp "$build/samples/simple_receive" "$work/$own"

# Starts a program and waits for its telemetry; sets `program` and `socket`.
start()
{
    "$@" >"$work/out" 2>&1 &
    program=$!
    socket=""
    for _ in $(seq 200); do
        # Several DPDK programs may run: ours is the socket whose peer has our process id.
        socket=$(ss -xlp 2>/dev/null | awk -v me="pid=$program," 'index($0, me) && /dpdk_telemetry/ {print $5; exit}')
        [ -n "$socket" ] && return
        sleep 0.1
    done
    echo "no telemetry socket"
    cat "$work/out"
    exit 1
}

start "$work/$own" -n null --seconds 60
cat >"$work/ask.py" <<'EOF'
import json, socket, sys, time
def ask(command):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(sys.argv[1])
    s.recv(16384)
    s.send(command.encode())
    answer = json.loads(s.recv(65536))
    s.close()
    return list(answer.values())[0]
def rows(command):
    answer = ask(command) or {}
    return {name: row for name, row in answer.items() if name.isdigit()}
deadline = time.time() + 30
while not ask("/weftio/ports") or not rows("/weftio/flow,0"):
    assert time.time() < deadline, "no port within 30 s"
    time.sleep(0.1)
assert ask("/weftio/ports") == {"0": "null"}, ask("/weftio/ports")
before = ask("/weftio/port,0")
deadline = time.time() + 30
while True:
    after = ask("/weftio/port,0")
    for name, value in before.items():
        if isinstance(value, int) and name != "held":
            assert after[name] >= value, (name, value, after[name])
    if after["received"] > before["received"] and after["dropped_no_match"] > before["dropped_no_match"]:
        break
    assert time.time() < deadline, (before, after)
    time.sleep(0.1)
for name in ("no_match", "dropped_by_flow", "out_of_buffer", "too_long", "runt", "queue_closed"):
    assert "dropped_" + name in after, name
assert ask("/weftio/eth_rxq,0")["0"]["packets"] == 1024
assert ask("/weftio/eth_txq,0") == {"total": 0}
assert ask("/weftio/flow,0")["0"]["packets"] == 0
for wrong in ("77", "0x", "0,1", "zero", "99999999999", ""):
    assert ask("/weftio/port," + wrong) is None, wrong
print("telemetry of ports and queues: ok")
EOF
python3 "$work/ask.py" "$socket" || exit 1
echo /weftio/ports | timeout 20 dpdk-telemetry.py -f "$own" >"$work/answer" 2>&1
grep -q '"0": "null"' "$work/answer" || { echo "dpdk-telemetry.py -f $own does not find it:"; cat "$work/answer"; exit 1; }
kill "$program"
wait "$program" 2>/dev/null

start "$build/samples/receive_process" -n null --seconds 60
sed '/^while not ask/,$d' "$work/ask.py" >"$work/objects.py"
cat >>"$work/objects.py" <<'EOF'
def by_name():
    return {row["name"]: row for row in rows("/weftio/kernel").values()}
while len(by_name()) < 2:
    assert time.time() < deadline, "no kernels within 30 s"
    time.sleep(0.1)
assert all(row["alive"] == 1 and row["blocks"] == 1 and row["queues"] > 0 for row in by_name().values()), by_name()
semaphores = rows("/weftio/semaphore")
assert len(semaphores) == 2, semaphores
seen = [row for row in semaphores.values() if "FREE" in row]
assert len(seen) == 1, semaphores  # the other one is where the CPU cannot look
assert seen[0]["items"] == sum(seen[0][status] for status in ("FREE", "READY", "HOLD", "DONE", "ERROR")), seen
assert all(row["illegal_transitions"] == 0 for row in semaphores.values()), semaphores
before = by_name()
while any(row["beats_of_its_queues"] == before[name]["beats_of_its_queues"] for name, row in by_name().items()):
    assert time.time() < deadline, "a kernel does not beat"
    time.sleep(0.1)
print("telemetry of kernels and semaphores: ok")
EOF
python3 "$work/objects.py" "$socket"
