#!/usr/bin/env bash
# send_wait_time and produce_send against tcpdump and tshark: over a veth pair in network namespaces that it makes and removes,
# and into capture files.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
timed=$build/samples/send_wait_time
produce=$build/samples/produce_send
for tool in tshark python3; do
    command -v $tool >/dev/null || skip "what is sent, and when: $tool is not installed"
done
work=$(mktemp -d)
chmod 755 "$work"
near=weftio-send-near-$$ far=weftio-send-far-$$
cleanup() {
    end_all
    ip netns delete $near 2>/dev/null
    ip netns delete $far 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

find_devices "$timed" -t 1000

# One line a frame: destination, length, nanoseconds of the day's clock, payload.
frames_of() { # capture, filter
    tshark -r "$1" -Y "$2" -T fields -e eth.dst -e frame.len -e frame.time_epoch -e data.data 2>/dev/null
}
cat >"$work/judge.py" <<'PYTHON'
"""Judges a run of send_wait_time, read from frames_of: judge.py BEGIN_NS INTERVAL_NS. No burst may be before its time: the first is
due some time after BEGIN_NS, and a machine that is busy only makes them later. Half an interval is for clocks that differ."""
import collections
import decimal
import sys

begin, interval = int(sys.argv[1]), int(sys.argv[2])
frames = [line.rstrip("\n").split("\t") for line in sys.stdin]
print(dict(collections.Counter((to, size) for to, size, _, _ in frames)))
texts = [bytes.fromhex(data).rstrip(b"\0").decode() for _, _, _, data in frames]
wanted = [f"Sent from Weftio: burst {burst}, frame {frame}" for burst in range(8) for frame in range(32)]
print("every frame once" if sorted(texts) == sorted(wanted) else f"of {len(wanted)} frames {len(set(texts) & set(wanted))}, in all {len(texts)}")
print("bursts in order" if [text.split(",")[0] for text in texts] == [text.split(",")[0] for text in wanted] else "bursts out of order")
times = [int(decimal.Decimal(time) * 10**9) for _, _, time, _ in frames]
early = [number for number, time in enumerate(times) if time < begin + (number // 32 - 0.5) * interval]
print(f"early: {early}" if early else "none early")
PYTHON
check_frames() { # name, capture, interval
    check "$1: frames, their order and times" "{('10:11:12:13:14:15', '1024'): 256}
every frame once
bursts in order
none early" "$(frames_of "$2" 'eth.type == 0x88b5' | python3 "$work/judge.py" "$begin" "$3" 2>&1)"
}
check_said() { # name
    check "$1: exit status" 0 "$status"
    check "$1: all sent" "sent 256, failed 0, flushed 0" "$(tail -1 "$work/said" | cut -d';' -f1)"
}

# Capture files have the driver's nanosecond timestamps.
to_file() { # device, interval
    begin=$(date +%s%N)
    "$timed" -n "pcap:tx=$work/out.pcap" -g "$1" -t "$2" >"$work/said" 2>&1
    status=$?
}
for device in $devices; do
    for interval in 300000000 500000 50000; do
        name="pcap: $interval ns on $device"
        to_file $device $interval
        check_said "$name"
        check_frames "$name" "$work/out.pcap" $interval
    done
done

# produce_send into a file: all of them, in order, with checksums that are right.
check_produced() { # name, capture, count
    tshark -r "$2" -Y 'udp.port == 2090' -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -T fields -e frame.len -e ip.src -e ip.dst \
        -e udp.dstport -e ip.checksum.status -e udp.checksum.status -e data.data 2>/dev/null | tr '\t' ' ' >"$work/produced"
    check "$1: $3 datagrams with good checksums" "$3 106 192.168.1.1 192.168.1.2 2090 1 1" \
        "$(cut -d' ' -f1-6 "$work/produced" | sort | uniq -c | sed 's/^ *//')"
    check "$1: in order" "$(seq -f %08.0f 0 $(($3 - 1)))" "$(cut -d' ' -f7 "$work/produced" | cut -c1-8 | while read -r number; do printf '%08d\n' $((16#$number)); done)"
}
for device in $devices; do
    for lanes in 1 32; do
        name="produce_send to a file on $device with $lanes lanes"
        "$produce" -n "pcap:tx=$work/out.pcap" -g $device --lanes $lanes --count 3000 >"$work/said" 2>&1
        check "$name: exit status" 0 $?
        check "$name: all sent" "sent 3000, failed 0, flushed 0" "$(tail -1 "$work/said")"
        check_produced "$name" "$work/out.pcap" 3000
    done
done

# A wrong word, and a run that is cut short.
"$timed" -n nosuch:port >/dev/null 2>"$work/words"
check "unknown port: exit status" 4 $?
check "unknown port: one line" 1 "$(wc -l <"$work/words")"
(trap - INT; exec env --default-signal=INT "$produce" -n null --count 4000000000 >"$work/said" 2>&1) &
sender=$!
sends() { grep -q weftio/b0 /proc/$sender/task/*/comm 2>/dev/null; }
eventually_by $sender sends
kill -INT $sender
wait_for_end $sender
check "SIGINT ends produce_send: exit status" 3 $?

# Veth, with the kernel's own timestamps at the far end.
veth_missed=
[ "$(id -u)" = 0 ] || veth_missed="needs root"
for tool in ip tcpdump; do
    command -v $tool >/dev/null || veth_missed="$tool is not installed"
done
if [ -z "$veth_missed" ]; then
    { ip netns add $near && ip netns add $far && ip -n $near link add v0 mtu 1500 type veth peer name v1 mtu 1500 netns $far; } 2>/dev/null ||
        veth_missed="network namespaces or veth interfaces cannot be made here"
fi
if [ -n "$veth_missed" ]; then
    [ $failures = 0 ] || finish
    skip "sending over a veth pair (capture files were checked): $veth_missed"
fi
for end in "$near v0" "$far v1"; do
    ip netns exec ${end% *} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null # nobody else speaks
    ip -n ${end% *} link set ${end#* } up
done

listen() { # filter
    : >"$work/listening" >"$work/far.pcap" # have what is of the tcpdump before
    ip netns exec $far tcpdump -i v1 -s 1600 -B 65536 --time-stamp-precision=nano --immediate-mode -U -w "$work/far.pcap" "$1" 2>"$work/listening" &
    listener=$!
    eventually_by $listener grep -q 'listening on' "$work/listening"
}
# Ends tcpdump once it has as many bytes.
has_bytes() { [ "$(stat -c %s "$work/far.pcap")" -ge "$1" ]; }
hear() { # frames, bytes of one
    within_patience has_bytes $((24 + $1 * ($2 + 16)))
    kill -INT $listener
    wait_for_end $listener tcpdump
}
over_veth() { # port, device, interval
    local name="$1: $3 ns on $2"
    listen 'ether proto 0x88b5'
    begin=$(date +%s%N)
    ip netns exec $near "$timed" -n "$1" -g "$2" -t "$3" >"$work/said" 2>&1
    status=$?
    hear 256 1024
    check_said "$name"
    check_frames "$name" "$work/far.pcap" "$3"
}
for interval in 300000000 500000 50000; do
    for device in $devices; do
        over_veth iface:v0 $device $interval
    done
    over_veth net_af_packet0,iface=v0 cpu $interval
done
for device in $devices; do
    listen 'udp port 2090'
    ip netns exec $near "$produce" -n iface:v0 -g $device --count 2000 >"$work/said" 2>&1
    check "produce_send over veth on $device: exit status" 0 $?
    hear 2000 106
    check_produced "produce_send over veth on $device" "$work/far.pcap" 2000
done
finish
