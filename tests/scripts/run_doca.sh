#!/usr/bin/env bash
# What make install-doca installs, as programs for DOCA GPUNetIO 2.10 use it: pkg-config files, headers, the library, the wrapper of
# nvcc, and the programs of tests/doca. Their host parts are compiled and linked everywhere, with a CUDA runtime of tests/doca/cuda_on_cpu,
# with which kernels of some run, too; with nvcc and Meson the whole programs are, by their own build files. Nothing runs on a GPU here.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
sources=$(realpath "$(dirname "$0")/../..")
[[ -e $build/lib/libweftio_doca.so ]] || skip "programs for DOCA were not built: build/lib/libweftio_doca.so is not built"
grep -q 'WEFTIO_SANITIZE:STRING=.' "$build/CMakeCache.txt" && skip "libweftio_doca.so needs the sanitizer's library in this build"

work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
cc=${CC:-cc} cxx=${CXX:-c++}
installed() { cmake --install "$build" --component doca --prefix "$1" >"$work/install.txt" 2>&1; }
installed "$work/first" || check "it is installed" yes "$(tail -5 "$work/install.txt")"
mv "$work/first" "$work/prefix" # it may be moved
libdir=$work/prefix/$(sed -n 's/^WEFTIO_DOCA_LIBDIR:STRING=//p' "$build/CMakeCache.txt")
include=$work/prefix/include
export PKG_CONFIG_PATH=$libdir/pkgconfig

# pkg-config files.
for name in common gpunetio argp eth flow rdma dma dpdk-bridge; do
    check "doca-$name: version, libraries, headers" "2.10.0087 $(realpath "$libdir") $include" \
        "$(pkg-config --modversion doca-$name) $(realpath "$(pkg-config --variable=libdir doca-$name)") \
$(realpath "$(pkg-config --cflags-only-I doca-$name | sed 's/^-I//; s/ *$//')")"
done
check "the archive of device functions lies beside the library" yes "$([[ -e $libdir/libdoca_gpunetio_device.a ]] && echo yes)"

# Headers, each alone, in the languages of programs.
for path in "$include"/doca_*.h; do
    header=$(basename "$path")
    printf '#include <%s>\n#include <%s>\nint nothing;\n' "$header" "$header" | tee "$work/alone.c" >"$work/alone.cpp"
    for standard in c11 gnu99; do
        check "$header alone, $standard" "" "$("$cc" -std=$standard -Wall -Wextra -Werror -fsyntax-only -I "$include" "$work/alone.c" 2>&1)"
    done
    for standard in c++11 c++20; do
        check "$header alone, $standard" "" \
            "$("$cxx" -std=$standard -Wall -Wextra -Werror -fsyntax-only -I "$include" "$work/alone.cpp" 2>&1)"
    done
done

# rte_tcp.h is found before DPDK's, has all that DPDK's has, and the same layout.
cat >"$work/tcp.c" <<'END'
#include <stddef.h>
#include <stdio.h>
#include <rte_ethdev.h>
#include <rte_gro.h>
#include <rte_ip.h>
#include <rte_net.h>
#include <rte_tcp.h>
int main(void)
{
    struct rte_tcp_hdr tcp = {.data_off = 0x50, .tcp_flags = RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG};
    printf("%zu %zu %zu %zu ", sizeof tcp, offsetof(struct rte_tcp_hdr, data_off), offsetof(struct rte_tcp_hdr, tcp_flags),
           offsetof(struct rte_tcp_hdr, tcp_urp));
    printf("%d %d %d %d %d ", tcp.dt_off, tcp.syn, tcp.ack, tcp.fin, tcp.rst);
    tcp.tcp_flags = RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG;
    printf("%d %d %d %d ", tcp.syn, tcp.ack, tcp.fin, tcp.rst);
    printf("%d %d %d %d %d %d %d\n", RTE_TCP_OPT_END, RTE_TCP_OPT_NOP, RTE_TCP_OPT_MSS, RTE_TCP_OPT_WND_SCALE,
           RTE_TCP_OPT_SACK_PERMITTED, RTE_TCP_OPT_SACK, RTE_TCP_OPT_TIMESTAMP);
    return 0;
}
END
check "a program with DPDK's headers compiles" "" \
    "$("$cc" -Wall -Wextra -Werror $(pkg-config --cflags doca-common libdpdk) "$work/tcp.c" -o "$work/tcp" 2>&1)"
check "flags, data offset and options of TCP" "20 12 13 18 5 1 1 0 0 0 0 1 1 0 1 2 3 4 5 8" "$("$work/tcp")"
check "the same as C++" "" "$("$cxx" -std=c++17 -w -x c++ -fsyntax-only $(pkg-config --cflags doca-common libdpdk) "$work/tcp.c" 2>&1)"
dpdk=$(dirname "$(echo '#include <rte_net.h>' | "$cc" -M -x c $(pkg-config --cflags libdpdk) - | tr ' ' '\n' | grep '/rte_tcp\.h$')")
check "every macro of DPDK's rte_tcp.h is there" "" "$(comm -23 <(grep -oE '^#define RTE_TCP_\w+' "$dpdk/rte_tcp.h" | sort) \
    <(grep -oE '^#define RTE_TCP_\w+' "$include/rte_tcp.h" | sort))"

# The library.
library=$libdir/libweftio_doca.so
check "its name" libweftio_doca.so "$(readelf -d "$library" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p')"
check "it stays when a program closes it" NODELETE "$(readelf -d "$library" | grep -o NODELETE)"
check "it needs nothing of CUDA, and no other part of Weftio" "" \
    "$(readelf -d "$library" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -E 'cuda|cudart|weftio')"
for path in "$include"/doca_*.h; do
    "$cc" -E -P -x c "$path"
done 2>/dev/null | grep -oE '\bdoca_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$work/declared.txt"
nm -D --defined-only "$library" | awk '{print $3}' | sort -u >"$work/exported.txt"
check "it exports what the headers declare" "$(cat "$work/declared.txt")" "$(grep ^doca_ "$work/exported.txt")"
dpdk_libraries=$(pkg-config --variable=libdir libdpdk)
nm -D --defined-only "$dpdk_libraries"/librte_{eal,ethdev}.so | awk '{print $3}' | sed 's/@.*//' | sort -u >"$work/dpdk.txt"
check "what it exports besides are functions of DPDK" "" "$(grep -v ^doca_ "$work/exported.txt" | comm -23 - "$work/dpdk.txt")"

# Those functions of a program are the library's: it stands before DPDK's libraries.
cat >"$work/order.c" <<'END'
#include <doca_version.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
int main(int argc, char** argv)
{
    if (argc > 1)
        return rte_eal_init(argc, argv) + rte_eth_dev_start(0);
    return rte_eth_dev_count_avail() + (doca_version() == 0);
}
END
"$cc" $(pkg-config --cflags doca-common libdpdk) "$work/order.c" -o "$work/order" -Wl,-rpath,"$libdir" \
    $(pkg-config --libs doca-common doca-eth libdpdk) 2>"$work/order.txt" || check "a program with DPDK links" "" "$(cat "$work/order.txt")"
check "programs load it before rte_ethdev" "libweftio_doca librte_ethdev" \
    "$(readelf -d "$work/order" | sed -nE 's/.*\(NEEDED\).*\[(libweftio_doca|librte_ethdev)\..*/\1/p' | xargs)"
LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$work/bindings "$work/order"
for name in rte_eal_init rte_eth_dev_start; do
    check "$name of a program is the library's" libweftio_doca.so \
        "$(sed -nE "s@.*binding file $work/order .* to (.*/)?([^/ ]+) .*\`$name'.*@\2@p" "$work"/bindings.*)"
done

# The wrapper of nvcc, before an nvcc that says what it gets.
mkdir "$work/cuda" "$work/other"
cat >"$work/cuda/nvcc" <<'END'
#!/bin/sh
if [ "$1" = --list-gpu-arch ]; then
    printf 'compute_75\ncompute_80\ncompute_90\ncompute_90a\n'
    exit
fi
printf '<%s>' "$@"
exit 3
END
chmod +x "$work/cuda/nvcc"
cp "$work/prefix/bin/nvcc" "$work/other/nvcc"
# wrapped WHAT EXPECTED ARGUMENT...
wrapped() {
    local what=$1 expected=$2
    shift 2
    check "nvcc: $what" "$expected 3" "$(PATH=$work/prefix/bin:$work/other:$work/cuda:$PATH timeout -k 5 $patience nvcc "$@") $?"
}
wrapped "words stay as they are" "<-c><a b.cu><><-o><*>" -c "a b.cu" "" -o "*"
wrapped "two words" "<-gencode><arch=compute_80,code=sm_80><-c>" -gencode arch=compute_70,code=sm_70 -gencode arch=compute_80,code=sm_80 -c
wrapped "two words, long" "<-c>" --generate-code arch=compute_60,code=sm_60 -c
wrapped "one word" "<-gencode=arch=compute_90,code=[sm_90,compute_90]>" "-gencode=arch=compute_70,code=[sm_70,compute_70]" \
    "-gencode=arch=compute_90,code=[sm_90,compute_90]"
wrapped "a name that begins like another" "<-gencode=arch=compute_90a,code=sm_90a>" --generate-code=arch=compute_7,code=sm_7 \
    -gencode=arch=compute_90a,code=sm_90a
wrapped "an option without its word" "<-gencode>" -gencode
# In a namespace in which CUDA's folder is empty.
mkdir "$work/empty"
without_cuda='[ ! -d /usr/local/cuda ] || mount --bind "$0" /usr/local/cuda; PATH=/usr/bin:/bin CUDA_HOME= CUDA_PATH= "$@"'
if unshare -rm true 2>/dev/null && [[ ! -e /usr/bin/nvcc ]]; then
    said=$(unshare -rm sh -c "$without_cuda" "$work/empty" "$work/prefix/bin/nvcc" -c 2>&1)
    check "nvcc: none is found: exit status" 127 $?
    check_has "nvcc: none is found" "install CUDA's compiler" "$said"
else
    echo "not checked: the wrapper where there is no nvcc (namespaces are refused, or /usr/bin has one)"
fi

# Host parts of the programs, with a CUDA runtime in which there is no GPU.
on_cpu=$sources/tests/doca/cuda_on_cpu
mkdir "$work/runtime"
cp "$on_cpu/cuda_runtime_api.h" "$work/runtime/"
cp "$on_cpu/cuda_runtime_api.h" "$work/runtime/cuda_runtime.h"
# Functions of any arguments: those of no_gpu.c fail, those of a_gpu.c succeed.
for name in $(grep -oE '\bcuda\w+\(' "$work/runtime/cuda_runtime_api.h" | tr -d '(' | grep -v cudaMemcpy); do
    echo "int $name(void) { return 101; }" >>"$work/runtime/no_gpu.c"
    echo "int $name(void) { return 0; }" >>"$work/runtime/a_gpu.c"
done
echo "int cudaMemcpy(void) { return 101; }" >>"$work/runtime/no_gpu.c"
printf '#include <string.h>\nint cudaMemcpy(void* to, const void* from, size_t size, int kind) { (void)kind; memcpy(to, from, size); return 0; }\n' \
    >>"$work/runtime/a_gpu.c"
doca=(doca-common doca-gpunetio doca-argp doca-eth doca-flow doca-rdma doca-dma doca-dpdk-bridge libdpdk)

# objects_of PROGRAM OPTION...: its host part, compiled into $work/objects. Prints what the compiler says.
objects_of() {
    local folder=$sources/tests/doca/$1 path
    shift
    rm -rf "$work/objects"
    mkdir "$work/objects"
    for path in "$folder"/*.c "$folder"/host/*.c "$sources"/tests/doca/common/*.c; do
        "$cc" -O3 -Wall -Wextra -Wno-unused-parameter -Wno-missing-braces -Werror -D DOCA_ALLOW_EXPERIMENTAL_API "$@" -I "$folder" \
            -I "$sources/tests/doca/common" $(pkg-config --cflags "${doca[@]}") -I "$work/runtime" \
            -c "$path" -o "$work/objects/$(basename "$path").o" 2>&1
    done
}
# linked EXECUTABLE SOURCE...: those objects, and more sources.
linked() {
    local executable=$1
    shift
    "$cxx" -x none "$work"/objects/*.o "$@" -Wl,-rpath,"$libdir" $(pkg-config --libs "${doca[@]}") -o "$executable" 2>&1
}
# compiled PROGRAM RUNTIME RESULT: its host part, with launches that return RESULT. Prints what the compiler says.
compiled() {
    local program=$1 runtime=$2 result=$3 path
    { echo "#include \"$program.h\""
      sed -nE "/^doca_error_t launch_/,/;/p" "$sources/tests/doca/$program/$program.h" | sed "s/;\$/ { return $result; }/"; } >"$work/launch.c"
    objects_of "$program"
    for path in "$work/launch.c" "$work/runtime/$runtime.c"; do
        "$cc" -w -I "$sources/tests/doca/$program" -I "$sources/tests/doca/common" $(pkg-config --cflags "${doca[@]}") -I "$work/runtime" \
            -c "$path" -o "$work/objects/$(basename "$path").o" 2>&1
    done
    linked "$work/$program.$runtime"
}
# compiled_on_cpu PROGRAM OPTION...: it and its kernels, which the CPU runs. Prints what the compiler says.
compiled_on_cpu() {
    local program=$1 path kernel
    shift
    objects_of "$program" "$@"
    for path in "$sources/tests/doca/$program"/device/*.cu "$on_cpu/cuda_on_cpu.cpp"; do
        kernel=$work/objects/$(basename "$path").cpp
        sed -E 's/(\w+)<<<(\w+), \w+, 0, stream>>>\(/launch_on_cpu(\1, \2, stream, /' "$path" >"$kernel"
        "$cxx" -std=c++20 -O2 -Wall -D DOCA_ALLOW_EXPERIMENTAL_API "$@" -I "$sources/tests/doca/$program/device" \
            -I "$sources/tests/doca/common" -I "$on_cpu" $(pkg-config --cflags "${doca[@]}") -include "$on_cpu/cuda_on_cpu.hpp" \
            -c "$kernel" -o "${kernel%.cpp}.o" 2>&1
    done
    linked "$work/$program.on_cpu"
}
# refused PROGRAM WHAT STATUS PART ARGUMENT...: how a program ends, and what it says.
refused() {
    local program=$1 what=$2 status=$3 part=$4 said ended
    shift 4
    said=$("$program" "$@" 2>&1)
    ended=$?
    check "$(basename "$program"), $what: exit status" "$status" $ended
    check_has "$(basename "$program"), $what" "$part" "$said"
}
# options_of PROGRAM ARGUMENTS: what every program does with its options; ARGUMENTS are good ones.
options_of() {
    local program=$1
    shift
    refused "$program" "help" 0 "-g, --gpu <GPU PCI address>" --help
    refused "$program" "no option" 1 "option -g, --gpu <GPU PCI address> is missing"
    refused "$program" "an unknown option" 1 'unknown option "-x"' "$@" -x
    refused "$program" "an address that is too long" 1 "at most 12 characters" "$@" -n 0000:b5:00.00
}
for program in receive_udp timed_send packet_pipeline dma_copy; do
    check "$program: its host part compiles and links" "" "$(compiled $program no_gpu DOCA_ERROR_DRIVER)"
    good=(-g 0000:01:00.0 -n 0000:b5:00.0)
    [[ $program != timed_send ]] || good+=(-t 5000000)
    [[ $program != packet_pipeline ]] || good+=(-q 1)
    options_of "$work/$program.no_gpu" "${good[@]}"
    refused "$work/$program.no_gpu" "no GPU" 1 "No GPU at 0000:01:00.0" "${good[@]}"
done
refused "$work/timed_send.no_gpu" "no number" 1 'option -t, --time <nanoseconds>: "5us" is no decimal number' -g 1 -n 2 -t 5us
refused "$work/timed_send.no_gpu" "a time of 0" 1 "must be above 0" -g 1 -n 2 -t 0
refused "$work/packet_pipeline.no_gpu" "5 queues" 1 "There may be 1 to 4 queues, not 5" -g 1 -n 2 -q 5
refused "$work/packet_pipeline.no_gpu" "its version" 0 "built with 2.10.0087" --version
check "rdma_write: its host part compiles and links" "" "$(compiled rdma_write no_gpu DOCA_ERROR_DRIVER)"
good=(-d mlx5_0 -gpu 0000:01:00.0)
refused "$work/rdma_write.no_gpu" "help" 0 "-gpu, --gpu-address <GPU PCI address>" --help
refused "$work/rdma_write.no_gpu" "no option" 1 "option -d, --device <RDMA device name> is missing"
refused "$work/rdma_write.no_gpu" "no GPU is named" 1 "option -gpu, --gpu-address <GPU PCI address> is missing" -d mlx5_0
refused "$work/rdma_write.no_gpu" "no GPU" 1 "No GPU at 0000:01:00.0" "${good[@]}"
refused "$work/rdma_write.no_gpu" "an address without a type" 1 '"IPX" is not IPv4, IPv6 or GID' "${good[@]}" -cm -sat IPX
refused "$work/rdma_write.no_gpu" "no address" 1 "A client with -cm needs -sa" "${good[@]}" -c 127.0.0.1 -cm

# The host parts from beginning to end, in their own order of set-up and teardown: the library's GPU is the CPU, no kernel starts, and
# nothing comes from the wire.
export WEFTIO_DOCA_DEVICES='0000:b5:00.0,mlx5_0=null'
check "receive_udp links with another runtime" "" "$(compiled receive_udp a_gpu DOCA_SUCCESS)"
"$work/receive_udp.a_gpu" -g cpu -n b5:00.0 >"$work/receive_udp.txt" 2>&1 &
process=$!
eventually_by $process grep -q "The kernel runs" "$work/receive_udp.txt"
kill -INT $process
wait_for_end $process
check "receive_udp ends well: exit status" 0 $?
check_has "receive_udp ends well" "0 packets received" "$(cat "$work/receive_udp.txt")"
check "receive_udp logs no error" "" "$(grep -F '[ERR]' "$work/receive_udp.txt")"
check "timed_send links with another runtime" "" "$(compiled timed_send a_gpu DOCA_SUCCESS)"
refused "$work/timed_send.a_gpu" "from beginning to end" 0 "256 frames leave in 8 bursts" -g cpu -n 0000:b5:00.0 -t 1000000
refused "$work/timed_send.a_gpu" "no such device" 1 "Device b5:00.1, one of 1, is not opened: Not found" -g cpu -n b5:00.1 -t 1
check "timed_send logs no error" "" "$("$work/timed_send.a_gpu" -g cpu -n b5:00.0 -t 1 2>&1 | grep -F '[ERR]')"

# Programs with their kernels, which the CPU runs: a thread for each block.
check "dma_copy compiles with its kernel" "" "$(compiled_on_cpu dma_copy)"
"$work/dma_copy.on_cpu" -g cpu -n b5:00.0 >"$work/dma_copy.txt" 2>&1 &
wait_for_end $!
check "dma_copy: exit status" 0 $?
check "dma_copy: both texts arrive" "The GPU has received: This is a text of the CPU
The CPU has received: This is a text of the GPU" "$(grep 'has received' "$work/dma_copy.txt")"
check "dma_copy logs no error" "" "$(grep -F '[ERR]' "$work/dma_copy.txt")"

# said_by END PATTERN: what the server or the client of rdma_write has printed.
said_by() { grep -E "$2" "$work/rdma_$1.txt"; }
# rdma_ends WHAT STATUS SERVER-OPTIONS CLIENT-OPTIONS: rdma_write as server and as client, on one wire, until both end.
rdma_ends() {
    local server client port
    : >"$work/rdma_server.txt"
    WEFTIO_DOCA_DEVICES="0000:b5:00.0,mlx5_0,10.77.1.1=wire:doca$$" \
        "$work/rdma_write.on_cpu" -d mlx5_0 -gpu cpu -oob 0 $3 >"$work/rdma_server.txt" 2>&1 &
    server=$!
    eventually_by $server grep -q "waits at TCP port" "$work/rdma_server.txt"
    port=$(sed -n 's/^The server waits at TCP port //p' "$work/rdma_server.txt")
    WEFTIO_DOCA_DEVICES="0000:b5:00.1,mlx5_1,10.77.1.2=wire:doca$$" \
        "$work/rdma_write.on_cpu" -d mlx5_1 -gpu cpu -c 127.0.0.1 --oob-port "$port" $4 >"$work/rdma_client.txt" 2>&1 &
    client=$!
    wait_for_end $client
    check "$1: exit status of the client" "$2" $?
    wait_for_end $server
    check "$1: exit status of the server" "$2" $?
}
# rdma_pair WHAT SERVER-OPTIONS CLIENT-OPTIONS: the same, and all arrives.
rdma_pair() {
    local what="rdma_write, $1" end connection
    rdma_ends "$what" 0 "$2" "$3"
    check "$what: each kernel of the client has one commit" "Connection 0: 1 commits are done
Connection 1: 1 commits are done" "$(said_by client 'commits are done')"
    check "$what: the text arrives in A, immediates and bytes of B and C too" "$(for connection in 0 1; do
        echo "Connection $connection: A before: nothing yet"
        echo "Connection $connection: 3 receives, immediates 100$connection and 200$connection"
        echo "Connection $connection: A after: B and C are written by connection $connection"
        echo "Connection $connection: 16384 bytes of B and of C are the client's"
    done)" "$(said_by server '^Connection .*: ')"
    for end in server client; do
        check_has "$what, $end: two connections" "Connection 1 is made while the kernel of connection 0 runs" \
            "$(cat "$work/rdma_$end.txt")"
        check "$what: the $end logs no error" "" "$(said_by $end '\[ERR\]')"
    done
}
check "rdma_write compiles with its kernels" "" "$(compiled_on_cpu rdma_write)"
rdma_pair "addresses exchanged" "" ""
rdma_pair "addresses exchanged, GID 3" "-gid 3" "-gid 3"
rdma_pair "by the connection manager" "-cm -p 13580" "-cm -p 13580 -sa 10.77.1.1 -sat IPv4"
rdma_ends "rdma_write, nobody at that port" 1 "-cm" "-cm -p 13580 -sa 10.77.1.1"

# pipeline COMMAND...: packet_pipeline with these arguments, until it runs; sets `process`.
pipeline() {
    "$@" >"$work/pipeline.txt" 2>&1 &
    process=$!
    eventually_by $process grep -q "The kernels run" "$work/pipeline.txt"
}
# pipeline_ends WHAT
pipeline_ends() {
    kill -INT $process
    wait_for_end $process
    check "packet_pipeline, $1: exit status" 0 $?
    check "packet_pipeline, $1, logs no error" "" "$(grep -F '[ERR]' "$work/pipeline.txt")"
}
# counted PATTERN SUM: whether the last number of the lines with the pattern, of each queue the last line, has this sum.
counted() { [ "$(grep -E "$1" "$work/pipeline.txt" | tail -$queues | awk '{ sum += $NF } END { print sum + 0 }')" = "$2" ]; }
# Queues are small: the program's own take 512 MiB each.
check "packet_pipeline compiles with its kernels" "" "$(compiled_on_cpu packet_pipeline -D MAX_PACKETS=2048)"
pipeline "$work/packet_pipeline.on_cpu" -g cpu -n b5:00.0 -q 4
pipeline_ends "four queues"

# is_elsewhere PROCESS: whether it has a network of its own by now.
is_elsewhere() { [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$1/ns/net")" ]; }
# carries NAME: whether an interface of `inside` sends frames: Linux drops them for up to a second after it was set up.
carries() { "${inside[@]}" ip link show "$1" | grep 'state UP' | grep -qv 'qdisc noop'; }
# The same beside Linux: ping, nping and connections of a kernel, at the other end of a veth pair.
with_linux() {
    local far=10.77.0.2 near_words queues=2 inside sniffer
    unshare --net sleep 3600 &
    inside=(nsenter -t $! --net)
    eventually is_elsewhere $!
    near_words=$("${inside[@]}" sh -ec "
        ip link add near type veth peer name far address 02:00:00:00:00:02
        sysctl -qw net.ipv6.conf.near.disable_ipv6=1 net.ipv6.conf.far.disable_ipv6=1
        ip link set near up; ip link set far up; ip addr add 10.77.0.1/24 dev near
        ethtool -K near tx off >/dev/null; ip neigh add $far lladdr 02:00:00:00:00:02 dev near nud permanent" 2>&1) ||
        { echo "not checked: packet_pipeline beside Linux (no veth pair: $near_words)"; return; }
    eventually carries near
    eventually carries far
    export WEFTIO_DOCA_DEVICES='0000:b5:00.0=iface:far'
    # Linux takes replies with wrong checksums from a veth pair: tcpdump does not.
    "${inside[@]}" tcpdump -Z root -nvv -l --immediate-mode -i near ip >"$work/frames.txt" 2>"$work/tcpdump.txt" &
    sniffer=$!
    eventually_by $sniffer grep -q listening "$work/tcpdump.txt"
    pipeline "${inside[@]}" "$work/packet_pipeline.on_cpu" -g cpu -n b5:00.0 -q $queues
    check_has "pings are answered" "3 received" "$("${inside[@]}" ping -c 3 -i 0.2 -W $patience -s 56 $far)"
    check_has "pings of an odd size are answered" "3 received" "$("${inside[@]}" ping -c 3 -i 0.2 -W $patience -s 301 $far)"
    "${inside[@]}" nping --udp -g 4000 -p 53 -c 5 --rate 100 $far >/dev/null
    "${inside[@]}" nping --udp -g 4000 -p 7000 -c 7 --rate 100 $far >/dev/null
    eventually counted '^.UDP. queue' 12
    check "of 12 packets of UDP 5 are DNS" 5 "$(grep '^.UDP. queue' "$work/pipeline.txt" | tail -$queues | awk '{ sum += $5 } END { print sum }')"
    check_has "connections of nping" "Successful connections: 3" "$("${inside[@]}" nping --tcp-connect -p 80 -c 3 --rate 100 $far)"
    "${inside[@]}" bash -c 'exec 3<>/dev/tcp/'$far'/80 && printf "GET / HTTP/1.1\r\n\r\n" >&3 && sleep 0.1' || check "a request is sent" 0 $?
    eventually grep -qE '^.TCP. queue .: HTTP [1-9]' "$work/pipeline.txt"
    check "four connections" "[TCP] connections: 4" "$(grep 'connections' "$work/pipeline.txt" | tail -1)"
    pipeline_ends "beside Linux"
    kill -INT $sniffer
    wait_for_end $sniffer
    check "tcpdump sees six replies" 6 "$(grep -c 'ICMP echo reply' "$work/frames.txt")"
    check "tcpdump sees answers to SYN and to FIN" "[F.] [S.]" \
        "$(grep -F "$far.80 > 10.77.0.1." "$work/frames.txt" | grep -oE '\[[SF]\.\]' | sort -u | xargs)"
    check "every checksum is right" "" "$(grep -E 'wrong|incorrect|bad' "$work/frames.txt")"
    check_has "the CPU is told of echoes" "6 echoes sent" "$(cat "$work/pipeline.txt")"

    pipeline "${inside[@]}" "$work/packet_pipeline.on_cpu" -g cpu -n b5:00.0 -q $queues -s
    "${inside[@]}" nping --tcp -p 80 --flags ack -c 3 --rate 100 $far >/dev/null
    check_has "a connection of nping to a server" "Successful connections: 1" "$("${inside[@]}" nping --tcp-connect -p 80 -c 1 $far)"
    eventually grep -qE '^.TCP. queue .*total [1-9]' "$work/pipeline.txt"
    pipeline_ends "a server"
    # The connection's ACK, or two of them when its end is acknowledged; the three before it belong to none.
    counted '^.TCP. queue' 1 || counted '^.TCP. queue' 2 || check "packets without a connection are dropped" "" "$(cat "$work/pipeline.txt")"
}
missing=$(for name in ip ping nping ethtool tcpdump; do command -v $name >/dev/null || echo $name; done)
unshare --net true 2>/dev/null || missing+=" root, for namespaces"
if [ -z "$missing" ]; then
    with_linux
else
    echo "not checked: packet_pipeline beside Linux (missing here:" $missing")"
fi
export WEFTIO_DOCA_DEVICES='0000:b5:00.0,mlx5_0=null'

# The whole programs, by their build files.
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)
if [[ -z $nvcc ]] || ! command -v meson >/dev/null; then
    echo "not checked: the programs' own build files (nvcc or meson is missing)"
    finish
fi
for path in "$sources"/tests/doca/*/meson.build; do
    folder=$(dirname "$path") program=$(basename "$(dirname "$path")")
    (export PATH=$work/prefix/bin:$(dirname "$nvcc"):$PATH
        meson setup "$work/meson/$program" "$folder" && ninja -C "$work/meson/$program") >"$work/meson.txt" 2>&1 ||
        check "$program: Meson builds it" "" "$(tail -20 "$work/meson.txt")"
    check "$program: no warning" "" "$(grep -iE 'warning' "$work/meson.txt" | grep -v "^WARNING: Project")"
    check_has "$program finds the library without LD_LIBRARY_PATH" "$(realpath "$library")" \
        "$(ldd "$work/meson/$program/$program" | awk '/weftio/ {print $3}' | xargs realpath)"
done
finish
