#!/usr/bin/env bash
# UCX, and MPI on UCX, under weftio-run: puts, gets, messages, streams and atomics of two processes, whose data they compare.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "UCX under weftio-run"
needs_file /usr/include/ucp/api/ucp.h libucx-dev "UCX under weftio-run"
work=$(mktemp -d)
server=''
c_program ucp -lucp -lucs
here=$(realpath "$here")
trap '[ -z "$server" ] || kill -KILL $server; rm -rf "$work"' EXIT
cd "$work" || exit 1
wire=ucx-$$
export UCX_ERROR_SIGNALS='' UCX_WARN_UNUSED_ENV_VARS=n

# data WHAT OPTIONS_OF_WEFTIO_RUN COMMAND...: a program that says so when all data is right.
data() {
    # shellcheck disable=SC2086
    bounded "$run" --wire $wire $2 -- "${@:3}" >out 2>&1
    check "$1" "0 all data is right" "$? $(grep -v '^\[.*UCX  INFO' out | tail -5)" || cat out
}

for transports in rc_x,ud_x rc_v,ud_v rc_x,ud_v ud_x ud_v; do
    UCX_TLS=$transports,self data "UCP by $transports" "" ./ucp
done
data "UCP by what it chooses" "" ./ucp
UCX_TLS=rc_x,ud_x,self WEFTIO_RUN_DOORBELL_BYTES=64 data "UCP by rc_x,ud_x, doorbells of 64 bytes" "" ./ucp
UCX_TLS=rc_x,ud_x,self data "UCP by rc_x,ud_x, one frame in a hundred lost" "--loss 0.01,3" ./ucp
UCX_TLS=rc_x,ud_x,self data "UCP by rc_x,ud_x, all packets to a file" "--dump $work/packets.pcapng" ./ucp

# UCX patches mmap(), munmap() and others when it starts, in the libraries that are there then. weftio-run puts its own first.
hooks=$(ldconfig -p | awk '$1 == "libucm.so.0" { print $NF; exit }')
[ -n "$hooks" ] || hooks=libucm.so.0
UCX_TLS=rc_x,ud_x,self LD_PRELOAD=$hooks data "UCP, libucm preloaded behind weftio-run's library" "" ./ucp
for mode in bistro reloc; do
    # shellcheck disable=SC2016
    UCX_TLS=rc_x,ud_x,self UCX_MEM_MMAP_HOOK_MODE=$mode data "UCP, libucm preloaded before it, patched by $mode" "" \
        env hooks="$hooks" bash -c 'LD_PRELOAD=$hooks:$LD_PRELOAD exec ./ucp'
done

# Shows which lanes UCX has chosen.
UCX_TLS=rc,self UCX_LOG_LEVEL=info bounded "$run" --wire $wire -- ./ucp >out 2>&1
check_has "UCX prefers rc_mlx5" "rc_mlx5/mlx5_0:1" "$(cat out)"

# hello PROGRAM OPTION...: an example of UCX, which compares a string itself.
hello() {
    cc -w -o hello "$examples/$1.c" -lucp -luct -lucs || exit 1
    port=$((port + 1))
    "$run" --wire $wire -- ./hello "${@:2}" -p $port >server 2>&1 &
    server=$!
    eventually_by $server listens $port
    bounded "$run" --wire $wire -- ./hello "${@:2}" -p $port -n 127.0.0.1 >client 2>&1
    check "$1 ${*:2}" 0 $? || cat client
    wait_for_end $server "the server of $1"
    check "$1 ${*:2}, its server" 0 $? || cat server
    server=''
}
listens() { awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }

port=$((20000 + RANDOM % 10000))
examples=/usr/share/doc/libucx-dev/examples
if [ -f $examples/ucp_hello_world.c ]; then
    UCX_TLS=rc,self hello ucp_hello_world
    for transport in rc_verbs rc_mlx5 ud_verbs ud_mlx5; do
        hello uct_hello_world -d mlx5_0:1 -t $transport
    done
else
    echo "not checked: ucp_hello_world, uct_hello_world ($examples is not there)"
fi

if command -v io_demo >/dev/null; then
    # What it listens for is by TCP; the data goes by RDMA. A message that UCX 1.13 begins while its connection moves from TCP to RDMA
    # is sent whole if TCP could do so. Between 236 bytes and 8 KiB rc_mlx5 cannot ("Invalid am_short length"), so there are none here.
    export UCX_TLS=rc,tcp,self UCX_SOCKADDR_TLS_PRIORITY=tcp
    sizes="-r 128 -d 16384:262144"
    for api in "" -A; do
        port=$((port + 1))
        : >server
        # shellcheck disable=SC2086
        "$run" --wire $wire -- io_demo -q $api $sizes -p $port >server 2>&1 &
        server=$!
        eventually_by $server grep -q "started listener" server
        # shellcheck disable=SC2086
        bounded "$run" --wire $wire -- io_demo -q $api $sizes -p $port -o read,write -i 100 -w 4 -c 2 127.0.0.1 >client 2>&1
        check "io_demo -q${api:+ $api}: read and write, checked" "0 1" "$? $(grep -c "Client exit with status 'OK'" client)" || tail -20 client server
        kill -KILL $server
        wait $server 2>/dev/null
        server=''
    done
    unset UCX_TLS UCX_SOCKADDR_TLS_PRIORITY
else
    echo "not checked: io_demo (ucx-utils is not installed)"
fi

if command -v mpicc.openmpi >/dev/null && command -v mpirun.openmpi >/dev/null; then
    mpicc.openmpi -O1 -Wall -o mpi "$here/mpi.c" || exit 1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ranks=(mpirun.openmpi --oversubscribe --mca pml ucx --mca osc ucx -n)
    for binding in "" "--bind-to none"; do
        # shellcheck disable=SC2086
        UCX_TLS=rc,self data "Open MPI, two ranks${binding:+, $binding}" "" "${ranks[@]}" 2 $binding ./mpi
    done
else
    echo "not checked: Open MPI (openmpi-bin and libopenmpi-dev are not installed)"
fi
finish
