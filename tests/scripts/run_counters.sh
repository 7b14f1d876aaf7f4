#!/usr/bin/env bash
# Counters of the port under weftio-run: in /sys, live, with the names and units of mlx5; what perftest reports of them.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "counters under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "counters under weftio-run"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program counters -libverbs
wire=counters-$$

bounded "$run" --wire $wire -- "$work/counters" >"$work/out" 2>"$work/log"
check "counters in /sys" "0 0 checks failed" "$? $(cat "$work/out")"
if ! grep -q report-counters <(ib_write_bw --help 2>&1); then
    echo "not checked: ib_write_bw -W (no perftest)"
    finish
fi

# 1,000 writes of 65,536 bytes in packets of 4,096: 16,000 packets with headers of at least 58 bytes.
counters=counters/port_xmit_data,counters/port_rcv_data,counters/port_xmit_packets,counters/port_rcv_packets
listens() { awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
port=$((20000 + $$ % 10000))
write_bw() { "$run" --wire $wire -- ib_write_bw -F -n 1000 -m 4096 -W $counters -p $port "$@"; }
write_bw >"$work/server" 2>&1 </dev/null &
server=$!
eventually_by $server listens $port
bounded write_bw localhost >"$work/client" 2>&1 </dev/null
check "ib_write_bw -W: the client's exit status" 0 $? || cat "$work/client"
wait_for_end $server
check "ib_write_bw -W: the server's exit status" 0 $? || cat "$work/server"
count() { sed -n "s/.*counters\/$2=//p" "$work/$1"; }
for pair in "client xmit" "server rcv"; do
    read -r end direction <<<"$pair"
    words=$(count $end port_${direction}_data) packets=$(count $end port_${direction}_packets)
    check "$end: packets ($packets)" yes "$([ "$packets" -ge 16000 ] && [ "$packets" -lt 32000 ] && echo yes)"
    check "$end: words of 4 bytes ($words)" yes "$([ "$words" -ge 16616000 ] && [ "$words" -lt 33000000 ] && echo yes)"
done
check "what comes back are acknowledgments" yes "$([ "$(count client port_rcv_data)" -lt 1000000 ] && echo yes)"
finish
