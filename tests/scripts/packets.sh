#!/usr/bin/env bash
# weftio-packets against the kernel's own network stack behind a tap port: ping, nping. tshark then looks at all frames of both sides.
# Works in a network namespace that it makes and removes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
packets=$build/apps/weftio-packets
[ "$(id -u)" = 0 ] || skip "answers of kernels to real peers: needs root"
for tool in ip ping nping tcpdump tshark ethtool jq; do
    command -v $tool >/dev/null || skip "answers of kernels to real peers: $tool is not installed"
done
[ -x "$packets" ] || skip "answers of kernels to real peers: weftio-packets is not built"

work=$(mktemp -d)
space=wpk$$
server='' capture=''
clean_up() {
    [ -z "$server" ] || kill -KILL $server 2>/dev/null
    [ -z "$capture" ] || kill $capture 2>/dev/null
    ip netns del $space 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
ip netns add $space || skip "answers of kernels to real peers: no network namespaces here"
inside() { ip netns exec $space "$@"; }
inside ip link set lo up
inside sysctl -qw net.ipv6.conf.default.accept_dad=0 # addresses are usable at once

# start DEVICE [options]: a server on tap w0, with a capture of what goes over it.
start() {
    ip netns exec $space "$packets" -n tap:w0 --address 10.9.0.1/24 --address fd09::1/64 --peer 10.9.0.2 -g "$@" --json "$work/json" \
        >"$work/out" 2>"$work/err" &
    server=$!
    eventually_by $server grep -q "Ctrl-C ends" "$work/out"
    inside ip addr add fd09::2/64 dev w0 nodad
    inside ethtool -K w0 tx off tso off gso off >/dev/null 2>&1
    ip netns exec $space tcpdump -i w0 --immediate-mode -U -w "$work/pcap" 2>"$work/tcpdump" &
    capture=$!
    eventually_by $capture grep -q listening "$work/tcpdump"
}

# stop: ends both, and checks what is true of every run.
stop() {
    kill -INT $server
    wait_for_end $server weftio-packets
    check "$1: it ends well" 0 $?
    server=''
    kill $capture 2>/dev/null # it ends by itself when the interface does
    wait $capture
    capture=''
    check "$1: it says nothing on standard error" "" "$(cat "$work/err")"
    check "$1: every frame is accounted for" true "$(jq .conserved "$work/json")"
    check "$1: tshark finds no malformed frame and no wrong checksum" "" "$(tshark -r "$work/pcap" -o ip.check_checksum:TRUE \
        -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -Y '_ws.malformed || ip.checksum.status == "Bad" ||
        udp.checksum.status == "Bad" || tcp.checksum.status == "Bad" || icmp.checksum.status == "Bad" ||
        icmpv6.checksum.status == "Bad"' 2>/dev/null | head -5)"
}

counted() { jq ".verdicts.$1" "$work/json"; }
# seen FILTER: how many frames of the capture are of that kind.
seen() { tshark -r "$work/pcap" -o ip.defragment:FALSE -Y "$1" 2>/dev/null | wc -l; }

# answered WHAT [options] ADDRESS: ping sends until it has three answers, however late on a busy machine.
answered() {
    local what=$1
    shift
    check "$what" 0 "$(inside ping -q -c 3 -i 0.01 -w $patience "$@" >"$work/ping" 2>&1; echo $?)"
}

pings() {
    local size
    for size in 0 1 55 56 1471 1472; do
        answered "$1: ping -s $size" -s $size 10.9.0.1
        answered "$1: ping -6 -s $size" -s $((size < 1453 ? size : 1452)) fd09::1
    done
    check "$1: fragments are refused" 1 "$(inside ping -q -c 2 -i 0.01 -W 0.2 -s 3000 10.9.0.1 >"$work/ping" 2>&1; echo $?)"
}

datagrams() {
    inside nping --udp -g 4000 -p 9 -c 500 --rate 20000 --data-length 64 10.9.0.1
    inside nping --udp -g 4000 -p 7 -c 20 --rate 200 --data-length 100 10.9.0.1
    inside nping --udp -g 4000 -p 53 -c 3 --rate 200 10.9.0.1 \
        --data 123401000001000000000000037777770765786d706c6503636f6d0000010001
} >"$work/nping" 2>&1

for device in cpu opencl; do
    if [ $device = opencl ] && ! "$build/samples/simple_receive" -g opencl --count 1 >"$work/words" 2>&1; then
        echo "not checked: OpenCL ($(tail -1 "$work/words"))"
        continue
    fi
    start $device --echo 7
    pings $device
    datagrams $device
    stop $device
    check "$device: each ping is answered once" "$(seen 'icmp.type == 8 && ip.flags.mf == 0')" "$(seen 'icmp.type == 0')"
    check "$device: pings are counted" "$(seen 'icmp.type == 0')" "$(counted ping)"
    check "$device: each ping of IPv6 is answered once" "$(seen 'icmpv6.type == 128')" "$(seen 'icmpv6.type == 129')"
    check "$device: pings of IPv6 are counted" "$(seen 'icmpv6.type == 129')" "$(counted ping6)"
    check "$device: fragments are counted" 6 "$(counted fragment)"
    check "$device: UDP datagrams are counted" 500 "$(counted udp)"
    check "$device: the echo gives each datagram back" 20 "$(seen 'udp.srcport == 7 && udp.dstport == 4000 && udp.length == 108 && !icmp')"
    check "$device: DNS queries are counted" 3 "$(counted dns_query)"
done
finish
