#!/usr/bin/env bash
# rdma_client_server: both ends in one process, and two processes in two network namespaces that it makes and removes, with tcpdump
# on the bridge between them; what RoCEv2 packets there must be, wrong usage, and peers that go away.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1") here=$(realpath "$(dirname "$0")/../rxe")
sample=$build/samples/rdma_client_server
work=$(mktemp -d)
near=weftio-rdma-near-$$ far=weftio-rdma-far-$$ wire=weftio-rdma-wire-$$
cleanup() {
    end_all
    for each in $near $far $wire; do
        ip netns delete $each 2>/dev/null
    done
    rm -rf "$work"
}
trap cleanup EXIT

# What a server says of four buffers that came as they should.
for piece in 0 1 2 3 4 5 6 7; do
    [ $((piece / 2 % 2)) = 0 ] && kind=WRITE || kind=SEND
    printf 'Server: buffer %d, piece %d: %s with immediate value %d, bytes of 0x%02x\n' $((piece / 2)) $((piece % 2)) $kind $piece $((piece + 1))
done >"$work/expected"

find_devices "$sample" --count 1
for device in $devices; do
    said=$("$sample" -g $device 2>&1)
    check "both ends in one process on $device: exit status" 0 $?
    check "both ends in one process on $device: what came" "$(cat "$work/expected")" "$(grep ^Server <<<"$said")"
    check "both ends in one process on $device: what the client says" \
        "Client: 4 of 4 buffers were ready; 8 pieces sent, 8 verified" "$(grep ^Client <<<"$said")"
done
said=$("$sample" --count 301 | grep ^Server | tail -1) # the client may be the last to speak
check "301 buffers" "Server: buffer 300, piece 1: WRITE with immediate value 601, bytes of 0x5c" "$said"

# By connection: buffer k by connection k modulo their number, all from one receive ring.
for connections in 1 3; do
    sed "s/piece \(.*\)/&, by connection /" "$work/expected" | awk -v of=$connections '{split($3, number, ","); print $0 number[1] % of}' >"$work/by"
    for device in $devices; do
        said=$(bounded "$sample" -g $device --shared --connections $connections 2>&1)
        check "$connections connections on $device: exit status" 0 $?
        check "$connections connections on $device: what came" "$(cat "$work/by")" "$(grep ^Server <<<"$said")"
        check_has "$connections connections on $device: what the client says" "8 pieces sent, 8 verified" "$said"
    done
done

# Payload in memory that the CPU cannot access needs a copy engine, which a GPU has.
said=$(bounded "$sample" --payload device 2>&1)
check "--payload device on cpu: exit status" 4 $?
check_has "--payload device on cpu: why" "device cpu: no copy engine" "$said"
check_has "--payload nowhere: why" "--payload: Check nowhere value in {" "$("$sample" --payload nowhere 2>&1)"

# The peer's keys from a registration cache: each connection asks, the first one registers.
for connections in 1 3; do
    said=$(bounded "$sample" --cache --connections $connections 2>&1)
    check "--cache, $connections connections: exit status" 0 $?
    check "--cache, $connections connections: what came" "$(cat "$work/expected")" "$(grep '^Server: buffer' <<<"$said" | sed 's/, by connection .*//')"
    for end in Client Server; do
        check "--cache, $connections connections: the $end's cache" \
            "$end: registration cache: 1 of $connections requests registered memory, 1 key for the peer" "$(grep "^$end: reg" <<<"$said")"
    done
done

lend=$build/samples/lend_memory
for device in $devices; do
    said=$(bounded "$lend" -g $device 2>&1)
    check "lend_memory on $device: exit status" 0 $?
    check "lend_memory on $device" "Borrower: the first WRITE succeeded, the second was refused
Lender: key KEY was returned; 1024 bytes of the first WRITE, 0 of the second
Lender: weftio: rdma_queue N: the peer's WRITE was refused: 1024 bytes at ADDRESS with key KEY: the memory window is not bound under that key: it is free, or has another key now" \
        "$(sed -E 's/rdma_queue [0-9]+/rdma_queue N/; s/key 0x[0-9a-f]+/key KEY/; s/at 0x[0-9a-f]+/at ADDRESS/' <<<"$said" | sort)"
done

# refused STATUS WORDS ARGUMENT...: in one sentence.
refused() {
    local status=$1 words=$2 said
    shift 2
    said=$(bounded "$sample" "$@" 2>&1 >/dev/null)
    check "$*: exit status" "$status" $?
    check_has "$*: sentence" "$words" "$said"
    check "$*: one line" 1 "$(grep -cv '^Run with --help' <<<"$said")"
}
refused 1 "--listen excludes --connect" --listen 18515 --connect localhost:18515
refused 1 "--address: needs --listen or --connect" --address 10.0.0.1
refused 1 "--cm: needs --listen or --connect" --cm
refused 1 "--count" --count 0
refused 1 "--connections" --connections 65
refused 4 "\"localhost\": no host; write HOST:PORT" --connect localhost
refused 4 "\"fd00::1:18515\": an IPv6 address without brackets" --connect fd00::1:18515
refused 4 "\"[::1]\": no port number; write HOST:PORT" --connect "[::1]"
refused 4 "cannot resolve host \"no-such-host.invalid\"" --connect no-such-host.invalid:1
refused 4 "no peer accepted the connection (Connection refused) within 1000 ms; start the peer's" --connect localhost:1 --timeout 1
refused 4 "no peer connected within 1000 ms; start the peer" --listen 127.0.0.1:0 --timeout 1
refused 4 "name an address that an interface of this host has" --listen 192.0.2.1:18515
refused 4 "nosuch" -n nosuch:port

# start ARGUMENT...: a server, in namespace `at` if that is set, whose signals are as those of a program at a terminal.
at=
start() {
    : >"$work/server" # has the words of the server before
    (trap - INT; exec ${at:+ip netns exec $at} env --default-signal=INT "$sample" "$@" >"$work/server" 2>"$work/words") &
    server=$!
    eventually_by $server grep -q ^Listening "$work/server"
}
# ended WHAT STATUS: waits for the server.
has_ended() { ! kill -0 $server 2>/dev/null; }
ended() {
    eventually has_ended
    wait_for_end $server
    check "$1: the server's exit status" "$2" $? || cat "$work/words"
}

start --listen 127.0.0.1:0 --timeout 0
port=$(grep -o 'TCP port [0-9]*' "$work/server" | tr -dc 0-9)
refused 4 "Address already in use; stop the program that has the port" --listen "127.0.0.1:$port"
exec 3<>/dev/tcp/127.0.0.1/"$port" && printf 'GET / HTTP/1.1\r\n\r\n' >&3
check "a browser is refused" "" "$(timeout $patience cat <&3 2>/dev/null)"
exec 3<&-
kill -INT $server
ended "Ctrl-C" 4
check_has "Ctrl-C: sentence" "the application canceled the wait" "$(cat "$work/words")"

# A peer that hears our words and none of our packets.
start --listen 127.0.0.1:0 -n null
port=$(grep -o 'TCP port [0-9]*' "$work/server" | tr -dc 0-9)
refused 4 "the peer closed the connection; check the peer" --connect "127.0.0.1:$port" -n null
ended "no way between them" 1
check_has "no way between them: sentence" "no acknowledgment after retry_count retries" "$(cat "$work/words")"
check "no way between them: what came" "Server: buffer 0, piece 0: nothing with immediate value 0, bytes of 0x00: not the bytes sent" \
    "$(grep ^Server "$work/server" | head -1)"

# By the connection manager, over a wire in memory.
for connections in 1 3; do
    start --listen 127.0.0.1:0 -n wire:cm-$$ --cm --connections $connections
    port=$(grep -o 'TCP port [0-9]*' "$work/server" | tr -dc 0-9)
    said=$(bounded "$sample" --connect "127.0.0.1:$port" -n wire:cm-$$ --cm --connections $connections 2>&1)
    check "--cm, $connections connections: the client's exit status" 0 $? || echo "$said"
    check "--cm, $connections connections: what the client says" \
        "Client: 4 of 4 buffers were ready; 8 pieces sent, 8 verified" "$said"
    ended "--cm, $connections connections" 0
    check "--cm, $connections connections: what came" "$(cat "$work/expected")" \
        "$(grep ^Server "$work/server" | sed 's/, by connection .*//')"
done

missed=
[ "$(id -u)" = 0 ] || missed="needs root"
for tool in ip tcpdump tshark python3; do
    [ -n "$(command -v $tool)" ] || missed="$tool is not installed"
done
for each in $near $far $wire; do
    [ -n "$missed" ] || ip netns add $each 2>/dev/null || missed="network namespaces cannot be made here"
done
if [ -n "$missed" ]; then
    [ $failures = 0 ] || finish
    skip "RDMA between two processes (one process was checked): $missed"
fi

# d0 is for RDMA, behind a bridge in a third namespace; c0 for TCP.
for each in $near $far $wire; do
    ip netns exec $each sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up'
done
ip -n $wire link add br0 type bridge mcast_snooping 0
ip -n $wire link set br0 up
host=1
for each in $near $far; do
    ip -n $wire link add b$host type veth peer name d0 netns $each
    ip -n $wire link set b$host master br0 up
    ip -n $each link set d0 up
    ip -n $each address add 10.88.0.$host/24 dev d0
    host=$((host + 1))
done
ip -n $near link add c0 type veth peer name c0 netns $far
ip netns exec $near sh -c 'echo 0 >/proc/sys/net/ipv6/conf/c0/disable_ipv6; ip link set c0 up; ip address add 10.89.0.1/24 dev c0
    ip address add fd89::1/64 dev c0 nodad'
ip netns exec $far sh -c 'echo 0 >/proc/sys/net/ipv6/conf/c0/disable_ipv6; ip link set c0 up; ip address add 10.89.0.2/24 dev c0
    ip address add fd89::2/64 dev c0 nodad'
at=$near

# Makes "$work/packets", of the packets on the bridge: addresses (one of them empty), opcode, number, what is malformed. What a
# SEND carries is nobody's protocol. Whether the answer to the READ, which comes last, is among them.
dissect() {
    tshark -r "$work/wire.pcap" --disable-protocol rpcordma --disable-protocol smb_direct --disable-protocol iser -T fields -e ip.src \
        -e ipv6.src -e infiniband.bth.opcode -e infiniband.bth.psn -e _ws.malformed 2>/dev/null >"$work/packets"
    cut -f3 "$work/packets" | grep -qx 15
}
# The requests and the answers to the READ, each once however often it was repeated: a busy machine may be slow to answer.
expected_packets='4 client 11
4 client 5
1 client 12
4 server 10
1 server 13
2 server 14
1 server 15'
check_packets() { # what, server's address, client's
    sed "s/^\t//; s/^$2\t\t*/server /; s/^$3\t\t*/client /" "$work/packets" | cut -f1,2 | sort -u | cut -f1 | grep -v ' 17$' | sort |
        uniq -c | sed 's/^ *//' >"$work/counts"
    check "$1: WRITEs and SENDs with immediate, a READ, its answer, the server's numbers" "$(sort <<<"$expected_packets")" "$(sort "$work/counts")"
    check_has "$1: acknowledgments" 17 "$(cut -f3 "$work/packets" | sort -u)"
    check "$1: malformed packets" "" "$(cut -f5 "$work/packets" | grep .)"
    python3 "$here/roce-icrc" "$work/wire.pcap" >"$work/sums"
    check "$1: the ICRC of every packet: $(sed 's/.*: //' "$work/sums")" 0 $?
}

# two WHAT PORT SERVER'S-DEVICE CLIENT'S-DEVICE TCP-ADDRESS SERVER'S-ADDRESS CLIENT'S-ADDRESS
two() {
    local what=$1 port=$2 said
    : >"$work/listening" # has the words of the tcpdump before
    ip netns exec $wire tcpdump -q -i b1 -U --immediate-mode -w "$work/wire.pcap" 'udp port 4791' 2>"$work/listening" &
    dump=$!
    eventually_by $dump grep -q 'listening on' "$work/listening"
    start --listen "$5" -n "$port" -g "$3" --address "$6"
    said=$(bounded ip netns exec $far "$sample" --connect "$5" -n "$port" -g "$4" --address "$7" 2>&1)
    check "$what: the client's exit status" 0 $? || echo "$said"
    check "$what: what the client says" "Client: 4 of 4 buffers were ready; 8 pieces sent, 8 verified" "$said"
    ended "$what" 0
    check "$what: what came" "$(cat "$work/expected")" "$(grep ^Server "$work/server")"
    eventually dissect
    kill $dump
    wait_for_end $dump tcpdump 2>/dev/null
    check_packets "$what" "$6" "$7"
}
packet=net_af_packet0,iface=d0
two "cpu, IPv4" iface:d0 cpu cpu 10.89.0.1:18515 10.0.0.1 10.0.0.2
two "cpu, IPv6" $packet cpu cpu '[fd89::1]:18515' fd00::1 fd00::2
two "cpu, TCP on the interface of the port" $packet cpu cpu 10.88.0.1:18515 10.0.0.1 10.0.0.2
if [[ $devices == *opencl* ]]; then
    two "the server on opencl, IPv4" $packet opencl cpu 10.89.0.1:18515 10.0.0.1 10.0.0.2
    two "the client on opencl, IPv6" iface:d0 cpu opencl 10.89.0.1:18515 fd00::1 fd00::2
fi

# While they work: one is killed, or gets Ctrl-C.
crossed_enough() { [ $(crossed) -gt $((before + 1000)) ]; }
crossed() { ip netns exec $wire cat /sys/class/net/b1/statistics/rx_packets; }
for ending in "KILL 137" "INT 4"; do
    signal=${ending% *} before=$(crossed)
    start --listen 10.89.0.1:18515 -n $packet --count 200000
    (trap - INT; exec ip netns exec $far env --default-signal=INT "$sample" --connect 10.89.0.1:18515 -n $packet >"$work/client" 2>&1) &
    client=$!
    eventually_by $client crossed_enough
    kill -$signal $client
    { wait_for_end $client; } 2>/dev/null
    check "the client gets SIG$signal: its exit status" "${ending#* }" $?
    ended "the client gets SIG$signal" 4
    check_has "the client gets SIG$signal: the server's sentence" "the peer closed the connection; check the peer" "$(tail -1 "$work/words")"
done

start --listen 10.89.0.1:18515 -n $packet --address 10.0.0.1
said=$(bounded ip netns exec $far "$sample" --connect 10.89.0.1:18515 -n $packet --address fd00::2 2>&1)
check "IPv4 and IPv6: the client's exit status" 4 $?
check_has "IPv4 and IPv6: sentence" "create both rdma_devices with addresses of one IP version" "$said"
ended "IPv4 and IPv6" 4
finish
