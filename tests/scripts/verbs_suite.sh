#!/usr/bin/env bash
# Programs of others under weftio-run, with the options that people use: perftest, libibverbs' pingpongs, those of librdmacm ("connections"),
# UCX, pyverbs and its tests.
# Takes minutes, and is no part of `make test`. A table at its end says what worked, and why the others did not.
#
#   tests/scripts/verbs_suite.sh BUILD_DIR [PATTERN]     PATTERN: only what it matches, such as "ib_send|pingpong"
#
# Environment: WEFTIO_RUN_OPTIONS for weftio-run in place of a wire of its own, such as "--port iface:v0", or "--wire suite --loss 0.01,3".
# Exit status: 0 as expected, 1 something differs, 77 nothing to run.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
script=$(realpath "$0") here=$(realpath "$(dirname "$0")/../verbs") build=$(realpath "${1:?usage: verbs_suite.sh BUILD_DIR [PATTERN]}") pattern=${2:-.}
run=$build/apps/weftio-run
[ -x "$run" ] && [ -f "$build/lib/verbs/libweftio-verbs.so" ] || skip "programs under weftio-run: not built"
command -v ib_write_bw >/dev/null && command -v ibv_rc_pingpong >/dev/null || skip "install ibverbs-utils and perftest"
if [ -z "${WEFTIO_SUITE_INSIDE:-}" ]; then # TCP ports of its own, where the system allows it
    as=(unshare --net --mount)
    [ "$(id -u)" = 0 ] || as+=(--user --map-root-user)
    "${as[@]}" true 2>/dev/null || as=()
    WEFTIO_SUITE_INSIDE=1 exec "${as[@]}" bash "$script" "$build" "$pattern"
fi
ip link set lo up 2>/dev/null
work=$(mktemp -d)
server=''
trap 'end_all; rm -rf "$work" /dev/shm/weftio-*-suite-$$' EXIT
cd "$work" || exit 1
unset LD_PRELOAD SYSFS_PATH
read -r -a options <<<"${WEFTIO_RUN_OPTIONS:---wire suite-$$}"
limit=120 tcp_port=20000
weftio=("$run" "${options[@]}" -- timeout -k 1 $limit)

listens() { awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }

# row PROGRAM OPTIONS RESULT: one of the table; why an expected failure is none.
row() {
    local result=$3
    case $(cat client server 2>/dev/null) in *'stale key'*) result="a stale registration is told: $result" ;; esac # none of them has one
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$result" "$seconds" >>table
    echo "$1 $2: $result ($seconds s)"
    case $result in ok | expected:*) ;; *) failures=$((failures + 1)) ;; esac
}

# why FILE...: the line of what programs said that says most.
why() { grep -hiE 'error|fail|unable|couldn|invalid|not supp|cannot|mismatch' "$@" | head -1 | tr '\t' ' ' | cut -c1-110; }

# Whether a program waits for ever, or fails, on a wire that loses frames: that of a service that loses messages; and ib_send_lat -e, which
# has one event channel for both sides, and takes the event of a receive for that of its send when the acknowledgment was lost.
loses() { [[ ${options[*]} == *--loss* && $* =~ -c\ U[CD]|ibv_u[cd]_|send_lat.*\ -e ]]; }

# two PROGRAM OPTIONS...: server and client on one wire. REFUSES in front: the words with which it is expected to fail.
two() {
    local refuses='' began=$EPOCHREALTIME status=0 other=0 result=ok
    [[ $1 != REFUSES=* ]] || { refuses=${1#REFUSES=}; shift; }
    [[ $* =~ $pattern ]] && ! loses "$@" || return
    tcp_port=$((tcp_port + 1))
    "${weftio[@]}" "$@" -p $tcp_port >server 2>&1 </dev/null &
    server=$!
    for _ in $(seq 100); do listens $tcp_port || ! kill -0 $server 2>/dev/null && break; sleep 0.05; done
    "${weftio[@]}" "$@" -p $tcp_port localhost >client 2>&1 </dev/null || status=$?
    [ $status = 0 ] || { sleep 0.3; kill $server 2>/dev/null; }
    wait $server || other=$?
    server=''
    [ $status$other = 00 ] || result="exit $status and $other: $(why client server)"
    if [ $status = 0 ] && grep -hq 'invalid data' client server; then result="wrong data"; fi
    [ -z "$refuses" ] || [[ $(cat client server) != *$refuses* ]] || result="expected: $refuses"
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
    row "$1" "${*:2}" "$result"
}

# one WHAT COMMAND...: a single program.
one() {
    local what=$1 refuses='' began=$EPOCHREALTIME status=0 result=ok
    shift
    [[ $1 != REFUSES=* ]] || { refuses=${1#REFUSES=}; shift; }
    [[ $what =~ $pattern ]] && ! loses "$what" || return
    "${weftio[@]}" "$@" >client 2>&1 </dev/null || status=$?
    [ $status = 0 ] || result="exit $status: $(why client)"
    [ -z "$refuses" ] || { [[ $(cat client) == *$refuses* ]] && result="expected: $refuses"; }
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
    row "${what%% *}" "${what#* }" "$result"
}

# connection [MORE...] PORT SERVER... -- CLIENT...: both connect by librdmacm. The client starts when the server has the port; PORT 0: after 2 s.
# MORE: ENDS, the server is told to end after its client; REFUSES=WORDS, as for two(). Skipped where the program is not installed.
connection() {
    local ports=/dev/shm/weftio-ports-$EUID-wire-$EUID-suite-$$
    [ -z "${WEFTIO_RUN_OPTIONS:-}" ] || ports='/dev/shm/weftio-ports-*'
    local ends='' refuses='' began status=0 other=0 result=ok of_server=() port words
    while :; do
        case $1 in ENDS) ends=yes ;; REFUSES=*) refuses=${1#REFUSES=} ;; *) break ;; esac
        shift
    done
    port=$1
    shift
    while [ "$1" != -- ]; do of_server+=("$1"); shift; done
    shift
    words="connections $*"
    [[ $words =~ $pattern ]] && ! loses "$words" || return
    command -v "${of_server[0]}" >/dev/null || { echo "not run: ${of_server[*]} (not installed)"; return; }
    began=$EPOCHREALTIME
    "${weftio[@]}" "${of_server[@]}" >server 2>&1 </dev/null &
    server=$!
    if [ "$port" = 0 ]; then sleep 2; else
        for _ in $(seq 200); do compgen -G "$ports/*-$port" >/dev/null || ! kill -0 $server 2>/dev/null && break; sleep 0.05; done
    fi
    "${weftio[@]}" "$@" >client 2>&1 </dev/null || status=$?
    if [ $status != 0 ] || [ -n "$ends" ]; then sleep 0.3; kill $server 2>/dev/null; fi
    wait $server || other=$?
    server=''
    [ $status$other = 00 ] || [ -n "$ends" -a $status = 0 ] || result="exit $status and $other: $(why client server)"
    [ -z "$refuses" ] || { [[ $(cat client server) == *$refuses* ]] && result="expected: $refuses"; }
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
    row "$1" "${*:2}" "$result"
}

connections() {
    local kind way each options preload=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so
    for each in "127.0.0.1 -C 50" "127.0.0.1 -C 5 -S 65535" "::1 -C 20"; do
        connection 7174 rping -s -a "$([ "${each%% *}" = ::1 ] && echo :: || echo 0.0.0.0)" ${each#* } -V -- rping -c -a $each -V
    done
    for options in "-c 20" "-c 20 -C 50 -S 1000 -t 8" "-m" "-P ib" "-f ip -p 7471"; do
        connection 7471 ucmatose $options -- ucmatose $options -s 127.0.0.1
    done
    connection 7471 ucmatose -f ipv6 -b ::1 -- ucmatose -f ipv6 -s ::1
    for options in "-c 20" "-C 30 -S 100 -t 8" "-p 0x0002"; do connection 7174 udaddy $options -- udaddy $options -s 127.0.0.1; done
    connection 7471 rdma_server -- rdma_client -s 127.0.0.1
    connection 7471 rdma_xserver -c r -- rdma_xclient -s 127.0.0.1 -c r
    connection REFUSES="the device has no XRC" 7471 rdma_xserver -c x -- rdma_xclient -s 127.0.0.1 -c x
    connection 0 mckey -m 239.1.2.3 -c 2 -- mckey -m 239.1.2.3 -s -c 2
    connection 0 mckey -m ff1e::77 -c 2 -- mckey -m ff1e::77 -s -c 2
    connection ENDS 7471 cmtime -- cmtime -s 127.0.0.1 -c 1000
    options="-I 10 -C 10 -S 64"
    for each in b n r v; do connection 7471 rstream $options -T $each -- rstream -s 127.0.0.1 $options -T $each; done
    connection 7471 rstream $options -f ipv6 -b ::1 -- rstream -s ::1 $options -f ipv6
    for each in a b n v; do connection 7471 riostream $options -T $each -- riostream -s 127.0.0.1 $options -T $each; done
    connection 7471 riostream -I 2 -C 10 -S all -- riostream -s 127.0.0.1 -I 2 -C 10 -S all
    head -c 1000000 /dev/urandom >copied.from
    connection ENDS 7427 rcopy -- rcopy copied.from 127.0.0.1:copied.to
    for kind in write read send atomic; do
        for way in bw lat; do
            for options in -R -z "-R -x 3" "-R -q 4" "-R -e"; do
                [[ $way$options == "lat-R -q 4" || $kind$options == "write-R -e" ]] ||
                    connection 18515 ib_${kind}_$way -F -n 100 $options -- ib_${kind}_$way -F -n 100 $options 127.0.0.1
            done
        done
    done
    for options in "bw -R -c UD" "bw -R -c UD -q 4" "bw -R -c UD -e" "lat -R -c UD" "bw -R --use-srq" "bw -R -b"; do
        connection 18515 ib_send_$options -F -n 100 -- ib_send_$options -F -n 100 127.0.0.1
    done
    connection REFUSES="UC is not supported in librdmacm" 18515 ib_send_bw -R -c UC -F -n 100 -- ib_send_bw -R -c UC -F -n 100 127.0.0.1
    for each in write read send; do
        # fio asks for no repeats where the peer has no receive: for sends, the server has more of them than the client sends at once.
        for kind in --thread ""; do
            options="$kind --ioengine=rdma --port=5400 --verb=$each --bs=64k --size=4m"
            connection 5400 fio --name=server $options --rw=read --iodepth=$([ $each = send ] && echo 64 || echo 8) -- \
                fio --name=client $options --rw=write --iodepth=8 --hostname=127.0.0.1
        done
    done
    connection ENDS 0 qperf -lp 19700 -- qperf 127.0.0.1 -lp 19700 -cm 1 -t 1 rc_bw rc_lat rc_rdma_write_bw rc_rdma_read_lat
    echo 'ofa-v2-cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""' >dat.conf
    export DAT_OVERRIDE=$work/dat.conf
    connection 0 dtest -P ofa-v2-cma -b 4096 -- dtest -P ofa-v2-cma -b 4096 -h 127.0.0.1
    connection 0 dtestcm -P ofa-v2-cma -c 5 -- dtestcm -P ofa-v2-cma -c 5 -h 127.0.0.1
    connection 0 dtestsrq -P ofa-v2-cma -- dtestsrq -P ofa-v2-cma -h 127.0.0.1
    connection ENDS 0 dapltest -T S -D ofa-v2-cma -- dapltest -T T -D ofa-v2-cma -s 127.0.0.1 -i 10 -t 1 -w 1 client SR 256 server SR 256
    for each in rc_v,ud_v rc_x,ud_x; do
        options="UCX_TLS=$each,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm"
        connection ENDS 1341 env $options io_demo -p 1341 -- env $options io_demo -i 50 -p 1341 127.0.0.1
    done
    for each in '$LD_PRELOAD:'$preload $preload':$LD_PRELOAD'; do # both orders
        for kind in iperf iperf3; do
            [ -f $preload ] && command -v $kind >/dev/null || { echo "not run: $kind over rsockets (not installed)"; continue; }
            connection ENDS 5301 sh -c "LD_PRELOAD=$each exec $kind -s -p 5301" -- sh -c "LD_PRELOAD=$each exec $kind -c 127.0.0.1 -p 5301 -n 1M"
        done
    done
}

# tgtd and libiscsi, both in user space. tgtd admits an initiator whose address and whose name were both bound.
iser() {
    local pattern=$pattern target=iqn.2026-01.test:disk ports=/dev/shm/weftio-ports-$EUID-wire-$EUID-suite-$$ url program control
    url="iscsi://127.0.0.1:3260/$target/1?iser" control=(tgtadm -C 7 --lld iser --op)
    [[ "connections iscsi-inq iscsi-readcapacity16" =~ $pattern ]] || return
    command -v tgtd >/dev/null && command -v iscsi-inq >/dev/null || { echo "not run: tgtd (not installed)"; return; }
    pattern=. # for one()
    export TGT_IPC_SOCKET=$work/tgtd
    truncate -s 16M disk
    "$run" "${options[@]}" -- tgtd -f -C 7 --iscsi portal=127.0.0.1:3266 --iser pool_sz_mb=64 >server 2>&1 </dev/null &
    server=$!
    for _ in $(seq 200); do compgen -G "$ports/*-3260" >/dev/null || ! kill -0 $server 2>/dev/null && break; sleep 0.05; done
    "${control[@]}" new --mode target --tid 1 -T $target
    "${control[@]}" new --mode logicalunit --tid 1 --lun 1 -b "$work/disk"
    "${control[@]}" bind --mode target --tid 1 -I ALL
    "${control[@]}" bind --mode target --tid 1 -Q suite
    for program in iscsi-inq iscsi-readcapacity16; do one "$program -i suite iscsi://...?iser" $program -i suite "$url"; done
    kill -KILL $server # it has targets, and ignores SIGTERM
    wait $server 2>/dev/null
    server=''
    unset TGT_IPC_SOCKET
}

perftest() {
    local kind size mtu
    for kind in write read send atomic; do
        two ib_${kind}_bw -F -n 500
        two ib_${kind}_lat -F -n 500
        two ib_${kind}_bw -F -n 200 -q 16
        two ib_${kind}_bw -F -n 100 -t 1
        two ib_${kind}_bw -F -n 160 --post_list=16
        two ib_${kind}_bw -F -n 200 -b
        for mtu in 256 512 1024 2048 4096; do two ib_${kind}_bw -F -n 100 -m $mtu; done
    done
    for kind in write send; do
        two ib_${kind}_bw -F -n 500 -s 64 -I 64
        two ib_${kind}_lat -F -n 500 -s 64 -I 64
        two ib_${kind}_bw -F -n 500 -c UC
        two ib_${kind}_lat -F -n 500 -c UC
    done
    for kind in write read send; do
        two ib_${kind}_bw -F -a -n 100
        two ib_${kind}_lat -F -a -n 100
        for size in 1 2 4095 4096 4097 1048576; do
            two ib_${kind}_bw -F -n 100 -s $size
            two ib_${kind}_lat -F -n 100 -s $size
        done
        two ib_${kind}_bw -F -D 1
    done
    two ib_send_bw -F -n 500 -e
    two ib_send_lat -F -n 500 -e
    two ib_send_bw -F -n 500 -r 1 -t 1
    two ib_read_bw -F -n 200 -o 1
    two ib_atomic_bw -F -n 200 -A CMP_AND_SWAP
    two ib_atomic_bw -F -n 200 -A FETCH_AND_ADD
    two ib_write_bw -F -n 2000 -Q 50
    two ib_write_bw -F -n 200 -x 1
    two ib_send_bw -F -n 500 --use-srq
    two ib_send_bw -F -n 500 --use-srq -q 8
    two ib_send_bw -F -n 500 --use-srq -c UC
    two ib_send_bw -F -n 500 --use-srq -b -e
    two ib_send_lat -F -n 500 --use-srq
    two ib_send_bw -F -n 500 -c UD
    two ib_send_bw -F -n 500 -c UD -b -x 3
    two ib_send_bw -F -n 500 -c UD -s 64 -I 64
    two ib_send_bw -F -n 160 -c UD --post_list=16
    two ib_send_bw -F -n 500 -c UD -e
    two ib_send_lat -F -n 500 -c UD
    two ib_send_lat -F -n 500 -c UD -x 1
}

# Both ends print a line each second until they are told to end.
forever() {
    [[ "ib_write_bw --run_infinitely" =~ $pattern ]] || return
    local began=$EPOCHREALTIME client result=ok
    "${weftio[@]}" ib_write_bw -F --run_infinitely -D 1 -p 19999 >server 2>&1 </dev/null &
    server=$!
    for _ in $(seq 100); do listens 19999 && break; sleep 0.05; done
    "${weftio[@]}" ib_write_bw -F --run_infinitely -D 1 -p 19999 localhost >client 2>&1 </dev/null &
    client=$!
    sleep 3
    kill -0 $client 2>/dev/null || result="the client has ended: $(why client server)"
    kill $client $server
    wait $client $server 2>/dev/null
    [ "$(grep -c '^ 65536' client)" -ge 1 ] || result="no line of results: $(why client server)"
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
    row ib_write_bw "--run_infinitely -D 1" "$result"
}

pingpongs() {
    local kind value
    two ibv_ud_pingpong -g 0 -c
    two ibv_ud_pingpong -g 1 -c -n 200
    two ibv_ud_pingpong -g 3 -c -n 200 -e
    for value in 1 2 1023 2048; do two ibv_ud_pingpong -g 0 -c -n 50 -s $value; done
    for kind in rc uc; do
        two ibv_${kind}_pingpong -g 0 -c
        two ibv_${kind}_pingpong -g 1 -c -n 200
        two ibv_${kind}_pingpong -g 0 -c -n 200 -e
        for value in 256 512 1024 2048 4096; do two ibv_${kind}_pingpong -g 0 -c -n 100 -m $value; done
        for value in 1 2 4095 4097 65536 1048576; do two ibv_${kind}_pingpong -g 0 -c -n 50 -s $value; done
        for value in 2 16 4000; do two ibv_${kind}_pingpong -g 0 -c -n 200 -r $value; done
    done
    two ibv_rc_pingpong -g 0 -c -n 200 -N
    two ibv_srq_pingpong -g 0 -c
    two ibv_srq_pingpong -g 1 -c -e
    for value in 1 2 64; do two ibv_srq_pingpong -g 0 -c -q $value; done
    for value in 256 4096; do two ibv_srq_pingpong -g 0 -c -n 200 -m $value; done
    for value in 1 4097 1048576; do two ibv_srq_pingpong -g 0 -c -n 50 -s $value; done
    for value in 16 4000; do two ibv_srq_pingpong -g 0 -c -n 200 -r $value; done
}

# Three pairs at once on one wire.
pairs() {
    [[ "ibv_rc_pingpong pairs" =~ $pattern ]] || return
    local began=$EPOCHREALTIME result=ok each processes=()
    for each in 1 2 3; do
        "${weftio[@]}" ibv_rc_pingpong -g 0 -c -n 1000 -p 1990$each >server.$each 2>&1 </dev/null &
        processes+=($!)
    done
    for each in 1 2 3; do
        for _ in $(seq 100); do listens 1990$each && break; sleep 0.05; done
        "${weftio[@]}" ibv_rc_pingpong -g 0 -c -n 1000 -p 1990$each localhost >client.$each 2>&1 </dev/null &
        processes+=($!)
    done
    for each in "${processes[@]}"; do wait $each || result="exit $?: $(why server.? client.?)"; done
    ! grep -q 'invalid data' server.? client.? || result="wrong data"
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
    row ibv_rc_pingpong "-g 0 -c, three pairs at once" "$result"
}

ucx() {
    command -v ucx_info >/dev/null || { seconds=0; row ucx_info - "expected: not installed"; return; }
    # Its mode "reloc" waits for itself in UCX's malloc(): dlsym() finds no sbrk() behind libucm, and allocates.
    local transports test
    one "ucx_info -d" ucx_info -d
    for transports in rc_v,ud_v rc_x,ud_x ud_v ud_x; do
        two env UCX_TLS=$transports,self timeout -k 5 30 ucx_perftest -t tag_lat -n 200
        two env UCX_TLS=$transports,self timeout -k 5 30 ucx_perftest -t tag_bw -n 200 -s 65536
        for test in ucp_am_bw ucp_put_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap stream_bw stream_lat; do
            two env UCX_TLS=$transports,self timeout -k 5 30 ucx_perftest -t $test -n 200 -s 8
        done
    done
    cc -O1 -o ucp "$here/ucp.c" -lucp -lucs 2>/dev/null || { seconds=0; row ucp.c - "expected: libucx-dev is not installed"; return; }
    for transports in rc_x,ud_x rc_v,ud_v rc_x,ud_v rc_v,ud_x ud_x ud_v; do
        one "ucp.c UCX_TLS=$transports,self" env UCX_TLS=$transports,self ./ucp
    done
}

# All data is compared. Ranks of one machine would use shared memory otherwise. Ranks of MPICH never yield: 16 on two cores take minutes.
mpi() {
    local kind count ranks weftio=("$run" "${options[@]}" -- timeout -k 1 500)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for kind in openmpi mpich; do
        mpicc.$kind -O1 -o mpi_$kind "$here/mpi.c" 2>/dev/null || { seconds=0; row mpi.c $kind "expected: $kind is not installed"; continue; }
        for count in 2 4 16; do
            ranks=(mpirun.$kind -n $count)
            [ $kind = mpich ] || ranks+=(--oversubscribe --mca pml ucx --mca osc ucx)
            one "mpi.c $kind, $count ranks" env UCX_TLS=rc,self "${ranks[@]}" ./mpi_$kind
        done
    done
}

# Two hosts, which are namespaces, each with two interfaces at one switch. A rank, or an end of a test, has an interface of its own;
# mpirun and its daemons, and what the ends tell each other, use the first interface of a host as Linux does.
two_hosts() {
    local hosts=(suite-$$-0 suite-$$-1) switch=suite-$$-switch host each test weftio made=yes
    local tests=(ib_{write,read,send,atomic}_{bw,lat}\ -F "ib_send_bw -F --use-srq" "ib_send_bw -F -c UD" "ib_write_bw -F -c UC -q 16" ibv_{rc,uc,ud,srq}_pingpong\ -g\ 0\ -c
        "ucx_perftest -t tag_lat" "ucx_perftest -t ucp_put_bw -s 65536") rows=("mpi.c openmpi, 2 ranks" "mpi.c openmpi, 4 ranks")
    [[ $(printf '%s on two hosts\n' "${tests[@]}" "${rows[@]}") =~ $pattern ]] || return
    { mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip netns add $switch; } 2>/dev/null || made=''
    ip -n $switch link add switch up type bridge mcast_snooping 0 2>/dev/null || made=''
    [ -n "$made" ] || { seconds=0; row "two" hosts "expected: no network namespaces here"; return; }
    for host in 0 1; do
        ip netns add ${hosts[host]} && ip -n ${hosts[host]} link set lo up
        for each in 0 1; do
            ip -n ${hosts[host]} link add h$each type veth peer name s$host$each netns $switch
            ip -n $switch link set s$host$each master switch up
            ip -n ${hosts[host]} link set h$each up
        done
        ip -n ${hosts[host]} address add 10.77.0.$((host + 1))/24 dev h0
    done
    cat >ends <<SHELL
#!/bin/bash
ip netns exec ${hosts[0]} "$run" --port iface:h0 --address 10.77.1.1 -- "\$@" &
for _ in \$(seq 100); do ip netns exec ${hosts[0]} grep -q :4E20 /proc/net/tcp* && break; sleep 0.05; done
ip netns exec ${hosts[1]} "$run" --port iface:h0 --address 10.77.1.2 -- "\$@" 10.77.0.1 && wait \$!
SHELL
    printf '#!/bin/sh\nshift\nexec ip netns exec %s sh -c "$*"\n' ${hosts[1]} >other_host
    cat >rank <<SHELL
#!/bin/sh
exec "$run" --port iface:h\$OMPI_COMM_WORLD_LOCAL_RANK --address 10.77.1.\$((OMPI_COMM_WORLD_RANK + 1)) -- "\$@"
SHELL
    chmod +x ends other_host rank
    weftio=(timeout -k 1 $limit env UCX_TLS=rc_x,ud_x,self)
    for test in "${tests[@]}"; do
        one "$test on two hosts" ./ends $test -n 2000 -p 20000
    done
    weftio=(ip netns exec ${hosts[0]} timeout -k 1 $limit)
    [ -x mpi_openmpi ] || mpicc.openmpi -O1 -o mpi_openmpi "$here/mpi.c" 2>/dev/null || return
    for each in 1 2; do
        one "${rows[each - 1]} on two hosts" mpirun.openmpi --oversubscribe --mca plm_rsh_agent "$work/other_host" --mca oob_tcp_if_include h0 \
            --host 10.77.0.1:$each,10.77.0.2:$each --mca pml ucx --mca osc ucx -x UCX_TLS=rc,self -n $((2 * each)) ./rank ./mpi_openmpi
    done
    for host in "${hosts[@]}" $switch; do ip netns delete $host; done
}

pyverbs() {
    local each tests=/usr/share/doc/rdma-core/tests python=/usr/bin/python3
    $python -c 'import pyverbs.device' 2>/dev/null || { seconds=0; row pyverbs - "expected: python3-pyverbs is not installed"; return; }
    cat >own.py <<'PYTHON'
import pyverbs.device as d, pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr, QPAttr
from pyverbs.wr import SGE, SendWR, RecvWR

context = d.Context(name=d.get_device_list()[0].name.decode())
port, gid = context.query_port(1), context.query_gid(1, 0)
assert port.state == e.IBV_PORT_ACTIVE and context.query_device().max_qp > 0
pd, cq = PD(context), CQ(context, 64)
mr = MR(pd, 8192, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
qps = [QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=8, max_recv_wr=8)), QPAttr()) for _ in range(2)]
for mine, theirs in (qps, qps[::-1]):
    way = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=gid, sgid_index=0))
    to = QPAttr(port_num=1)
    to.dest_qp_num, to.path_mtu, to.ah_attr, to.max_rd_atomic, to.max_dest_rd_atomic = theirs.qp_num, e.IBV_MTU_1024, way, 1, 1
    to.min_rnr_timer, to.timeout, to.retry_cnt, to.rnr_retry, to.qp_access_flags = 12, 14, 7, 7, e.IBV_ACCESS_REMOTE_WRITE
    mine.to_rts(to)
    assert mine.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_RTS
mr.write('w' * 100, 100)
qps[1].post_recv(RecvWR(sg=[SGE(mr.buf + 4096, 100, mr.lkey)], num_sge=1))
qps[0].post_send(SendWR(sg=[SGE(mr.buf, 100, mr.lkey)], num_sge=1))
done = []
while len(done) < 2:
    done += cq.poll()[1]
assert all(each.status == e.IBV_WC_SUCCESS for each in done) and mr.read(100, 4096) == b'w' * 100
PYTHON
    one "pyverbs open, query, PD, MR, CQ, QP, post, poll" $python own.py
    [ -d $tests ] || { seconds=0; row pyverbs "its tests" "expected: $tests is not there"; return; }
    mkdir -p pyverbs/tests pyverbs/bin && cp $tests/* pyverbs/tests && gunzip -f pyverbs/tests/*.gz
    # They ask Linux for the address of the interface that sysfs names.
    cat >pyverbs/bin/ip <<'SHELL'
#!/bin/sh
echo '[{"address": "02:00:00:00:00:01", "addr_info": [{"local": "198.18.0.1"}]}]'
SHELL
    chmod +x pyverbs/bin/ip
    cat >pyverbs/suite.py <<'PYTHON'
import sys, unittest
sys.path[:0] = ['pyverbs/tests', 'pyverbs']
from args_parser import parser
name = sys.argv.pop()
parser.parse_args()
result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromName('tests.test_' + name))
sys.exit(not result.wasSuccessful())
PYTHON
    for each in device pd cq cqex qp qpex atomic relaxed_ordering cq_events fork; do
        one "pyverbs tests.test_$each" env PATH="$work/pyverbs/bin:$PATH" $python -W ignore pyverbs/suite.py $each
    done
    one "pyverbs tests.test_mr" env PATH="$work/pyverbs/bin:$PATH" $python -W ignore pyverbs/suite.py mr
    one "pyverbs tests.test_addr" env PATH="$work/pyverbs/bin:$PATH" $python -W ignore pyverbs/suite.py addr
}

perftest
forever
pingpongs
pairs
connections
iser
one "run_perftest_loopback 0 0 ib_write_bw -F -n 200" bash "$(command -v run_perftest_loopback)" 0 0 ib_write_bw -F -n 200
ucx
mpi
two_hosts
pyverbs
[ -f table ] || skip "nothing matches $pattern"
echo
sort -s -k1,1 -t $'\t' table | column -t -s $'\t' -N program,options,result,seconds
finish
