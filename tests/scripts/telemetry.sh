#!/usr/bin/env bash
# Counters of a running program, read with DPDK's own tool: names, types, and that they only grow.
set -uo pipefail
build=$1
command -v dpdk-telemetry.py >/dev/null || { echo "skipped: dpdk-telemetry.py is missing (apt-get install dpdk): telemetry was not read"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: not root, whose run folder dpdk-telemetry.py reads: telemetry was not read"; exit 77; }
work=$(mktemp -d)
trap 'kill "${program:-0}" 2>/dev/null; rm -rf "$work"' EXIT

"$build/samples/simple_receive" -n null --seconds 60 >"$work/out" 2>&1 &
program=$!
socket=""
for _ in $(seq 200); do
    # Several DPDK programs may run: ours is the socket whose peer has our process id.
    socket=$(ss -xlp 2>/dev/null | awk -v me="pid=$program," 'index($0, me) && /dpdk_telemetry/ {print $5; exit}')
    [ -n "$socket" ] && break
    sleep 0.1
done
[ -n "$socket" ] || { echo "no telemetry socket"; cat "$work/out"; exit 1; }

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
deadline = time.time() + 30
while not ask("/weftio/ports") or not ask("/weftio/flow,0"):
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
assert ask("/weftio/eth_txq,0") == {}
assert ask("/weftio/flow,0")["0"]["packets"] == 0
assert ask("/weftio/port,77") is None
print("telemetry: ok")
EOF
python3 "$work/ask.py" "$socket"
