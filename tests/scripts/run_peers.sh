#!/usr/bin/env bash
# Peers of librdmacm's programs that end without a word, addresses that nobody has, requests that nobody has room for, and listeners of one
# port: below weftio-run, on one wire.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "peers under weftio-run"
needs_file /usr/include/rdma/rdma_cma.h librdmacm-dev "peers under weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work" /dev/shm/weftio-*peers-$$*' EXIT
weftio=("$run" --wire peers-$$ --)
c_program steps -lrdmacm -libverbs
declare -A process=()

# start NAME STEP...: a program in the background, whose output is in $work/NAME.
start() {
    "${weftio[@]}" "$work/steps" "${@:2}" >"$work/$1" 2>&1 </dev/null &
    process[$1]=$!
}

# Its number is that of weftio-run, which becomes the program or has it as a child.
end_now() {
    local each
    for each in $(family_of "${process[$1]}"); do kill -KILL "$each" 2>/dev/null; done
    wait "${process[$1]}" 2>/dev/null
    unset "process[$1]"
}

end_all() {
    local each
    for each in "${!process[@]}"; do end_now "$each"; done
}

# said NAME LINE: it has written the line.
said() { grep -qx -- "$2" "$work/$1"; }
says() { eventually_by "${process[$1]}" said "$1" "$2"; }
listens() { compgen -G "/dev/shm/weftio-ports-$EUID-wire-$EUID-peers-$$/*-$1" >/dev/null; }

# ended NAME: waits until it has ended. What has no end by then is killed, and lacks output.
ended() {
    is_over() { ! kill -0 "${process[$1]}" 2>/dev/null; }
    within_patience is_over "$1"
    end_now "$1"
}

# connected: a server and a client with a connection between them.
server=(create bind=0.0.0.0/7301 listen=4 event accept event)
client=(create resolve=127.0.0.1/7301 event route event connect event)
connected() {
    start server "${server[@]}" "$@"
    eventually_by "${process[server]}" listens 7301
    start client "${client[@]}" establish "${of_client[@]}"
    says server "RDMA_CM_EVENT_ESTABLISHED 0"
}

disconnected=$'RDMA_CM_EVENT_CONNECT_REQUEST 0 at 0\nRDMA_CM_EVENT_ESTABLISHED 0\nRDMA_CM_EVENT_DISCONNECTED 0\nRDMA_CM_EVENT_TIMEWAIT_EXIT 0'
asked=$'RDMA_CM_EVENT_ADDR_RESOLVED 0\nRDMA_CM_EVENT_ROUTE_RESOLVED 0'

of_client=(wait)
connected event event
end_now client
ended server
check "a client is killed: the server's events" "$disconnected" "$(cat "$work/server")"

of_client=(until="$work/connected" exec)
connected event event
touch "$work/connected"
ended server
check "a client calls exec(): the server's events" "$disconnected" "$(cat "$work/server")"
end_now client

of_client=(event event)
connected wait
end_now server
ended client
check "a server is killed: the client's events" \
    "$asked"$'\nRDMA_CM_EVENT_CONNECT_RESPONSE 0\nRDMA_CM_EVENT_DISCONNECTED 0\nRDMA_CM_EVENT_TIMEWAIT_EXIT 0' "$(cat "$work/client")"

# A request that the server thinks about for longer than anybody waits for a test: the client has its MRA.
start server "${server[@]:0:4}" wait
eventually_by "${process[server]}" listens 7301
start client "${client[@]}" quiet=600
says server "RDMA_CM_EVENT_CONNECT_REQUEST 0 at 0"
sleep 2
end_now server
ended client
check "a server is killed that has not answered: the client's events" "$asked"$'\nRDMA_CM_EVENT_UNREACHABLE -110\nquiet' "$(cat "$work/client")"

# Who has resolved the address of a listener that is killed before it connects.
start server "${server[@]:0:4}" wait
eventually_by "${process[server]}" listens 7301
start client "${client[@]:0:5}" until="$work/killed" connect event
says client RDMA_CM_EVENT_ROUTE_RESOLVED\ 0
end_now server
touch "$work/killed"
ended client
check "a listener is killed before a client connects: the client's events" "$asked"$'\nRDMA_CM_EVENT_REJECTED 8' "$(cat "$work/client")"

# An address that nobody has: who waits for a short time is told before who has asked earlier and waits for long.
start client create resolve=198.18.77.77/7301/6000 create resolve=198.18.77.77/7301/100 event event
ended client
check "nobody has the address: the client's events" $'RDMA_CM_EVENT_ADDR_ERROR -110\nRDMA_CM_EVENT_ADDR_ERROR -110 of 0' \
    "$(cat "$work/client")"

# A backlog of one, and a program that does not read: the second client is served when the program reads.
start server create bind=0.0.0.0/7303 listen=1 until="$work/reads" event accept event event accept event
eventually_by "${process[server]}" listens 7303
full=(create resolve=127.0.0.1/7303 event route event connect)
start first "${full[@]}" event establish until="$work/never"
says first "RDMA_CM_EVENT_ROUTE_RESOLVED 0"
sleep 0.5
start client "${full[@]}" event establish until="$work/never"
says client "RDMA_CM_EVENT_ROUTE_RESOLVED 0"
sleep 0.5
touch "$work/reads"
ended server
request='RDMA_CM_EVENT_CONNECT_REQUEST 0 at 0' established='RDMA_CM_EVENT_ESTABLISHED 0'
check "a full backlog: the server's events" "$request"$'\n'"$request"$'\n'"$established"$'\n'"$established" \
    "$(sed 's/ of .*//' "$work/server" | sort)"
check "a full backlog: the second client's events" "$asked"$'\nRDMA_CM_EVENT_CONNECT_RESPONSE 0' "$(cat "$work/client")"
end_now first
end_now client

# listeners WHAT EXPECTED STEP...: what the steps write that make one or two listeners of port 7304.
listeners() {
    start server "${@:3}"
    ended server
    check "$1" "$2" "$(grep -v '^warning: weftio-run: rdma_bind_addr: port 7304 is in use by this process' "$work/server")"
}

in_use='/7304: Address already in use'
listeners "a listener at :: has IPv4, too" "bind=0.0.0.0$in_use" create bind=::/7304 listen=4 create bind=0.0.0.0/7304
listeners "so it finds the port of 0.0.0.0 taken" "bind=::$in_use" create bind=0.0.0.0/7304 listen=4 create bind=::/7304
listeners "a listener at :: with AFONLY leaves IPv4 to others" "" \
    create afonly=1 bind=::/7304 listen=4 create bind=0.0.0.0/7304 listen=4
listeners "options of a listener stay as they are" $'afonly=1: Invalid argument\nreuse=1: Invalid argument' \
    create bind=::/7304 listen=4 afonly=1 reuse=1

# asks ADDRESS: what a client is told that connects to the port there.
asks() {
    start client create resolve="$1/7304" event route event connect event
    ended client
    tail -n 1 "$work/client"
}
refused='RDMA_CM_EVENT_REJECTED 8' served='RDMA_CM_EVENT_CONNECT_RESPONSE 0'
start server create bind=0.0.0.0/7304 listen=4 event accept wait
eventually_by "${process[server]}" listens 7304
check "0.0.0.0 takes no IPv6" "$refused" "$(asks ::1)"
check "0.0.0.0 takes IPv4" "$served" "$(asks 127.0.0.1)"
end_now server
start server create afonly=1 bind=::/7304 listen=4 event accept wait
eventually_by "${process[server]}" listens 7304
check ":: with AFONLY takes no IPv4" "$refused" "$(asks 127.0.0.1)"
check ":: with AFONLY takes IPv6" "$served" "$(asks ::1)"
end_now server
for address in 127.0.0.1 ::1; do
    start server create bind=::/7304 listen=4 event accept wait
    eventually_by "${process[server]}" listens 7304
    check ":: takes $address" "$served" "$(asks $address)"
    end_now server
done
# Of two processes, each has a family.
start server create afonly=1 bind=::/7304 listen=4 event accept wait
start first create bind=0.0.0.0/7304 listen=4 event accept wait
both_listen() { [ "$(compgen -G "/dev/shm/weftio-ports-$EUID-wire-$EUID-peers-$$/*-7304" | wc -l)" = 2 ]; }
eventually_by "${process[first]}" both_listen
check "IPv4 and IPv6 of one port, in two processes" "$served $served" "$(asks 127.0.0.1) $(asks ::1)"
says server "RDMA_CM_EVENT_CONNECT_REQUEST 0 at 0"
says first "RDMA_CM_EVENT_CONNECT_REQUEST 0 at 0"
end_now first
end_now server
finish
