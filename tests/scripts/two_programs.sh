#!/usr/bin/env bash
# Two programs on one interface, whichever way each names it: the second is refused in one sentence, the first does not notice, and
# when it is ended with kill -9 the second starts. Works in network namespaces that it makes and removes.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
sample=$build/samples/simple_receive
[ "$(id -u)" = 0 ] || skip "two programs on one interface: needs root"
for tool in ip nping; do
    command -v $tool >/dev/null || skip "two programs on one interface: $tool is not installed"
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

ip netns add $near && ip netns add $far || skip "two programs on one interface: network namespaces cannot be made here"
ip -n $near link add v1 address 02:00:00:00:00:01 type veth peer name v0 address 02:00:00:00:00:02 netns $far ||
    skip "two programs on one interface: veth interfaces cannot be made here"
ip -n $near address add 10.77.0.1/24 dev v1
ip -n $far address add 10.77.0.2/24 dev v0
ip -n $near link set v1 up
ip -n $far link set v0 up
ip -n $far neighbor add 10.77.0.1 lladdr 02:00:00:00:00:01 dev v0

is_receiving() { grep -q ^Receiving "$work/seen" && ip -n $near link show v1 | grep -q LOWER_UP; }
has_received() { # count
    [ "$(grep -c ^Lane "$work/seen")" -ge "$1" ]
}
send() { # count
    ip netns exec $far nping -4 --udp -c "$1" -p 2090 --data-length 64 --delay 10ms 10.77.0.1 >"$work/nping" 2>&1
}
start_first() { # port
    : >"$work/seen"
    ip netns exec $near "$sample" -n "$1" >"$work/seen" 2>"$work/words" &
    first=$!
    eventually_by $first is_receiving
}

# start_behind_kill PORT PORT: kills a program and starts the next at once, while Linux takes the first apart. On a busy machine that
# may take longer than the half second that the next waits: then again.
starts_or_is_over() { is_receiving || ! kill -0 $first 2>/dev/null; }
start_behind_kill() {
    local attempt
    for attempt in 1 2 3 4 5; do
        start_first $1
        kill -9 $first
        : >"$work/seen"
        ip netns exec $near "$sample" -n "$2" >"$work/seen" 2>"$work/words" &
        first=$!
        eventually starts_or_is_over
        is_receiving && break
    done
    is_receiving
    check "$1, ended with kill -9, then $2: starts" 0 $? || cat "$work/words"
}

packet_socket=net_af_packet0,iface=v1
xdp_socket=net_af_xdp0,iface=v1
ways="iface:v1 $packet_socket"
if ip netns exec $near "$sample" -n $xdp_socket --seconds 0.1 >"$work/seen" 2>"$work/words"; then
    ways="$ways $xdp_socket"
else
    echo "not checked: af_xdp by its own name ($(tail -1 "$work/words"))"
fi
for holder in $ways; do
    start_first $holder
    send 5
    within_patience has_received 5
    sent=5
    for second in $ways; do
        seen=$(ip netns exec $near "$sample" -n $second --seconds 1 2>"$work/refusal")
        check "$holder, then $second: exit status" 4 $?
        check "$holder, then $second: receives nothing" "" "$seen"
        check "$holder, then $second: one line" 1 "$(wc -l <"$work/refusal")"
        check_has "$holder, then $second: sentence" "port $second: interface v1 is already open in a Weftio port" "$(cat "$work/refusal")"
        send 5
        sent=$((sent + 5))
        within_patience has_received $sent
        check "$holder, then $second: the first goes on" $sent "$(grep -c ^Lane "$work/seen")"
    done
    kill -TERM $first
    wait_for_end $first
    check "$holder: ends in order" 0 $?
    check_has "$holder: conservation" "delivered $sent," "$(tail -1 "$work/seen")"

    for second in $ways; do
        start_behind_kill $holder $second
        send 5
        within_patience has_received 5
        check "$holder, ended with kill -9, then $second: receives" 5 "$(grep -c ^Lane "$work/seen")"
        kill -TERM $first
        wait_for_end $first
    done
done

# A tap interface is there as long as the program that made it.
for _ in 1 2 3; do
    start_behind_kill tap:weftio-tap tap:weftio-tap
    kill -TERM $first
    wait_for_end $first
done
finish
