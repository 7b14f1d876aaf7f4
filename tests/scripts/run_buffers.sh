#!/usr/bin/env bash
# What perftest's programs move under weftio-run is compared: they compare nothing, so a library of ours is preloaded that does.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
script=$(realpath "$0") build=$(realpath "$1")
needs_weftio_run "buffers of perftest"
command -v ib_write_bw >/dev/null || skip "buffers of perftest: install perftest"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "buffers of perftest"
if [ "${2:-}" != inside ]; then # TCP ports of its own
    as=(unshare --net)
    [ "$(id -u)" = 0 ] || as+=(--user --map-root-user)
    "${as[@]}" ip link set lo up 2>/dev/null || as=()
    exec "${as[@]}" bash "$script" "$build" inside
fi
ip link set lo up 2>/dev/null
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program check_buffers -shared -fPIC -ldl
listens() { awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
ended() { # ROLE PROGRAM...
    exec env CHECK_BUFFERS=$1 LD_PRELOAD="$work/check_buffers" "$run" --wire buffers-$$ -- "${@:2}" -F -n 200 -p $tcp_port </dev/null
}
halves() { grep -o 'check_buffers: .*' "$1" | sed 's/check_buffers: //' | tr '\n' ' '; }

# moves PROGRAM OPTIONS...: each end has two halves, its own and the peer's. perftest's sources lie in the first of the client, or the
# second of the server, which READ asks for.
tcp_port=18700
moves() {
    local source=client target=server came="65536 bytes as before 65536 bytes as sent "
    [[ $1 != ib_read* ]] || source=server target=client came="65536 bytes as sent 65536 bytes as before "
    tcp_port=$((tcp_port + 1))
    ended $([ $source = server ] && echo source || echo target) "$@" >"$work/server" 2>&1 &
    server=$!
    eventually_by $server listens $tcp_port
    bounded ended $([ $source = client ] && echo source || echo target) "$@" localhost >"$work/client" 2>&1
    check "$*: the client's exit status" 0 $? || cat "$work/client"
    wait_for_end $server
    check "$*: the server's exit status" 0 $? || cat "$work/server"
    check "$*: what lies in the $target" "$came" "$(halves "$work/$target")"
    check "$*: what lies in the $source" "65536 bytes as sent 65536 bytes as sent " "$(halves "$work/$source")"
}
moves ib_write_bw
moves ib_write_bw -m 256
moves ib_write_bw -c UC
moves ib_read_bw
moves ib_send_bw
finish
