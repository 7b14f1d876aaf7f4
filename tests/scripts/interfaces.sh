#!/usr/bin/env bash
# The programs on an interface with 1, 2, 4 and 16 queues: each gets 10,000 of 10,000 datagrams, which are spread over all queues, or
# refuses. weftio-run: 1,600 messages of 16 queue pairs. Works in a network namespace that it makes.
# Environment: WEFTIO_QUEUES, other numbers of queues.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1") script=$(realpath "$0")
what="programs on interfaces with several queues"
needs_weftio_run "$what"
[ "$(id -u)" = 0 ] || skip "$what: needs root"
for tool in ip ethtool python3 jq ib_send_bw; do
    command -v $tool >/dev/null || skip "$what: $tool is not installed"
done
[ "${2:-}" = inside ] || exec unshare --net --mount bash "$script" "$build" inside
datagrams=10000
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT

# pair QUEUES: m0 and m1, without addresses.
pair() {
    ip link delete m0 2>/dev/null
    ip link add m1 address 02:00:00:00:00:01 numrxqueues $1 numtxqueues $1 type veth \
        peer name m0 address 02:00:00:00:00:02 numrxqueues $1 numtxqueues $1 || return
    for end in m0 m1; do
        sysctl -qw net.ipv6.conf.$end.disable_ipv6=1
        ethtool -K $end tx off >/dev/null && ip link set $end up
    done
}
ip link set lo up && pair 16 2>"$work/words" || skip "$what: no veth pair of 16 queues here: $(cat "$work/words")"

# The other end of the pair, m0. Flows have 97 source ports, so that they are spread over all queues.
cat >"$work/far.py" <<'END_OF_FAR'
import re, socket, struct, sys, time
way, count, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)  # SO_RCVBUFFORCE
raw.bind(("m0", 0x0800))

def frame(number, port):
    data = struct.pack("!I", number) + bytes(28)
    ip = [0x4500, 28 + len(data), number & 0xffff, 0, 0x4011, 0, 0x0a09, 0x0802, 0x0a09, 0x0801]
    total = sum(ip)
    total = (total & 0xffff) + (total >> 16)
    ip[5] = ~((total & 0xffff) + (total >> 16)) & 0xffff
    return (bytes.fromhex("0200000000010200000000020800") + struct.pack("!10H", *ip)
            + struct.pack("!4H", 4000 + number % 97, port, 8 + len(data), 0) + data)

def numbers_arrived():  # of frames from m1 that are there now, or within 10 ms
    raw.settimeout(0.01)
    try:
        while True:
            got, address = raw.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING and len(got) >= 46 and got[23] == 17:
                yield struct.unpack("!I", got[42:46])[0]
            raw.settimeout(0)
    except (BlockingIOError, socket.timeout):
        pass

def send_in_windows(port, arrived):  # 200 are on their way at most. Ends when nothing has arrived for `limit` seconds
    sent, have, since = 0, 0, time.monotonic()
    while have < count and time.monotonic() - since < limit:
        while sent < count and sent - have < 200:
            raw.send(frame(sent, port))
            sent += 1
        now = arrived()
        if now != have:
            have, since = now, time.monotonic()
    print(have)

if way == "lines":  # simple_receive writes one for each datagram
    with open(sys.argv[4], "rb") as file:
        lines = -1  # the first one is about the port
        def arrived():
            global lines
            time.sleep(0.002)
            lines += file.read().count(b"\n")
            return lines
        send_in_windows(2090, arrived)
elif way == "echo":
    seen = set()
    def arrived():
        seen.update(numbers_arrived())
        return len(seen)
    send_in_windows(7, arrived)
elif way == "capture":
    with open(sys.argv[4], "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number in range(count):
            one = frame(number, 2090)
            file.write(struct.pack("<IIII", number // 5000, number % 5000 * 200, len(one), len(one)) + one)
elif way == "take":
    seen, since = set(), time.monotonic()
    print("ready", flush=True)
    while len(seen) < count and time.monotonic() - since < limit:
        before = len(seen)
        seen.update(numbers_arrived())
        if len(seen) != before:
            since = time.monotonic()
    print(len(seen))
END_OF_FAR
far() { python3 "$work/far.py" "$1" $datagrams "$patience" "${@:2}"; }
far capture "$work/pcap"

started() { grep -q "$1" "$work/seen"; }
# start LINE COMMAND...: runs it in the background, until it says LINE.
start() {
    local line=$1
    shift
    : >"$work/seen"
    "$@" >"$work/seen" 2>"$work/words" &
    receiver=$!
    eventually_by $receiver started "$line"
}

simple_receive() { # queues
    start ^Receiving "$build/samples/simple_receive" -n iface:m1
    check "simple_receive, $1 queues: datagrams" $datagrams "$(far lines "$work/seen")"
    kill -TERM $receiver
    wait_for_end $receiver simple_receive
    check "simple_receive, $1 queues: exit status" 0 $?
    check "simple_receive, $1 queues: conservation" "received $datagrams, delivered $datagrams, dropped 0" "$(tail -1 "$work/seen")"
}

packets() { # queues
    start "Ctrl-C ends" "$build/apps/weftio-packets" -n iface:m1 --address 10.9.8.1/24 --echo 7 --json "$work/json"
    # Answers go to the MAC that a request came from.
    check "weftio-packets, $1 queues: datagrams that came back" $datagrams "$(far echo)"
    kill -INT $receiver
    wait_for_end $receiver weftio-packets
    check "weftio-packets, $1 queues: exit status" 0 $?
    check "weftio-packets, $1 queues: every frame is accounted for" true "$(jq .conserved "$work/json")"
}

replay() { # queues
    : >"$work/taken" # has the words of the one before
    far take >"$work/taken" &
    server=$!
    eventually_by $server grep -q ready "$work/taken"
    "$build/apps/weftio-replay" --quiet "$work/pcap" iface:m1 >"$work/seen" 2>"$work/words" </dev/null
    check "weftio-replay, $1 queues: exit status" 0 $? || cat "$work/words"
    wait_for_end $server "the other end of weftio-replay"
    check "weftio-replay, $1 queues: frames that arrived" $datagrams "$(tail -1 "$work/taken")"
}

listens() { awk '$2 ~ ":4E20$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
bandwidth() { "$run" --port iface:$1 -- ib_send_bw -F -p 20000 -s 1024 -q 16 -n 100 "${@:2}" </dev/null; }
verbs() { # queues
    bandwidth m0 >"$work/server" 2>&1 &
    server=$!
    eventually_by $server listens
    bounded bandwidth m1 127.0.0.1 >"$work/client" 2>&1
    check "weftio-run, $1 queues: exit status" 0 $? || tail -5 "$work/client"
    wait_for_end $server "the other end of weftio-run"
    check "weftio-run, $1 queues: messages" 1600 "$(awk '$1 == 1024 { print $2 }' "$work/client")"
}

# refused NAME STATUS COMMAND...: in one sentence, which names the number of queues.
refused() {
    local name=$1 status=$2
    shift 2
    bounded "$@" >"$work/seen" 2>"$work/words" </dev/null
    check "$name, $queues queues, xdp=only: exit status" $status $?
    check_has "$name, $queues queues, xdp=only: sentence" "m1 has $queues receive queues, of which AF_XDP would serve 1" "$(cat "$work/words")"
    check_has "$name, $queues queues, xdp=only: command" "ethtool -L m1 rx 1 tx 1" "$(cat "$work/words")"
}

for queues in ${WEFTIO_QUEUES:-1 2 4 16}; do
    pair $queues
    simple_receive $queues
    packets $queues
    replay $queues
    verbs $queues
done
queues=4
pair $queues
refused simple_receive 4 "$build/samples/simple_receive" -n iface:m1,xdp=only --seconds 1
refused weftio-packets 1 "$build/apps/weftio-packets" -n iface:m1,xdp=only --address 10.9.8.1/24 --seconds 1
refused weftio-replay 4 "$build/apps/weftio-replay" "$work/pcap" iface:m1,xdp=only

# Programs ask sysfs for the interface by its name.
pair 1
check "weftio-run --port iface:m1,xdp=only: the name of the interface" m1 \
    "$(bounded "$run" --port iface:m1,xdp=only -- cat /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0 2>"$work/words" </dev/null)"
finish
