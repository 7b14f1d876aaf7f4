#!/usr/bin/env bash
# weftio-packets against the kernel's own network stack behind a tap port: ping, nping, curl, ab. tshark then looks at all frames of both sides.
# Works in a network namespace that it makes and removes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
packets=$build/apps/weftio-packets
[ "$(id -u)" = 0 ] || skip "answers of kernels to real peers: needs root"
for tool in ip ping nping curl ab nft tcpdump tshark ethtool jq; do
    command -v $tool >/dev/null || skip "answers of kernels to real peers: $tool is not installed"
done
[ -x "$packets" ] || skip "answers of kernels to real peers: weftio-packets is not built"

work=$(mktemp -d)
space=wpk$$
clean_up() {
    end_all
    ip netns del $space 2>/dev/null
    [ -n "${KEEP:-}" ] && cp "$work/pcap" "$KEEP"; rm -rf "$work"
}
trap clean_up EXIT
ip netns add $space || skip "answers of kernels to real peers: no network namespaces here"
mkdir -p "$work/www/sub"
head -c 1048576 /dev/urandom >"$work/www/big"
echo "<p>a page" >"$work/www/sub/index.html"
echo "beyond the folder" >"$work/secret"
inside() { ip netns exec $space "$@"; }
inside ip link set lo up
inside sysctl -qw net.ipv6.conf.default.accept_dad=0 # addresses are usable at once

said=$("$packets" --help 2>&1 >&-)
check "a closed standard output" "2 weftio-packets: standard output is closed; redirect it to a file or to /dev/null" "$? $said"

# start DEVICE [options]: a server on tap w0, with a capture of what goes over it.
start() {
    : >"$work/out" >"$work/tcpdump" # have the words of the server and the tcpdump before
    ip netns exec $space "$packets" -n tap:w0 --address 10.9.0.1/24 --address fd09::1/64 --peer 10.9.0.2 --root "$work/www" -g "$@" \
        --json "$work/json" \
        >"$work/out" 2>"$work/err" &
    server=$!
    eventually_by $server grep -q "Ctrl-C ends" "$work/out"
    inside ip addr add fd09::2/64 dev w0 nodad
    inside ip link set w0 txqueuelen 10000 # else a tap drops what 500 frames of a server that waits for a core do not hold
    inside ethtool -K w0 tx off tso off gso off >/dev/null 2>&1
    ip netns exec $space tcpdump -i w0 --immediate-mode -B 262144 -w "$work/pcap" 2>"$work/tcpdump" &
    capture=$!
    eventually_by $capture grep -q listening "$work/tcpdump"
}

# stop: ends both, and checks what is true of every run. What TCP carries is not dissected: a message whose packets tcpdump lost would
# be called malformed, and a client's port may be that of another protocol. Linux sends a TCP checksum of 0 as 0xffff, which sums alike
# and which tshark calls wrong.
stop() {
    kill -INT $server
    wait_for_end $server weftio-packets
    check "$1: it ends well" 0 $?
    server=''
    kill $capture 2>/dev/null # it ends by itself when the interface does
    wait_for_end $capture tcpdump
    capture=''
    check "$1: it says nothing on standard error" "" "$(cat "$work/err")"
    check "$1: every frame is accounted for" true "$(jq .conserved "$work/json")"
    check "$1: tshark finds no malformed frame and no wrong checksum" "" "$(tshark -r "$work/pcap" -d tcp.port==1-65535,data \
        -o tcp.desegment_tcp_streams:FALSE -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -Y '_ws.malformed || ip.checksum.status == "Bad" ||
        udp.checksum.status == "Bad" || tcp.checksum.status == "Bad" && tcp.checksum != 0xffff || icmp.checksum.status == "Bad" ||
        icmpv6.checksum.status == "Bad"' 2>/dev/null | head -5)"
}

# begin_silence, end_silence: a client that sends part of a request and no more is told so, although nothing comes from it again.
begin_silence() {
    ip netns exec $space timeout -k 5 $patience bash -c "exec 3<>/dev/tcp/10.9.0.1/80; printf 'GET / HTTP/1.1\r\nHo' >&3; cat <&3" \
        >"$work/silent" 2>&1 &
    silent=$!
}
end_silence() {
    wait_for_end $silent "the answer to a client that falls silent"
    check "$1: a client that falls silent in a request" "HTTP/1.1 408 Request Timeout" "$(head -1 "$work/silent" | tr -d '\r')"
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
    bounded inside nping --udp -g 4000 -p 9 -c 500 --rate 20000 --data-length 64 10.9.0.1
    bounded inside nping --udp -g 4000 -p 7 -c 20 --rate 200 --data-length 100 10.9.0.1
    bounded inside nping --udp -g 4000 -p 53 -c 3 --rate 200 10.9.0.1 \
        --data 123401000001000000000000037777770765786d706c6503636f6d0000010001
} >"$work/nping" 2>&1

# get [options] URL: out of patience, the script ends.
get() {
    local status=0
    inside curl -s -m $patience "$@" || status=$?
    [ $status != 28 ] || out_of_time "curl $*"
    return $status
}
status_of() { get -o /dev/null -w '%{http_code}' --path-as-is "$@"; }

# times N WORD...: the words N times
times() {
    local count=$1
    shift
    while [ $((count--)) -gt 0 ]; do printf '%s\n' "$@"; done
}

pages() {
    check "$1: GET /" 200 "$(status_of http://10.9.0.1/)"
    check "$1: GET over IPv6" 200 "$(status_of 'http://[fd09::1]/contact')"
    check "$1: HEAD has the length of GET" "$(get http://10.9.0.1/contact | wc -c)" \
        "$(get -I http://10.9.0.1/contact | tr -d '\r' | sed -n 's/Content-Length: //p')"
    check "$1: a file of 1 MiB" "$(sha256sum <"$work/www/big")" "$(get http://10.9.0.1/big | sha256sum)"
    check "$1: the page of a folder" "<p>a page" "$(get http://10.9.0.1/sub/)"
    check "$1: /stats is JSON, and alive" true "$(get http://10.9.0.1/stats | jq '.http.requests > 0 and .tcp.opened > 0')"
    check "$1: no such page" 404 "$(status_of http://10.9.0.1/none)"
    check "$1: no such method" 405 "$(status_of -X DELETE http://10.9.0.1/)"
    check "$1: nothing beyond the folder" 400400404 "$(status_of http://10.9.0.1/../secret)$(
        status_of http://10.9.0.1/%2e%2e/secret)$(status_of http://10.9.0.1/..%2fsecret)"
    check "$1: a head of 10 KB" 431 "$(status_of -H "X: $(times 1000 0123456789 | tr -d '\n')" http://10.9.0.1/)"
    check "$1: nothing listens elsewhere" 7 "$(get -o /dev/null http://10.9.0.1:81/; echo $?)"
}

many() {
    check "$1: 100 requests in one connection" "100 200 1" "$(get -w '%{http_code}\n' $(times 100 -o /dev/null http://10.9.0.1/contact) |
        sort | uniq -c | xargs) $(get -w '%{num_connects}\n' $(times 100 -o /dev/null http://10.9.0.1/contact) | paste -sd+ | bc)"
    check "$1: 50 at a time" "50 200" "$(get -Z --parallel-immediate --parallel-max 50 -w '%{http_code}\n' \
        $(times 50 -o /dev/null http://10.9.0.1/contact) 2>/dev/null | sort | uniq -c | xargs)"
    patience=$((4 * patience)) bounded inside ab -q -k -c 50 -n 20000 http://10.9.0.1/contact >"$work/ab" 2>&1
    check "$1: ab -k -c 50 -n 20000" "Complete requests: 20000 Failed requests: 0" \
        "$(sed -n 's/  */ /g; /^\(Complete\|Failed\) requests/p; /^Non-2xx/p' "$work/ab" | xargs)"
}

# With a hundredth of the frames lost in each direction: each hundredth, as a busy kernel acknowledges with few frames, of which a
# random choice may take none.
lossy() {
    inside nft -f - <<'END'
table netdev lossy {
    chain from_server { type filter hook ingress device w0 priority 0; numgen inc mod 100 == 99 counter drop; }
    chain to_server { type filter hook egress device w0 priority 0; numgen inc mod 100 == 99 counter drop; }
}
END
    check "$1: a file of 1 MiB through 1 % loss" "$(sha256sum <"$work/www/big")" "$(get http://10.9.0.1/big | sha256sum)"
    check "$1: 50 at a time through 1 % loss" "50 200" "$(get -Z --parallel-immediate --parallel-max 50 -w '%{http_code}\n' \
        $(times 50 -o /dev/null http://10.9.0.1/contact) 2>/dev/null | sort | uniq -c | xargs)"
    check "$1: frames were lost both ways" 2 "$(inside nft list ruleset | grep -c 'packets [1-9]')"
    inside nft delete table netdev lossy
}

here=$(realpath "$(dirname "$0")/../..")
for option in $("$packets" --help | grep -oE -- '--[a-z-]+' | sort -u); do
    check_has "the manual page has $option" "$option" "$(sed 's/\\-/-/g' "$here/docs/weftio-packets.1")"
    check_has "the completion has $option" "$option" "$(cat "$here/apps/packets/weftio-packets.bash-completion")"
done
if command -v man >/dev/null; then
    check "the manual page is without errors" "" \
        "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$here/docs/weftio-packets.1" 2>&1 >/dev/null)"
fi
check "a port that is not there: exit status" 1 "$(inside "$packets" -n iface:none0 --address 10.9.0.1 >"$work/out" 2>&1; echo $?)"
check_has "a port that is not there: sentence" "iface:none0" "$(cat "$work/out")"
check "no rights: exit status" 1 "$(setpriv --reuid 65534 --clear-groups "$packets" -n tap:w9 --address 10.9.0.1 >"$work/out" 2>&1; echo $?)"
check "a folder that is not there" 1 "$(inside "$packets" -n null --address 10.9.0.1 --root /none >"$work/out" 2>&1; echo $?)"

for device in cpu opencl; do
    if [ $device = opencl ] && ! "$build/samples/simple_receive" -g opencl --count 1 >"$work/words" 2>&1; then
        echo "not checked: OpenCL ($(tail -1 "$work/words"))"
        continue
    fi
    start $device --echo 7
    begin_silence
    pings $device
    datagrams $device
    pages $device
    many $device
    lossy $device
    end_silence $device
    stop $device
    check "$device: fragments are counted" 6 "$(counted fragment)"
    check "$device: UDP datagrams are counted" 500 "$(counted udp)"
    check "$device: DNS queries are counted" 3 "$(counted dns_query)"
    if ! grep -q '^0 packets dropped by kernel' "$work/tcpdump"; then
        echo "not checked: $device: answers in the capture ($(grep 'dropped by kernel' "$work/tcpdump"))"
        continue
    fi
    check "$device: each ping is answered once" "$(seen 'icmp.type == 8 && ip.flags.mf == 0')" "$(seen 'icmp.type == 0')"
    check "$device: pings are counted" "$(seen 'icmp.type == 0')" "$(counted ping)"
    check "$device: each ping of IPv6 is answered once" "$(seen 'icmpv6.type == 128')" "$(seen 'icmpv6.type == 129')"
    check "$device: pings of IPv6 are counted" "$(seen 'icmpv6.type == 129')" "$(counted ping6)"
    check "$device: the echo gives each datagram back" 20 "$(seen 'udp.srcport == 7 && udp.dstport == 4000 && udp.length == 108 && !icmp')"
done

# Port and interface of a tap are two hosts: the address that Linux makes for itself is not ours.
start cpu
ours=$(sed -n 's/.*\(fe80:[^/]*\).*/\1/p' "$work/out" | head -1)
check "tap: Linux keeps its link-local address" "" "$(inside ip -6 addr show dev w0 scope link | grep -F "$ours")"
answered "tap: ping of our link-local address" -6 -I w0 "$ours"
stop tap

# Four kernels share the connections, the records and the counters that /stats shows.
start cpu --queues 4
pages "4 kernels"
many "4 kernels"
check "4 kernels: /stats counts what all have answered" true "$(get http://10.9.0.1/stats | jq '.http.requests > 20000')"
lossy "4 kernels"
stop "4 kernels"
finish
