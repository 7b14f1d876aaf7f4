#!/usr/bin/env bash
# simple_receive against real peers: nping over a veth pair, tshark on the same captures. Works in network namespaces that it
# makes and removes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
sample=$build/samples/simple_receive
[ "$(id -u)" = 0 ] || skip "receiving on a veth pair, and what users without rights are told: needs root"
for tool in ip nping tshark setpriv; do
    command -v $tool >/dev/null || skip "simple_receive against real peers: $tool is not installed"
done

near=weftio-near-$$ far=weftio-far-$$
work=$(mktemp -d)
chmod 755 "$work"
cleanup() {
    end_all
    ip netns delete $near 2>/dev/null
    ip netns delete $far 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

find_devices "$sample"

# Captures: count, sizes and times equal tshark's.
expected_lines() {
    tshark -r "$1" -Y udp -T fields -e frame.cap_len -e frame.time_epoch 2>/dev/null | awk '{print $1 " bytes at " $2}'
}
for device in $devices; do
    for capture in "$source/lib/src/dpdk/builtin.pcap" /usr/share/sip-tester/g711a.pcap; do
        [ -e "$capture" ] || {
            echo "not checked: $capture (install sip-tester)"
            continue
        }
        name=$(basename "$capture")
        seen=$("$sample" -n "pcap:$capture" -g $device)
        check "$name on $device: exit status" 0 $?
        check "$name on $device: sizes and times" "$(expected_lines "$capture")" \
            "$(grep '^Lane' <<<"$seen" | grep -o '[0-9]* bytes at .*')"
        check_has "$name on $device: conservation" \
            "received $(tshark -r "$capture" 2>/dev/null | wc -l), delivered $(expected_lines "$capture" | wc -l)," "$seen"
    done
    check "the built-in capture on $device is builtin.pcap" "$("$sample" -n "pcap:$source/lib/src/dpdk/builtin.pcap" -g $device | tail -n +2)" \
        "$("$sample" -n pcap:builtin -g $device | tail -n +2)"
    head -c $(($(stat -c %s "$source/lib/src/dpdk/builtin.pcap") - 5)) "$source/lib/src/dpdk/builtin.pcap" >"$work/cut.pcap"
    seen=$("$sample" -n "pcap:$work/cut.pcap" -g $device)
    check "a cut capture on $device: sizes and times" "$(expected_lines "$work/cut.pcap")" \
        "$(grep '^Lane' <<<"$seen" | grep -o '[0-9]* bytes at .*')"
    check_has "a cut capture on $device: is said to be damaged" "capture damaged" "$seen"
done

# Veth: ten datagrams from the far end.
ip netns add $near && ip netns add $far || skip "receiving on a veth pair: network namespaces cannot be made here"
ip -n $near link add v1 address 02:00:00:00:00:01 mtu 1500 type veth peer name v0 address 02:00:00:00:00:02 mtu 1500 netns $far ||
    skip "receiving on a veth pair: veth interfaces cannot be made here"
ip -n $near address add 10.77.0.1/24 dev v1
ip -n $far address add 10.77.0.2/24 dev v0
ip -n $near address add fd77::1/64 dev v1 nodad
ip -n $far address add fd77::2/64 dev v0 nodad
ip -n $near link set v1 up
ip -n $far link set v0 up
# A program that takes frames away below the kernel also takes the answers to ARP and neighbor discovery.
ip -n $far neighbor add 10.77.0.1 lladdr 02:00:00:00:00:01 dev v0
ip -n $far neighbor add fd77::1 lladdr 02:00:00:00:00:01 dev v0

is_receiving() { grep -q ^Receiving "$work/seen" && ip -n $near link show v1 | grep -q LOWER_UP; }
# Runs simple_receive on the near end of the pair in the background; its output goes to $work/seen.
start_near() {
    ip netns exec $near "$sample" "$@" >"$work/seen" 2>"$work/words" &
    receiver=$!
    eventually_by $receiver is_receiving
}
receive_ten() { # name, driver expected (a pattern), address, more arguments for nping, -- arguments of simple_receive
    local name=$1 driver=$2 address=$3 family=$4
    shift 4
    : >"$work/seen"
    start_near "$@" --count 10 --seconds $((2 * patience)) # nping takes 20 s to begin while others make and remove network namespaces
    ip netns exec $far nping $family --udp -c 10 -p 2090 --data-length 1024 --delay 20ms $address >"$work/nping" 2>&1
    wait $receiver # it ends by itself after --seconds
    check "$name: exit status" 0 $?
    check_has "$name: driver" "($driver)" "$(head -1 "$work/seen")"
    bytes=$((14 + 20 + 8 + 1024))
    [ "$family" = -6 ] && bytes=$((bytes + 20))
    check "$name: ten datagrams, their MACs and bytes" \
        "$(yes "received UDP packet with Eth src 02:00:00:00:00:02 - Eth dst 02:00:00:00:00:01 - $bytes bytes" | head -10)" \
        "$(grep '^Lane' "$work/seen" | sed 's/^Lane [0-9]* //; s/ at .*//')"
    check_has "$name: conservation" "delivered 10" "$(tail -1 "$work/seen")" || cat "$work/nping"
}
packet_socket=net_af_packet0,iface=v1
for device in $devices; do
    receive_ten "iface: on $device" net_af_xdp 10.77.0.1 -4 -n iface:v1,xdp=only -g $device
    receive_ten "af_packet on $device" net_af_packet 10.77.0.1 -4 -n $packet_socket -g $device
done
receive_ten "IPv6" net_af_packet fd77::1 -6 -n $packet_socket
begun=$(date +%s)
receive_ten "32 lanes" net_af_packet 10.77.0.1 -4 -n $packet_socket --lanes 32

# Times lie between the start and the end of the run.
now=$(date +%s)
seconds=$(grep '^Lane' "$work/seen" | grep -o 'at [0-9]*' | cut -c4-)
outside=0
for second in $seconds; do
    [ "$second" -ge $((begun - 1)) ] && [ "$second" -le $((now + 1)) ] || outside=$((outside + 1))
done
check "times of arrival" 0 $outside

# On an interface with an address Linux goes on answering, unless AF_XDP is asked for.
pings_answered() { # port
    : >"$work/seen"
    start_near -n "$1" --seconds $((4 * patience))
    ip netns exec $far ping -n -c 5 -i 0.2 -W 2 10.77.0.1 2>&1 | grep -oE '[0-9]+ received'
    kill -TERM $receiver
    wait_for_end $receiver
}
check "iface: on an interface with an address: pings answered by Linux" "5 received" "$(pings_answered iface:v1)"
check "the same under xdp=only" "0 received" "$(pings_answered iface:v1,xdp=only)"

# Ctrl-C and SIGTERM end it in order.
for signal in INT TERM; do
    : >"$work/seen"
    # A shell without job control starts background programs with SIGINT ignored, which they inherit.
    (trap - INT; exec env --default-signal=INT ip netns exec $near "$sample" -n $packet_socket >"$work/seen" 2>"$work/words") &
    receiver=$!
    eventually_by $receiver is_receiving
    kill -$signal $receiver
    wait_for_end $receiver
    check "SIG$signal: exit status" 0 $?
    check_has "SIG$signal: conservation" "received " "$(tail -1 "$work/seen")"
done

# Wrong arguments.
refused() { # name, part of the sentence, arguments
    local name=$1 part=$2
    shift 2
    seen=$("$sample" "$@" 2>"$work/words")
    check "$name: exit status" 4 $?
    check_has "$name: sentence" "$part" "$(cat "$work/words")"
    check "$name: one line" 1 "$(wc -l <"$work/words")"
}
refused "missing interface" "iface:nosuch0: no such interface (have: " -n iface:nosuch0
refused "missing capture" "cannot read /nosuch.pcap: No such file or directory" -n pcap:/nosuch.pcap
refused "unknown port" 'port "bogus:x": unknown form' -n bogus:x
refused "unknown device" "abacus" -g abacus
"$sample" --nosuch >/dev/null 2>"$work/words"
check "unknown option: exit status" 1 $?
check_has "unknown option: sentence" "--nosuch" "$(cat "$work/words")"
"$sample" --count many >/dev/null 2>"$work/words"
check "a count that is no number: exit status" 1 $?

# Every sample: a standard output that takes nothing, or that is closed.
for name in simple_receive receive_process produce_send send_wait_time dma_memcpy rdma_client_server lend_memory; do
    words=$(bounded "$build/samples/$name" 2>&1 >/dev/full)
    check "$name, a full standard output: exit status" 4 $?
    check_has "$name, a full standard output" "standard output cannot be written: No space left on device" "$words"
    words=$(bounded "$build/samples/$name" 2>&1 >&-)
    check "$name, a closed standard output: exit status" 4 $?
    check_has "$name, a closed standard output" "standard output cannot be written: " "$words"
done

# Without rights: interfaces are refused with the way out, captures work.
cp "$sample" "$work/sample"
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all"
seen=$(cd / && ip netns exec $near $as_nobody "$work/sample" -n iface:v1 --seconds 1 2>&1)
check "without rights, iface:v1: exit status" 4 $?
check_has "without rights, iface:v1: sentence" "raw sockets are refused (Operation not permitted); run as root, or" "$seen"
seen=$(cd / && $as_nobody "$work/sample" -n pcap:builtin 2>&1)
check "without rights, pcap:builtin: exit status" 0 $?
check "without rights, pcap:builtin: datagrams" "$(expected_lines "$source/lib/src/dpdk/builtin.pcap" | wc -l)" "$(grep -c '^Lane' <<<"$seen")"

finish
