#!/usr/bin/env bash
# "sent" is true: what weftio-replay and produce_send say against what arrives, or lies in the file. Small MTUs, links that are
# down, full disks, drops by the kernel; and the exit statuses of all samples.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
samples=$build/samples
replay=$build/apps/weftio-replay
work=$(mktemp -d)
near=weftio-sent-near-$$ far=weftio-sent-far-$$
cleanup() {
    end_all
    umount "$work/small" 2>/dev/null
    ip netns delete $near 2>/dev/null
    ip netns delete $far 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

# The same words of all samples.
for sample in simple_receive receive_process produce_send send_wait_time; do
    "$samples/$sample" --nosuch >/dev/null 2>&1
    check "$sample: usage: exit status" 1 $?
    check_has "$sample: version" "$sample " "$("$samples/$sample" --version) $?"
    check_has "$sample: help" "cuda" "$("$samples/$sample" --help)"
done
"$samples/produce_send" --dst-mac nobody >/dev/null 2>&1
check "produce_send to no MAC address: exit status" 1 $?
check_has "receive_process tells of drops" "found no free slot" "$("$samples/receive_process" -n null --seconds 1 | tail -1)"
said=$("$samples/receive_process" -n null --seconds 1 | tail -1)
read -r received delivered dropped <<<"$(grep -o '[0-9]\+' <<<"$said" | head -3 | tr '\n' ' ')"
[ $((received - delivered)) -ge "$dropped" ] && [ $((received - delivered - dropped)) -le 1024 ]
check "receive_process: received is delivered and dropped, but for those held" 0 $?

# 100 frames of 60 to 1,248 bytes, 47 of which fit an MTU of 600.
python3 - "$work/frames.pcap" <<'PYTHON'
import struct, sys
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
    for number in range(100):
        frame = bytes(12) + b"\x88\xb5" + bytes(46 + 12 * number)
        file.write(struct.pack("<IIII", number // 50, number % 50, len(frame), len(frame)) + frame)
PYTHON
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/report.json" "$1"; }

# A capture that is only read takes nothing.
"$replay" -t "$work/frames.pcap" "pcap:$work/frames.pcap" >"$work/said" 2>&1
check "a capture that is only read: exit status" 4 $?
check_has "a capture that is only read: sentence" "reads a capture and cannot send" "$(cat "$work/said")"

command -v capinfos >/dev/null && command -v tcpdump >/dev/null || {
    [ $failures = 0 ] || finish
    skip "full disks and network interfaces (captures were checked): capinfos or tcpdump is not installed"
}
[ "$(id -u)" = 0 ] || {
    [ $failures = 0 ] || finish
    skip "full disks and network interfaces (captures were checked): needs root"
}

# A disk that is full after some frames.
mkdir "$work/small"
if mount -t tmpfs -o size=32k none "$work/small" 2>/dev/null; then
    "$replay" -t --json "$work/report.json" "$work/frames.pcap" "pcap:tx=$work/small/out.pcap" >"$work/said" 2>&1
    check "full disk: exit status" 4 $?
    check_has "full disk: sentence" "No space left on device" "$(cat "$work/said")"
    check "full disk: planned" 100 "$(value 'r["total"]["planned"]')"
    check "full disk: sent is what the file holds" "$(capinfos -M -T -r -c "$work/small/out.pcap" | cut -f2)" "$(value 'r["total"]["sent"]')"
    [ "$(value 'r["total"]["sent"]')" -gt 30 ]
    check "full disk: some were sent" 0 $?
    "$samples/produce_send" -n "pcap:tx=$work/small/out.pcap" --count 20000 >"$work/said" 2>&1
    check "full disk: produce_send: exit status" 3 $?
    check "full disk: produce_send: sent is what the file holds" "sent $(capinfos -M -T -r -c "$work/small/out.pcap" | cut -f2)," \
        "$(tail -1 "$work/said" | grep -o '^sent [0-9]*,')"
    umount "$work/small"
else
    echo "not checked: a full disk (no tmpfs can be mounted here)"
fi

ip netns add $near && ip netns add $far && ip -n $near link add v1 type veth peer name v0 netns $far 2>/dev/null || {
    [ $failures = 0 ] || finish
    skip "network interfaces (captures were checked): network namespaces or veth interfaces cannot be made here"
}
for space in $near $far; do
    ip netns exec $space sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1 # nobody else speaks
done
have_arrived() { [ $(($(arrived) - ${before:-0})) -ge "$1" ]; }
arrived() { ip netns exec $far cat /sys/class/net/v0/statistics/rx_packets; }

# Down: nothing is sent, and said to be.
ip netns exec $near "$samples/produce_send" -n iface:v1 >"$work/said" 2>&1
check "interface down: exit status" 3 $?
check_has "interface down: sentence" "the link is down" "$(cat "$work/said")"
check_has "interface down: count" "sent 0, " "$(tail -1 "$work/said")"
ip netns exec $near "$replay" -t "$work/frames.pcap" iface:v1 >"$work/said" 2>&1
check "interface down: weftio-replay: exit status" 4 $?
check_has "interface down: weftio-replay: sentence" "the link is down" "$(cat "$work/said")"
check_has "interface down: weftio-replay: count" "sent      0 of 100 frames" "$(cat "$work/said")"
ip netns exec $near "$samples/produce_send" -n iface:v1 --wait-for-link --count 500 --dst-mac 02:00:00:00:00:07 --dst-ip 10.1.2.3 >"$work/said" 2>&1 &
sender=$!
ip -n $far link set v0 up
ip netns exec $far tcpdump -c 1 -neli v0 udp port 2090 >"$work/heard" 2>"$work/listening" &
listener=$!
eventually_by $listener grep -q "listening on" "$work/listening"
ip -n $near link set v1 up
wait_for_end $sender
check "--wait-for-link: exit status" 0 $?
check "--wait-for-link: count" "sent 500, failed 0, flushed 0" "$(tail -1 "$work/said")"
within_patience have_arrived 500
check "--wait-for-link: all arrived" 0 $?
wait_for_end $listener tcpdump
grep -q "02:00:00:00:00:07.* 10.1.2.3.2090" "$work/heard"
check "--dst-mac and --dst-ip" 0 $?

# tap: somebody brings it up later.
ip netns exec $near "$samples/produce_send" -n tap:t0 --wait-for-link --count 100 >"$work/said" 2>&1
check "tap with --wait-for-link: exit status" 0 $?

# An MTU of 600.
ip -n $near link set v1 mtu 600
ip -n $far link set v0 mtu 600
for driver in iface:v1 net_af_packet0,iface=v1; do
    before=$(arrived)
    ip netns exec $near "$replay" -t --json "$work/report.json" "$work/frames.pcap" $driver >"$work/said" 2>&1
    check "MTU 600 on $driver: exit status" 3 $?
    check "MTU 600 on $driver: sent, too long" "47 53" "$(value '"%d %d" % (r["total"]["sent"], r["total"]["skipped"]["oversize"])')"
    within_patience have_arrived 47
    check "MTU 600 on $driver: arrived" 47 $(($(arrived) - before))
done
ip netns exec $near "$replay" -t --mtu-skip "$work/frames.pcap" iface:v1 >"$work/said" 2>&1
check "MTU 600 with --mtu-skip: exit status" 0 $?

# The kernel drops what it took: the other end allows less.
ip -n $near link set v1 mtu 1500
ip netns exec $near "$replay" -t --json "$work/report.json" "$work/frames.pcap" net_af_packet0,iface=v1 >"$work/said" 2>&1
check "dropped by the kernel: exit status" 3 $?
check "dropped by the kernel: each that is longer, once" 53 "$(value 'r["tx_dropped"]')"
check_has "dropped by the kernel: table" "dropped " "$(cat "$work/said")"
ip netns exec $near "$samples/produce_send" -n iface:v1 --count 10 >"$work/said" 2>&1
check "a drop before the port was opened is not counted: exit status" 0 $?

# TCP of a peer whose offloads make packets longer than its MTU.
ip -n $far link set v0 mtu 1500
ip -n $near address add 10.77.0.1/24 dev v1
ip -n $far address add 10.77.0.2/24 dev v0
tcp() { # sends 20 MB from the far end to the near one
    ip netns exec $near python3 -c 'import socket
s = socket.create_server(("10.77.0.1", 5000)); c, _ = s.accept()
while c.recv(1 << 16): pass' &
    local server=$!
    ip netns exec $far python3 -c 'import socket, sys, time
for _ in range(10 * int(sys.argv[1])):
    try: s = socket.create_connection(("10.77.0.1", 5000)); break
    except OSError: time.sleep(0.1)
s.sendall(bytes(20_000_000))' $patience
    wait_for_end $server
}
too_long() { # sets `long`: how many receive_process says
    : >"$work/seen"
    ip netns exec $near stdbuf -oL "$samples/receive_process" -n net_af_packet0,iface=v1 >"$work/seen" 2>&1 &
    listener=$!
    eventually_by $listener grep -q ^Receiving "$work/seen"
    tcp
    kill -INT $listener
    wait_for_end $listener
    long=$(tail -1 "$work/seen" | grep -o '[0-9]* were too long' | cut -d' ' -f1)
}
too_long
[ "$long" -gt 0 ]
check "superframes of a peer are told of" 0 $?
if command -v ethtool >/dev/null; then
    ip netns exec $far ethtool -K v0 tx off tso off gso off >/dev/null
    too_long
    check "none with the peer's offloads off" 0 "$long"
else
    echo "not checked: a peer without offloads (ethtool is not installed)"
fi
finish
