#!/usr/bin/env bash
# Programs of others that connect by librdmacm, below weftio-run: two processes on one wire.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "connections under weftio-run"
command -v rping >/dev/null || skip "connections under weftio-run: install rdmacm-utils"
work=$(mktemp -d) server=''
trap '[ -z "$server" ] || kill $server 2>/dev/null; rm -rf "$work" /dev/shm/weftio-*connections-$$*' EXIT
weftio=("$run" --wire connections-$$ -- timeout -k 1 60)

# listens PORT [UID [WIRE]]: whether a process of the wire has the port, in any port space.
listens() { compgen -G "/dev/shm/weftio-ports-${2:-$EUID}-wire-${2:-$EUID}-${3:-connections-$$}/*-$1" >/dev/null; }

# both PORT CLIENT...: the server `of_server`, and a client; sets `status` and `other`.
both() {
    local port=$1
    shift
    status=0 other=0
    "${weftio[@]}" "${of_server[@]}" >"$work/server" 2>&1 </dev/null &
    server=$!
    eventually_by $server listens "$port"
    "${weftio[@]}" "$@" >"$work/client" 2>&1 </dev/null || status=$?
    [ $status = 0 ] || kill $server 2>/dev/null
    wait $server || other=$?
    server=''
}

# two WHAT PORT SERVER... -- CLIENT...: both end well. perftest's server listens anew for its second connection, and its client may ask
# before that, is rejected, and dies of it.
two() {
    local what=$1 port=$2 of_server=() status other try
    shift 2
    while [ "$1" != -- ]; do of_server+=("$1"); shift; done
    shift
    for try in 1 2 3; do
        both "$port" "$@"
        [[ $1 == ib_* ]] && grep -q RDMA_CM_EVENT_REJECTED "$work/client" || break
    done
    check "$what: exit statuses" "0 0" "$status $other"
    [ $status$other = 00 ] || tail -n 5 "$work/server" "$work/client"
}

two "rping" 7174 rping -s -C 20 -V -- rping -c -a 127.0.0.1 -C 20 -V
two "rping, 65,535 bytes" 7174 rping -s -C 5 -V -S 65535 -- rping -c -a 127.0.0.1 -C 5 -V -S 65535
two "rping, IPv6" 7174 rping -s -a :: -C 5 -V -- rping -c -a ::1 -C 5 -V
two "ucmatose, 5 connections" 7471 ucmatose -c 5 -- ucmatose -c 5 -s 127.0.0.1
two "udaddy" 7174 udaddy -- udaddy -s 127.0.0.1
two "rdma_client" 7471 rdma_server -- rdma_client -s 127.0.0.1
two "rstream" 7471 rstream -S 64 -C 10 -- rstream -s 127.0.0.1 -S 64 -C 10
if command -v ib_write_bw >/dev/null; then
    two "ib_write_bw -R" 18515 ib_write_bw -R -F -n 200 -- ib_write_bw -R -F -n 200 127.0.0.1
    two "ib_send_lat -R -c UD" 18515 ib_send_lat -R -F -c UD -n 100 -- ib_send_lat -R -F -c UD -n 100 127.0.0.1
else
    echo "not checked: perftest (not installed)"
fi

# A port has one owner; one that has ended, even by SIGKILL, has none.
"${weftio[@]}" rping -s -P >"$work/server" 2>&1 </dev/null &
server=$!
eventually_by $server listens 7174
"${weftio[@]}" rping -s -C 1 >"$work/second" 2>&1 </dev/null
check "a second server: exit status" 255 $?
check_has "a second server: why" "rdma_bind_addr: Address already in use" "$(cat "$work/second")"
check_has "a second server: who" "port 7174 is in use by the process with the address 198.18." "$(cat "$work/second")"
for round in 1 2 3; do
    "${weftio[@]}" rping -c -a 127.0.0.1 -C 3 -V >"$work/client" 2>&1 </dev/null
    check "rping -s -P, client $round" 0 $?
done
pkill -KILL -P $server
wait $server 2>/dev/null
server=''
"${weftio[@]}" rping -c -a 127.0.0.1 -C 1 >"$work/client" 2>&1 </dev/null
check "nobody listens: exit status" 255 $?
check_has "nobody listens: what the client says" "cma event RDMA_CM_EVENT_REJECTED, error 8" "$(cat "$work/client")"
"${weftio[@]}" rping -c -a 198.18.77.77 -C 1 >"$work/client" 2>&1 </dev/null
check_has "no such host: what the client says" "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110" "$(cat "$work/client")"
two "rping, after the port's owner was killed" 7174 rping -s -C 5 -V -- rping -c -a 127.0.0.1 -C 5 -V

# A link-local address of the wire, without the interface that Linux wants with one, and with it.
for interface in "" %lo; do
    "${weftio[@]}" rping -s -a :: -C 5 -V >"$work/server" 2>&1 </dev/null &
    server=$!
    eventually_by $server listens 7174
    address=$("$run" --show "$(pgrep -P $server)" | sed -n '1s/.*\(fe80:[^,]*\).*/\1/p')
    "${weftio[@]}" rping -c -a "$address$interface" -C 5 -V >"$work/client" 2>&1 </dev/null
    check "rping, $address$interface: exit status" 0 $?
    wait $server
    server=''
done

# One port of 0.0.0.0 and of [::], a listener for each.
if [ -f /usr/include/rdma/rdma_cma.h ]; then
    c_program listeners -lrdmacm -libverbs
    for order in "4 6" "6 4"; do
        "${weftio[@]}" "$work/listeners" 7474 $order >"$work/server" 2>&1 </dev/null &
        server=$!
        eventually_by $server listens 7474
        sleep 0.3
        "${weftio[@]}" rping -c -a 127.0.0.1 -p 7474 -C 1 >"$work/client" 2>&1 </dev/null
        check_has "listeners of $order: the client is refused by the program" "RDMA_CM_EVENT_REJECTED, error 28" "$(cat "$work/client")"
        wait $server
        check "listeners of $order: the one of IPv4 is asked" 0 $?
        server=''
    done
    c_program manager_commands
    "${weftio[@]}" "$work/manager_commands"
    check "commands that librdmacm falls back to" 0 $?
    c_program manager_lives -lrdmacm -libverbs
    "${weftio[@]}" "$work/manager_lives" cancel
    check "a thread that waits for an event is cancelled" 0 $?
    child=$("${weftio[@]}" "$work/manager_lives" fork 7476)
    kill -0 "$child"
    check "a child of fork() is there" 0 $?
    "${weftio[@]}" "$work/manager_lives" bind 7476
    check "a port whose owner has left a child of fork()" 0 $?
    kill "$child"
    "$run" --wire connections-$$ -- "$work/manager_lives" small 7476 2>"$work/client"
    check "a port without files, nor standard error: EFBIG" 27 $?
    "$run" --wire connections-$$ -- "$work/manager_lives" small 7476 2> >(cat >"$work/client")
    check "a port without files: EFBIG" 27 $?
    wait $!
    check_has "a port without files: why" "weftio-run: rdma_bind_addr: cannot write /dev/shm/weftio-ports-$EUID-wire-$EUID-connections-$$/0106-7476, \
which would say who has the port: File too large; raise the file size limit of this process with \"ulimit -f unlimited\"" "$(cat "$work/client")"

    # Wires whose names differ in punctuation only, and wires of two users, share no ports.
    "$run" --wire connections-$$.x -- timeout -k 1 60 rping -s -P >"$work/server" 2>&1 </dev/null &
    server=$!
    eventually_by $server listens 7174 "$EUID" connections-$$.x
    for name in connections-$$-x connections-$$_x; do
        "$run" --wire $name -- "$work/manager_lives" bind 7174
        check "the port of wire connections-$$.x, on wire $name" 0 $?
    done
    kill $server
    wait $server 2>/dev/null
    nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp)
    if (cd / && "${nobody[@]}" test -x "$run") 2>/dev/null; then
        (cd / && exec "${nobody[@]}" "${weftio[@]}" rping -s -P) >"$work/server" 2>&1 </dev/null &
        server=$!
        eventually_by $server listens 7174 "$(id -u nobody)"
        "${weftio[@]}" "$work/manager_lives" bind 7174
        check "the port of another user's wire" 0 $?
        kill $server
        wait $server 2>/dev/null
        (cd / && "${nobody[@]}" "$run" ls /dev/infiniband) >/dev/null
    else
        echo "not checked: wires of two users (needs root, and a build that others can read)"
    fi
    server=''
    "$run" ls /dev/infiniband >/dev/null
    check "what ended processes leave" "" "$(ls -d /dev/shm/weftio-ports-*connections-$$* 2>/dev/null)"
else
    echo "not checked: two listeners of a port, cancelled threads, children (no rdma_cma.h: install librdmacm-dev)"
fi

# Programs of sockets, by librspreload, which is loaded before or behind ours.
rsockets=(/usr/lib/*/rsocket/librspreload.so)
for order in "\$LD_PRELOAD:${rsockets[0]}" "${rsockets[0]}:\$LD_PRELOAD"; do
    [ -f "${rsockets[0]}" ] || { echo "not checked: rsockets (no librspreload)"; break; }
    c_program hello
    two "hello and curl over rsockets, $order" 5305 sh -c "LD_PRELOAD=$order exec $work/hello 5305" -- \
        sh -c "LD_PRELOAD=$order exec curl -sS -m 20 http://127.0.0.1:5305/"
    check "curl over rsockets: what it got" hello "$(cat "$work/client")"
    command -v iperf3 >/dev/null || { echo "not checked: iperf3 (not installed)"; continue; }
    two "iperf3 over rsockets, $order" 5301 sh -c "LD_PRELOAD=$order exec iperf3 -s -1 -p 5301" -- \
        sh -c "LD_PRELOAD=$order exec iperf3 -c 127.0.0.1 -p 5301 -n 1M"
    check "iperf3 over rsockets: data has arrived" 1 "$(grep -cE '(1024 KBytes|1\.00 MBytes) .*receiver' "$work/client")"
done

if command -v cmtime >/dev/null; then
    "${weftio[@]}" cmtime >"$work/server" 2>&1 </dev/null &
    server=$!
    eventually_by $server listens 7471
    "${weftio[@]}" cmtime -s 127.0.0.1 -c 200 >"$work/client" 2>&1 </dev/null
    check "cmtime, 200 connections: exit status" 0 $?
    check_has "cmtime, 200 connections: all steps" "destroy      :" "$(cat "$work/client")"
    kill $server
    wait $server 2>/dev/null
    server=''
fi
if command -v mckey >/dev/null; then
    "${weftio[@]}" mckey -m 239.1.2.3 -c 2 >"$work/server" 2>&1 </dev/null &
    server=$!
    # Datagrams of before the receiver has joined are nobody's: the sender is repeated until the receiver has its two.
    received() { "${weftio[@]}" mckey -m 239.1.2.3 -s -c 2 >"$work/client" 2>&1 </dev/null; ! kill -0 $server 2>/dev/null; }
    eventually received
    wait $server
    check "mckey: the receiver" 0 $?
    server=''
fi
finish
