#!/usr/bin/env bash
# Programs ended with kill -9 at a random moment of their life leave nothing that hinders the next: no file of DPDK's, no hugepage, no
# lock, no interface that sends no more. Works in a network namespace that it makes and removes.
#
#   WEFTIO_KILLS=1000 tests/scripts/killed.sh BUILD_DIR      the full count; 20 otherwise
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
kills=${WEFTIO_KILLS:-20}
replay=$build/apps/weftio-replay
receive=$build/samples/simple_receive
capture=$(realpath "$(dirname "$0")/../../lib/src/dpdk/builtin.pcap")

[[ -x $replay && -x $receive ]] || skip "programs that are killed: weftio-replay or simple_receive is not built"
# DPDK's runtime folder is shared with every other program of root's: this script and what it runs see one of their own.
if [[ ${WEFTIO_OWN_RUN:-} != "$PPID" ]]; then
    unshare --mount true 2>/dev/null || skip "programs that are killed: mount namespaces need root"
    WEFTIO_OWN_RUN=$$ exec unshare --mount --fork bash "$0" "$@"
fi
mkdir -p /run/dpdk && mount -t tmpfs none /run/dpdk || skip "programs that are killed: /run/dpdk cannot be had for itself"
! mountpoint -q /dev/hugepages || mount -t hugetlbfs none /dev/hugepages || skip "programs that are killed: /dev/hugepages cannot be had for itself"
namespace=weftio-killed-$$
ip netns add "$namespace" 2>/dev/null || skip "programs that are killed: network namespaces need root"
work=$(mktemp -d)
cleanup()
{
    ip netns del "$namespace" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
within() { ip netns exec "$namespace" "$@"; }
within ip link add near type veth peer name far || skip "programs that are killed: veth interfaces cannot be made here"
within ip link set near up
within ip link set far up

fail()
{
    echo "FAILED: kill $kill of $kills, $spec: $*"
    [[ -s $work/words ]] && sed 's/^/    /' "$work/words"
    exit 1
}
enough_received() { [[ $(($(received) - sent_before)) -ge 30 ]]; }
received() { within cat /sys/class/net/far/statistics/rx_packets; }
# What a killed program could leave. DPDK's telemetry socket stays, in a folder named after the program; the next one of that name
# takes it over and removes it.
left_behind() { find /run/dpdk /dev/hugepages -mindepth 1 ! '(' -path '/run/dpdk/*' -type d ')' ! -name dpdk_telemetry.v2 2>/dev/null; }

# The programs that are killed: sending and receiving, by every kind of port.
specs=(iface:near net_af_packet0,iface=near "pcap:tx=$work/sent.pcap" iface:near)
start_victim() # which
{
    case $1 in
    3) set -- "$receive" -n iface:near ;;
    *) set -- "$replay" -t --loop 0 "$capture" "${specs[$1]}" ;;
    esac
    ip netns exec "$namespace" "$@" >/dev/null 2>"$work/words" & # not within, whose shell would be killed instead
    victim=$!
}

before=$(left_behind)
for ((kill = 1; kill <= kills; ++kill)); do
    which=$((kill % 4))
    spec=${specs[which]}
    start_victim $which
    sleep "0.$(printf '%03d' $((RANDOM % 700)))"
    kill -9 $victim 2>/dev/null || fail "it had ended by itself"
    wait $victim 2>/dev/null
    [[ $which != 2 ]] || rm -f "$work/sent.pcap"
    after=$(left_behind)
    [[ $after == "$before" ]] || fail "left behind: $(diff <(echo "$before") <(echo "$after"))"

    sent_before=$(received)
    bounded ip netns exec "$namespace" "$replay" -t --limit 30 --json "$work/report.json" "$capture" "$spec" >/dev/null 2>"$work/words" ||
        fail "the next program ended with status $?"
    if [[ $which == 2 ]]; then
        [[ $(stat -c %s "$work/sent.pcap") -gt 1000 ]] || fail "the next program wrote no capture"
    else
        within_patience enough_received || fail "frames of the next program did not arrive"
    fi
    [[ ! -e /run/dpdk/weftio-replay/dpdk_telemetry.v2 ]] || fail "the next program did not take over, and remove, the socket of the one killed"
done
echo "$kills programs killed, $kills started behind them"
