#!/usr/bin/env bash
# Verbs programs under weftio-run against the same programs on Linux's own rdma_rxe, in a QEMU guest (no KVM): shared receive
# queues, datagrams, and connections by librdmacm, each end as the server once. About a minute; the first run downloads some 100 MB to ~/.cache/rxe-guest.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/rxe_wire.bash"
build=$(realpath "$1")
. "$(dirname "$0")/below_run.bash"
needs_weftio_run "programs against Linux's RDMA"
rxe=$(realpath "$(dirname "$0")/../rxe")
[ "$(id -u)" = 0 ] || skip "programs against Linux's RDMA: a tap in a network namespace needs root"
for program in ibv_rc_pingpong ibv_srq_pingpong ibv_ud_pingpong ib_send_bw rping; do
    [ -n "$(command -v $program)" ] ||
        skip "programs against Linux's RDMA: $program is not installed (ibverbs-utils, perftest, rdmacm-utils)"
done
"$rxe/rxe-guest" --prepare >/dev/null 2>&1 || skip "programs against Linux's RDMA: no download of the guest's packages"
work=$(mktemp -d)
peers=weftio-run-rxe-$$
cleanup() {
    end_all
    ip netns delete $peers 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

make_rxe_wire $peers || skip "programs against Linux's RDMA: no network namespace can be made"

# A program of each kind; the guest and we meet by TCP at one port after the other.
cases=("ibv_rc_pingpong -c -n 50 -m 1024" "ibv_srq_pingpong -c -n 50 -q 4 -m 1024" "ibv_ud_pingpong -c -n 50 -s 1000"
    "ib_send_bw -F -n 100 -s 1000 -m 1024 --use-srq" "ib_send_bw -F -n 100 -s 1000 -c UD")
# The addresses of rxe and of weftio-run are at these indices; perftest names theirs by another letter.
with_gid() { case $1 in ib_*) echo "$1 -x $2 ${*:3}" ;; *) echo "$1 -g $2 ${*:3}" ;; esac; }
# Programs that connect by librdmacm, and meet nowhere else.
connected=("rping -C 20 -V -S 3000" "ucmatose -c 4 -C 10 -S 2000" "udaddy -c 2 -C 10 -S 500" "ib_write_bw -R -F -n 100 -s 3000"
    "ib_send_lat -R -F -n 100 -s 500")
server_of() { case $1 in rping*) echo "$1 -s" ;; *) echo "$1" ;; esac; }
at_port() { case $1 in udaddy*) ;; *) echo "-p $2" ;; esac; } # udaddy has one port
client_of() {
    case $1 in
    rping*) echo "$1 -c -a $2" ;;
    ib_*) echo "$1 $2" ;;
    *) echo "$1 -s $2" ;;
    esac
}
guest="export PATIENCE=$patience; again() { for try in \$(seq \$PATIENCE); do \"\$@\" && return; sleep 1; done; return 1; }"
port=18600
for each in "${cases[@]}"; do
    guest+="; echo as server: $each; timeout $((2 * patience)) $(with_gid ${each%% *} 1 ${each#* }) -p $((port += 1)); echo status \$?"
    guest+="; echo as client: $each; again $(with_gid ${each%% *} 1 ${each#* }) -p $((port += 1)) 192.0.2.1; echo status \$?"
done
for each in "${connected[@]}"; do
    port=$((port + 2))
    guest+="; echo as server: $each; timeout $((2 * patience)) $(server_of "$each") $(at_port "$each" $((port - 1))); echo status \$?"
    guest+="; echo as client: $each; again timeout $((patience / 2)) $(client_of "$each" 192.0.2.3) $(at_port "$each" $port); echo status \$?"
done
"${in[@]}" "$rxe/rxe-guest" --tap tap0 --timeout $((12 * patience)) --run "$guest" >"$work/guest" 2>&1 &
machine=$!

# ours ARGUMENT...: a program of ours on the wire to the guest.
ours() { bounded "${in[@]}" "$run" --port net_af_packet0,iface=w0 --address 192.0.2.3 -- "$@" </dev/null; }
answers() { "${in[@]}" ping -c 1 -W 1 192.0.2.2 >/dev/null; }
eventually_by $machine answers
port=18600
for each in "${cases[@]}"; do
    read -ra words <<<"$(with_gid ${each%% *} 3 ${each#* })"
    port=$((port + 1))
    for ((try = 0; try < patience; ++try)); do # the guest may still be at its program before
        ours "${words[@]}" -p $port 192.0.2.2 >"$work/words" 2>&1
        status=$?
        [ $status != 0 ] && grep -qi "couldn't connect\|connection refused" "$work/words" || break
        sleep 1
    done
    check "${words[0]} ${words[*]:3}, Linux is the server: our exit status" 0 $status || cat "$work/words"
    port=$((port + 1))
    ours "${words[@]}" -p $port >"$work/words" 2>&1
    check "${words[0]} ${words[*]:3}, we are the server: our exit status" 0 $? || cat "$work/words"
done
for each in "${connected[@]}"; do
    port=$((port + 1))
    for ((try = 0; try < patience; ++try)); do
        ours $(client_of "$each" 192.0.2.2) $(at_port "$each" $port) >"$work/words" 2>&1
        status=$?
        [ $status != 0 ] && grep -qi "reject\|unreachable\|timed out\|CM event bl blka 8" "$work/words" || break
        sleep 1
    done
    check "$each, Linux is the server: our exit status" 0 $status || cat "$work/words"
    port=$((port + 1))
    # perftest's server listens anew for the second connection. A client that asks before that dies, or both wait for ever:
    # each try has a bound at both ends.
    for try in 1 2 3 4 5 6; do
        ours timeout $((patience / 3)) $(server_of "$each") $(at_port "$each" $port) >"$work/words" 2>&1
        status=$?
        [ $status = 124 ] || break
    done
    check "$each, we are the server: our exit status" 0 $status || cat "$work/words"
done
wait_for_end $machine "the end of the guest"
check "Linux's ends of all" "$(yes "status 0" | head -$((2 * (${#cases[@]} + ${#connected[@]}))))" "$(grep ^status "$work/guest" | tr -d '\r')" || cat "$work/guest"
check "no byte differs at Linux's ends" "" "$(grep 'invalid data' "$work/guest")"
finish
