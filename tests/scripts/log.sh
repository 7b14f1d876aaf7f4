#!/usr/bin/env bash
# The library's log in programs that set no sink of their own: silent, unless WEFTIO_LOG or --log asks for it.
set -uo pipefail
build=$1
. "$(dirname "$0")/checks.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sample=$build/samples/simple_receive replay=$build/apps/weftio-replay
[[ -x $replay ]] || replay=$(find "$build/apps" -name weftio-replay -type f | head -n 1)

# log_of COMMAND...: what it writes to standard error.
log_of() { bounded "$@" 2>&1 >/dev/null; }
levels_in() { sed -n 's/^\(debug\|info\|warning\|error\): .*/\1/p' <<<"$1" | sort -u | tr '\n' ' '; }

check "a sample is silent" "" "$(log_of env -u WEFTIO_LOG "$sample")"
check "so it is when WEFTIO_LOG is empty" "" "$(log_of env WEFTIO_LOG= "$sample")"
check_has "WEFTIO_LOG=info shows DPDK's words" "info: dpdk: EAL: " "$(log_of env WEFTIO_LOG=info "$sample")"
check "WEFTIO_LOG=error leaves out what is less" "" "$(levels_in "$(log_of env WEFTIO_LOG=error "$sample")")"
check_has "an unknown level is named" "weftio: log level loud: no such level; name one of debug, info, warning, error" \
    "$(log_of env WEFTIO_LOG=loud "$sample")"

capture=$(dirname "$0")/../../lib/src/dpdk/builtin.pcap
send=("$replay" -q -t "$capture" null)
check "weftio-replay is silent" "" "$(log_of env -u WEFTIO_LOG "${send[@]}")"
check_has "--log info shows DPDK's words" "info: dpdk: EAL: " "$(log_of env -u WEFTIO_LOG "${send[@]}" --log info)"
check "--log wins over WEFTIO_LOG" "" "$(levels_in "$(log_of env WEFTIO_LOG=debug "${send[@]}" --log error)")"
finish
