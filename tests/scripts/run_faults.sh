#!/usr/bin/env bash
# Bad input and faults under weftio-run: wrong commands, memory that goes, processes that fork, exec, exit and die.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "faults under weftio-run"
needs_file /usr/include/infiniband/verbs.h libibverbs-dev "faults under weftio-run"
work=$(mktemp -d)
wire=faults-$$ other='' client=''
trap 'end_all; rm -rf "$work"; rm -f /dev/shm/weftio-*-$wire*' EXIT

# passes WHAT PROGRAM ARGUMENT...: it finds nothing wrong.
passes() {
    local what=$1
    shift
    bounded "$run" --wire "$wire" -- "$work/$1" "${@:2}" >"$work/out" 2>"$work/words"
    check "$what" "0 0 checks failed" "$? $(cat "$work/out")" || cat "$work/words"
}

c_program bad_commands -libverbs
c_program faults -libverbs -lpthread
c_program deaths -libverbs
c_program opens_library -ldl
passes "wrong commands" bad_commands
passes "memory that is unmapped under a key, and the program's own handler" faults unmapped
passes "children" faults forks
passes "descriptors that are closed early" faults early
passes "several contexts in several threads" faults threads
passes "libibverbs is opened by the program" opens_library
passes "an exit with everything open" faults leave_open
check "nothing is left of the wire" "" "$(ls /dev/shm | grep -F "$wire")"
passes "another program in its place, with everything open" faults exec
passes "create and destroy" faults cycles
sed 's/^/    /' "$work/words"

# Two processes with one address.
mkfifo "$work/hold"
"$run" --wire "$wire" --address 10.9.9.9 -- sh -c 'cd /dev/infiniband && echo "in" && read _' <"$work/hold" >"$work/first" 2>&1 &
other=$!
exec 9>"$work/hold"
is_in() { grep -q in "$work/first"; }
eventually_by $other is_in
"$run" --wire "$wire" --address 10.9.9.9 -- ls /dev/infiniband >"$work/out" 2>"$work/words"
check "an address that another process has" "error: weftio: rdma_device: port wire:$wire: process $other already has the address \
10.9.9.9 on this wire; use another address" "$(grep weftio: "$work/words")"
exec 9>&-
wait_for_end $other
other=''
check "an address that another process had" uverbs0 "$("$run" --wire "$wire" --address 10.9.9.9 -- ls /dev/infiniband 2>&1 | grep -v rdma_cm)"

# A full /dev/shm.
full='mount --rbind "$0" /mnt && mount -t tmpfs -o size=1500k tmpfs /dev/shm && exec /mnt/apps/weftio-run --wire "$1" -- ls /dev/infiniband'
if unshare -rm true 2>/dev/null; then
    unshare -rm sh -c "$full" "$build" "$wire" >"$work/out" 2>"$work/words"
    check "a full /dev/shm: no devices" "" "$(cat "$work/out")"
    check_has "a full /dev/shm: sentence" "port wire:$wire: /dev/shm has no space for 1024 KiB (No space left on device); remove files there" \
        "$(cat "$work/words")"
else
    echo "not checked: a full /dev/shm (no namespace of mounts)"
fi

# Others on the wire are undisturbed.
if command -v ibv_rc_pingpong >/dev/null; then
    "$run" --wire "$wire" -- ibv_rc_pingpong -g 0 -c -n 3000 -p 18650 >"$work/server" 2>&1 &
    other=$!
    listens() { awk '$2 ~ ":48DA$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
    eventually_by $other listens
    "$run" --wire "$wire" -- ibv_rc_pingpong -g 0 -c -n 3000 -p 18650 localhost >"$work/client" 2>&1 &
    client=$!
fi
passes "peers that are killed" deaths
grep "heard of it" "$work/words"
if [ -n "$other" ]; then
    wait_for_end $client
    check "others are undisturbed: exit status" 0 $?
    wait_for_end $other
    check "others are undisturbed: exit status" 0 $?
    check "others are undisturbed: data" "" "$(grep invalid "$work/client" "$work/server")"
    other=''
else
    echo "not checked: others on the wire (ibverbs-utils is not installed)"
fi
finish
