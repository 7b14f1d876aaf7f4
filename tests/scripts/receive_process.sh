#!/usr/bin/env bash
# receive_process counts what `tshark -z io,phs` counts, for captures that nobody here wrote: read from the file, and replayed
# by tcpreplay into the far end of a veth pair. Works in network namespaces that it makes and removes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
sample=$build/samples/receive_process
[ "$(id -u)" = 0 ] || skip "per-protocol counts of replayed traffic: needs root"
for tool in ip tcpreplay tshark stdbuf; do
    command -v $tool >/dev/null || skip "per-protocol counts of replayed traffic: $tool is not installed"
done
captures=("$source/lib/src/dpdk/builtin.pcap")
for capture in /usr/share/sip-tester/{g711a,dtmf_2833_0}.pcap \
    /usr/share/doc/python3-dpkt/examples/data/{http,dns_icmp,nb6-http}.pcap \
    /usr/share/gocode/src/github.com/google/gopacket/pcap/test_{dns,ethernet}.pcap; do
    [ -e "$capture" ] || skip "per-protocol counts of $capture: install sip-tester, python3-dpkt and golang-github-google-gopacket-dev"
    captures+=("$capture")
done

near=weftio-near-$$ far=weftio-far-$$
work=$(mktemp -d)
cleanup() {
    end_all
    ip netns delete $near 2>/dev/null
    ip netns delete $far 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

protocols="eth ip ipv6 arp icmp icmpv6 tcp udp vlan"
# What tshark's protocol hierarchy says of these. It shows protocols where they are: what lies in a tunnel, or in the packet that an
# ICMP error quotes, is deeper. Each fragment by itself, as a receiver without reassembly sees them.
expected_counts() {
    tshark -r "$1" -o ip.defragment:FALSE -o ipv6.defragment:FALSE -q -z io,phs 2>/dev/null | awk -v protocols="$protocols" '
        / frames:[0-9]+ bytes:[0-9]+/ {
            match($0, /[^ ]/)
            depth = (RSTART - 1) / 2
            layers[depth] = $1
            place = ""
            for (i = 0; i < depth; i++)
                if (layers[i] != "vlan" && layers[i] !~ /^ipv6\./)
                    place = place layers[i] " "
            if (place ~ /^(eth )?((ip|ipv6) )?$/ && !(place ~ /ip/ && $1 ~ /^(ip|ipv6)$/)) {
                split($2, frames, ":"); split($3, bytes, ":")
                if ($1 != "vlan" || layers[depth - 1] != "vlan") {
                    frames_of[$1] += frames[2]; bytes_of[$1] += bytes[2]
                }
            }
        }
        END {
            count = split(protocols, names, " ")
            for (i = 1; i <= count; i++)
                print names[i], frames_of[names[i]] + 0, bytes_of[names[i]] + 0
        }'
}
seen_counts() { awk -v protocols=" $protocols " 'NF == 3 && index(protocols, " " $1 " ") { print $1, $2, $3 }' "$1"; }
frames_in() { tshark -r "$1" 2>/dev/null | wc -l; }

find_devices "$sample"

for device in $devices; do
    for capture in "${captures[@]}"; do
        "$sample" -n "pcap:$capture" -g $device --lanes 32 >"$work/seen" 2>"$work/words"
        check "$(basename "$capture") from the file on $device, 32 lanes" "0 $(expected_counts "$capture")" \
            "$? $(seen_counts "$work/seen")"
    done
done

# A veth pair on which nobody speaks of himself.
ip netns add $near && ip netns add $far || skip "per-protocol counts of replayed traffic: network namespaces cannot be made here"
for space in $near $far; do
    ip netns exec $space sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
done
ip -n $near link add v1 type veth peer name v0 netns $far ||
    skip "per-protocol counts of replayed traffic: veth interfaces cannot be made here"
ip -n $near link set v1 arp off up
ip -n $far link set v0 arp off up

is_receiving() { grep -q ^Receiving "$work/seen" && ip -n $near link show v1 | grep -q LOWER_UP; }
replay() { # name, capture, arguments of receive_process
    local name=$1 capture=$2
    shift 2
    : >"$work/seen"
    ip netns exec $near stdbuf -oL "$sample" "$@" --count "$(frames_in "$capture")" --seconds $((2 * patience)) >"$work/seen" 2>"$work/words" &
    receiver=$!
    eventually_by $receiver is_receiving
    ip netns exec $far tcpreplay -i v0 --pps=1000 "$capture" >"$work/replay" 2>&1 || cat "$work/replay"
    wait $receiver
    check "$(basename "$capture") replayed, $name: exit status" 0 $?
    check "$(basename "$capture") replayed, $name" "$(expected_counts "$capture")" "$(seen_counts "$work/seen")"
}
for device in $devices; do
    for capture in "${captures[@]}"; do
        replay "iface: on $device" "$capture" -n iface:v1 -g $device
    done
done
replay "32 lanes" "${captures[0]}" -n iface:v1 --lanes 32
replay "af_packet" "${captures[0]}" -n net_af_packet0,iface=v1

finish
