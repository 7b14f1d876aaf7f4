#!/usr/bin/env bash
# Queue pairs of the software NIC against Linux's own: in a QEMU guest (no KVM) Debian's kernel has rdma_rxe on a bridge,
# and rxe_cases there speaks with rxe_peer here, either asking first. IPv4 and IPv6; the port has an address of its own, so ARP and
# neighbor discovery are with Linux too. About 40 s; the first run downloads some 100 MB of Debian packages to ~/.cache/rxe-guest.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/rxe_wire.bash"
build=$(realpath "$1") here=$(realpath "$(dirname "$0")/../rxe")
[ "$(id -u)" = 0 ] || skip "Linux's RDMA: a tap in a network namespace needs root"
for tool in cc tcpdump tshark; do
    [ -n "$(command -v $tool)" ] || skip "Linux's RDMA: $tool is not installed"
done
"$here/rxe-guest" --prepare >/dev/null 2>&1 || skip "Linux's RDMA: no download of the guest's packages"
work=$(mktemp -d)
peers=weftio-rxe-$$
cleanup() {
    end_all
    ip netns delete $peers 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cc -O2 -o "$work/rxe_cases" "$here/rxe_cases.c" -libverbs || exit 1

make_rxe_wire $peers || skip "Linux's RDMA: no network namespace can be made"
# On the bridge, because what leaves by w0 passes no capture there.
"${in[@]}" tcpdump -q -i br0 -U -w "$work/wire.pcap" 2>/dev/null &
dump=$!

asked="write read atomic send window window1 big key bounds denied rnr long mtu"
answered="write read send window window1 big key bounds denied rnr long mtu atomic"
ipv6="write read send"
# find ADDRESS: in the guest, until Linux has asked for our MAC and got it.
find='find() { ip neigh flush dev eth0; for _ in $(seq $PATIENCE); do ping -c1 -W1 $1 >/dev/null; ip neigh show ${1%\%*} | grep -q lladdr && return; done; }'
"${in[@]}" "$here/rxe-guest" --tap tap0 --timeout $((5 * patience)) --add "$work/rxe_cases" --run "export PATIENCE=$patience; $find; ./rxe_cases $asked
    echo answered by us; find 192.0.2.3; ./rxe_cases -c 192.0.2.1 $answered
    echo IPv6; GID=0 ./rxe_cases $ipv6; find fe80::3%eth0; GID=0 ./rxe_cases -c 192.0.2.1 $ipv6" >"$work/guest" 2>&1 &
guest=$!

# peer WHAT ADDRESS [-c SERVER] CASE...
peer() {
    local what=$1 said
    said=$(timeout -k 5 $((4 * patience)) "${in[@]}" "$build/tests/rxe_peer" net_af_packet0,iface=w0 "${@:2}")
    local status=$?
    [ $status != 124 ] || out_of_time "$what"
    check "$what: as it should be" 0 $status || sed 's/^/    /' <<<"$said"
}
peer "we ask" 192.0.2.3 -c 192.0.2.2 $asked
peer "we answer" 192.0.2.3 $answered
peer "we ask, IPv6" fe80::3 -c 192.0.2.2 $ipv6
peer "we answer, IPv6" fe80::3 $ipv6
wait $guest
check "the guest ended well" 0 $?

# What Linux says of its own side.
says() { sed -n "/^$1\$/,/^[a-z]/p" <<<"$2" | sed '1d' | grep -v '^[a-z]' | sed 's/^ *//; s/, opcode.*//' | sort | uniq -c | sed 's/^ *//'; }
ours=$(sed '/^answered by us$/,$d' "$work/guest") theirs=$(sed '1,/^answered by us$/d; /^IPv6$/,$d' "$work/guest")
check "our SENDs arrive" "5 receive: success" "$(says send "$ours")"
check "our WRITEs with immediate arrive" "2 receive: success" "$(says write "$ours")"
check "our key that is invalid kills the window" "1 bind: success
1 receive of SEND with invalidate: success" "$(says window "$ours")"
check "a window of type 1 of Linux's ends when it is unbound" "1 bind: success
1 unbind: success" "$(says window1 "$ours")"
check "Linux uses our window of type 2, and returns it" "1 READ 100 through the window: success
1 SEND 4 with invalidate: success
1 WRITE 100 through the window: success
1 WRITE through the dead window: remote access error" "$(says window "$theirs")"
check "Linux uses our window of type 1" "1 WRITE 100 through the window of type 1: success
1 WRITE through the unbound window: remote access error" "$(says window1 "$theirs")"
check "a SEND that waits for its receive arrives" "1 receive: success" "$(says rnr "$ours")"
for name in write read send big atomic rnr; do
    check "Linux's requests, $name: all succeed" "" "$(says $name "$theirs" | grep -v ': success$')"
    check_has "Linux's requests, $name: there are some" success "$(says $name "$theirs")"
done
check "a wrong key" "1 WRITE, wrong key: remote access error" "$(says key "$theirs")"
check "bytes past the end" "1 WRITE after it: Work Request Flushed Error
1 WRITE past the end: remote access error" "$(says bounds "$theirs")"
check "a region that is read only" "1 WRITE to a read-only region: remote access error" "$(says denied "$theirs")"
check "a SEND longer than its receive" "1 SEND 3000 into 1500: remote invalid request error" "$(says long "$theirs")"
check "a packet longer than the path MTU" "1 WRITE 1024 to a responder of MTU 256: remote invalid request error" "$(says mtu "$theirs")"
check_has "IPv6 too" "receive: success" "$(sed '1,/^IPv6$/d' "$work/guest")"

kill $dump
wait_for_end $dump tcpdump 2>/dev/null
python3 "$here/roce-icrc" "$work/wire.pcap" >"$work/sums"
check "the ICRC of every packet: $(sed 's/.*: //' "$work/sums")" 0 $?
# dissect FILTER FIELD...: of the packets on the wire. What a SEND carries is nobody's protocol.
dissect() {
    local filter=$1
    shift
    tshark -r "$work/wire.pcap" --disable-protocol rpcordma --disable-protocol smb_direct --disable-protocol iser -Y "$filter" -T fields "${@/#/-e}" 2>/dev/null
}
check "packets that tshark calls malformed" "" "$(dissect '_ws.malformed || icmpv6.checksum.status == 0' frame.number _ws.col.Info | head -3)"
check_has "Linux has asked for our IPv4 address" "192.0.2.3" "$(dissect 'arp.opcode == 2' arp.src.proto_ipv4)"
check_has "Linux has asked for our IPv6 address" "fe80::3" "$(dissect 'icmpv6.type == 136' icmpv6.nd.na.target_address)"
finish
