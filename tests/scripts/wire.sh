#!/usr/bin/env bash
# wire:NAME: RDMA between two processes over a wire in shared memory, as root and as nobody; processes that are killed; what is left.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
sample=$build/samples/rdma_client_server
work=$(mktemp -d)
chmod 755 "$work"
wire=weftio-test-$$
cleanup() {
    end_all
    rm -rf "$work" /dev/shm/weftio-*-$wire
}
trap cleanup EXIT
[ -d /dev/shm ] || skip "wires in shared memory: there is no /dev/shm"

for piece in 0 1 2 3 4 5 6 7; do
    [ $((piece / 2 % 2)) = 0 ] && kind=WRITE || kind=SEND
    printf 'Server: buffer %d, piece %d: %s with immediate value %d, bytes of 0x%02x\n' $((piece / 2)) $((piece % 2)) $kind $piece $((piece + 1))
done >"$work/expected"

# start ARGUMENT...: a server, whose TCP port is then in $port.
start() {
    : >"$work/server"
    ${as:-} "$sample" --listen 127.0.0.1:0 -n "wire:$wire" "$@" >"$work/server" 2>"$work/words" &
    server=$!
    eventually_by $server grep -q ^Listening "$work/server"
    port=$(grep -o 'TCP port [0-9]*' "$work/server" | tr -dc 0-9)
}
has_ended() { ! kill -0 $server 2>/dev/null; }
ended() { # WHAT STATUS
    eventually has_ended
    wait_for_end $server
    check "$1: the server's exit status" "$2" $? || cat "$work/words"
}

two() { # WHAT
    start
    said=$(bounded ${as:-} "$sample" --connect "127.0.0.1:$port" -n "wire:$wire" 2>&1)
    check "$1: the client's exit status" 0 $? || echo "$said"
    check "$1: what the client says" "Client: 4 of 4 buffers were ready; 8 pieces sent, 8 verified" "$said"
    ended "$1" 0
    check "$1: what came" "$(cat "$work/expected")" "$(grep ^Server "$work/server")"
    check "$1: nothing is left" "" "$(ls /dev/shm | grep -F "$wire")"
}
two "two processes"
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null &&
    setpriv --reuid=nobody --clear-groups test -x "$sample"; then
    as="setpriv --reuid=nobody --clear-groups --no-new-privs env HOME=$work"
    two "as nobody"
    as=
fi

# A server that is killed amid the traffic of a client: its place is free again, and the last one removes the file.
start --count 200000
"$sample" --connect "127.0.0.1:$port" -n "wire:$wire" >"$work/client" 2>&1 &
client=$!
lane_is_there() { [ "$(stat -c %b "/dev/shm/weftio-$(id -u)-$wire" 2>/dev/null || echo 0)" -gt 2048 ]; }
eventually_by $client lane_is_there
kill -KILL $server
{ wait_for_end $server; } 2>/dev/null
{ wait_for_end $client; } 2>/dev/null
check "the server is killed: the client's exit status" 4 $?
check_has "the server is killed: the client's sentence" "the peer closed the connection; check the peer" "$(tail -1 "$work/client")"
check "the server is killed: nothing is left" "" "$(ls /dev/shm | grep -F "$wire")"

said=$("$sample" -n wire:a/b 2>&1)
check "a name with a slash: exit status" 4 $?
check_has "a name with a slash: sentence" "port wire:a/b: a wire's name may have only letters, digits and . _ -" "$said"
finish
