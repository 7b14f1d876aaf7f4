#!/usr/bin/env bash
# Programs outside the tree build against an installed Weftio and run: those of docs/project.md, docs/guide.md and docs/memory.md as
# they stand there, and tests/consumer. With CMake, with Meson and pkg-config, with make, and with Meson and the sources as a subproject. The
# folder that Weftio is installed to has a space in its name. Meson and the sources are for WEFTIO_LONG=1, and so is every program of
# docs/guide.md with Meson, but for the echo.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/blocks.bash"
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")

for tool in meson ninja make pkg-config tcpdump; do
    command -v $tool >/dev/null || skip "building programs outside the tree: $tool is not installed"
done

near=weftio-echo-near-$$ far=weftio-echo-far-$$
work=$(mktemp -d)
cleanup() {
    end_all
    ip netns delete $near 2>/dev/null
    ip netns delete $far 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

# succeeds WHAT COMMAND...: its words are shown only when it fails.
succeeds() {
    local words what=$1
    shift
    words=$("$@" 2>&1)
    check "$what" 0 $? || tail -20 <<<"$words" | sed 's/^/    /'
}

check_has "make install quotes its prefix" '--prefix "/a prefix"' "$(make -n -C "$source" install PREFIX="/a prefix" BUILD="$build" 2>&1)"
cmake --install "$build" --prefix "$work/a prefix" >"$work/install.log" || exit 1
# The package must not depend on where it was installed first.
mv "$work/a prefix" "$work/another prefix"
prefix="$work/another prefix"
export CMAKE_PREFIX_PATH=$prefix CMAKE_BUILD_PARALLEL_LEVEL=2
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name weftio.pc)")
export PKG_CONFIG_PATH

looks_in_working_directory() {
    local program
    for program in "$build"/{apps,samples,bench,tests}/* "$prefix"/bin/*; do
        [[ -f $program && -x $program ]] && readelf -d "$program" 2>/dev/null | grep -qE 'R(UN)?PATH.*(\[:|::|:\])' && echo "$program"
    done
}
check "programs take libraries from no working directory" "" "$(looks_in_working_directory)"

# docs/project.md: its project three times, each built as the first line of its build file says.
take_blocks "$source/docs/project.md" "$work/project"
check_has "the kernel of README.md is that of docs/project.md" "$(sed -n '/^```c$/,/^```$/{/^```/!p}' "$source/README.md")" \
    "$(cat "$work/project/count.kernel.h")"
devices=cpu
for file in CMakeLists.txt meson.build Makefile; do
    folder=$work/$file.d
    mkdir "$folder"
    cp "$work"/project/count.* "$work/project/$file" "$folder"
    cd "$folder" || exit 1
    succeeds "docs/project.md, $file" bash -c "$(command_of $file)"
    cd "$OLDPWD" || exit 1
    program=$(find "$folder" -name count -type f -perm -u+x)
    [ $file = CMakeLists.txt ] && find_devices "${program:-false}" pcap:builtin opencl
    for device in $devices; do
        check_has "docs/project.md, $file: on $device" "counted 23 UDP packets" "$("${program:-false}" pcap:builtin $device 2>&1)"
    done
done
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    compiled=0
    for program in "$work"/*.d/build/count "$work/Makefile.d/count"; do
        bytes=$(nm -SC "$program" | awk '$4 == "image" { print $2 }')
        [ $((16#${bytes:-0})) -gt 10000 ] && compiled=$((compiled + 1))
    done
    check "docs/project.md: kernels are compiled for CUDA" 3 $compiled
    mkdir "$work/a blank"
    PATH=$PATH:/usr/local/cuda/bin "$prefix/bin/weftio-embed" -o "$work/a blank/out.cpp" "$work/project/count.kernel.h"
    check "names in the list of headers have their blanks quoted" "" "$(grep -F "a blank" "$work/a blank/out.cpp.d")"
else
    echo "not checked: kernels for CUDA (nvcc is not installed)"
fi

# docs/memory.md: its program, built as its first line says, prints what the page says.
take_blocks "$source/docs/memory.md" "$work/memory"
# A shell splits what pkg-config prints at blanks: by a path without one.
ln -s "$prefix" "$work/prefix"
cd "$work/memory" || exit 1
PKG_CONFIG_PATH=${PKG_CONFIG_PATH/"$prefix"/"$work/prefix"} succeeds "docs/memory.md" bash -c "$(command_of registered.cpp)"
check "docs/memory.md: what its program prints" "$(sed -n '/^\$ .\/registered$/,/^```$/{//!p}' "$source/docs/memory.md")" "$(./registered 2>&1)"
cd "$OLDPWD" || exit 1

# make: a header that a kernel includes is looked at, too.
(cd "$work/Makefile.d" && echo '#pragma once' >own.h && sed -i 's/^#pragma once/&\n#include "own.h"/' count.kernel.h && make) >"$work/make.log" 2>&1
check_has "make has nothing to do" "up to date" "$(make -C "$work/Makefile.d" 2>&1)"
touch -d '+1 minute' "$work/Makefile.d/own.h"
words=$(make -n -C "$work/Makefile.d" 2>&1)
check_has "make sees a change of a kernel's own header" "-o count.kernel.cpp count.kernel.h" "$words"
check_has "make sees it for the program" "-o count.o count.cpp" "$words"

# A kernel that is not added is an error of the linker, which says what is needed.
words=$(cd "$work/Makefile.d" && bash -c "g++ -o forgotten count.o $(pkg-config --libs weftio)" 2>&1)
check_has "a kernel that was not added" "count_packets_needs_weftio_add_kernels" "$words"

# What weftio-embed is told to make, and cannot.
mkdir "$work/wrong"
embed() { (cd "$work/wrong" && "$prefix/bin/weftio-embed" --no-cuda -o out.cpp "$@" 2>&1); }
printf '#pragma once\n\n#include "nowhere.h"\nWEFTIO_KERNEL void k(WEFTIO_GLOBAL weftio_u32 *a) {}\n' >"$work/wrong/include.kernel.h"
printf 'WEFTIO_FN void k(void) {}\n' >"$work/wrong/none.kernel.h"
check_has "an include that is nowhere" 'include.kernel.h:3: "nowhere.h" is neither beside this file nor in a folder given with -I' \
    "$(embed include.kernel.h)"
check_has "a header without a kernel" "none.kernel.h: no line begins with WEFTIO_KERNEL" "$(embed none.kernel.h)"
check_has "a header that is not there" "missing.kernel.h: no such file" "$(embed missing.kernel.h)"
check_has "a header that is its own output" "none.kernel.h is the kernel header itself" "$(embed -o none.kernel.h none.kernel.h)"
check_has "a folder for an output" ". is a folder; -o names the C++ file" "$(embed -o . none.kernel.h)"
check_has "a folder for a header" ". is a folder; name a kernel header" "$(embed .)"
mkdir "$work/wrong/round"
printf '#pragma once\n#include "b.h"\nWEFTIO_KERNEL void k(void) {}\n' >"$work/wrong/round/a.kernel.h"
printf '#include "a.kernel.h"\n' >"$work/wrong/round/b.h"
printf '#include "1.h"\nWEFTIO_KERNEL void k(void) {}\n' >"$work/wrong/round/c.kernel.h"
for each in $(seq 60); do
    echo "#include \"$((each + 1)).h\"" >"$work/wrong/round/$each.h"
done
check "headers that include each other" "" "$(cd "$work/wrong/round" && timeout -k 5 $patience "$prefix/bin/weftio-embed" --no-cuda -o out.cpp a.kernel.h 2>&1 || echo $?)"
check_has "headers that include each other too deep" "c.kernel.h: headers include each other 50 deep" "$(embed round/c.kernel.h)"
check "nothing is made then" "include.kernel.h none.kernel.h" "$(cd "$work/wrong" && echo *.cpp *.h | sed 's/\*.cpp //')"

# A header that is included by two paths is there once: OpenCL has no two functions of one name.
mkdir -p "$work/names/sub"
printf '#include "b.h"\n#include "sub/c.h"\n#include "./sub/../b.h"\nWEFTIO_KERNEL void k(void) {}\n' >"$work/names/a.kernel.h"
printf '#pragma once\nWEFTIO_FN int once(void);\n' >"$work/names/b.h"
printf '#pragma once\n#include "../b.h"\n' >"$work/names/sub/c.h"
(cd "$work/names" && "$prefix/bin/weftio-embed" --no-cuda -o out.cpp a.kernel.h)
check "a header with several paths has one guard" WEFTIO_EMBEDDED_1 \
    "$(grep -B1 -A3 '#line 1 ".*b.h"' "$work/names/out.cpp" | sed -n 's/#ifndef //p' | sort -u)"

# Comments are not read: neither includes nor kernels.
mkdir "$work/comments"
cat >"$work/comments/a.kernel.h" <<'END'
#include "weftio/device/eth_rxq.h"
/* #include "gone.h" */ // #include "gone.h"
/*
#include "gone.h"
WEFTIO_KERNEL void old_one(WEFTIO_GLOBAL weftio_u32 *a) {}
*/
#define OPENS "/* not a comment"
#define QUOTE '"' /* a comment
#include "gone.h" */
/* here */ #include "b.h" /* and
on */
WEFTIO_KERNEL void in_use(WEFTIO_GLOBAL weftio_u32 *a) { *a = B; }
END
echo '#define B 7' >"$work/comments/b.h"
made_of_comments() { (cd "$work/comments" && "$prefix/bin/weftio-embed" --no-cuda "$@" a.kernel.h 2>&1); }
check "an include in a comment" "" "$(made_of_comments -o out.cpp)"
check "a kernel in a comment" "WEFTIO_EMBEDDED(in_use, text, image, 0);" "$(grep ^WEFTIO_EMBEDDED "$work/comments/out.cpp")"
check_has "what stands behind an include" "$(printf '#define B 7\n#line 10 "a.kernel.h"\n/*\non */')" "$(cat "$work/comments/out.cpp")"

# A full disk, wherever it shows: one sentence.
for full in out.cpp out.cpp.text out.cpp.names out.d; do
    ln -sf /dev/full "$work/comments/$full"
    check "a full disk at $full" "weftio-embed: $([ $full = out.d ] && echo out.d || echo out.cpp), or what is made beside it, cannot be written: \
No space left on device; make room, or name another file (-o, -MF)" "$(made_of_comments -o out.cpp -MF out.d)"
    rm -f "$work/comments"/out*
done
check_has "an output in no folder" "nowhere/out.cpp, or what is made beside it, cannot be written: No such file or directory" "$(made_of_comments -o nowhere/out.cpp)"
head -c 450 /dev/zero | tr '\0' '/' >>"$work/comments/a.kernel.h"
check_has "room for some of it" "out.cpp, or what is made beside it, cannot be written: File too large" "$(trap '' XFSZ && ulimit -f 1 && made_of_comments -o out.cpp)"
check "and no half of it is left" "a.kernel.h b.h out.cpp.d" "$(cd "$work/comments" && echo *)"

# docs/guide.md: every program, with CMake and with Meson.
take_blocks "$source/docs/guide.md" "$work/guide"
whole="by-cmake by-meson" by_meson=""
if [ -z "${WEFTIO_LONG:-}" ]; then
    whole=by-cmake by_meson=echo
    echo "not checked: programs of docs/guide.md but the echo, with Meson (takes a minute: WEFTIO_LONG=1)"
fi
cd "$work/guide" || exit 1
succeeds "docs/guide.md, CMake" bash -c "cmake -B by-cmake -G Ninja && cmake --build by-cmake"
succeeds "docs/guide.md, Meson" bash -c "meson setup by-meson && meson compile -C by-meson $by_meson"
cd "$OLDPWD" || exit 1
echo '/* changed */' >>"$work/guide/frame.h"
check_has "CMake sees a change of a kernel's own header" "Kernels of echo.kernel.h" "$(cmake --build "$work/guide/by-cmake" 2>&1)"
check_has "Meson sees it" "echo.kernel.cpp" "$(meson compile -v -C "$work/guide/by-meson" $by_meson 2>&1)"

packets=$(tcpdump -r "$source/lib/src/dpdk/builtin.pcap" 2>/dev/null | wc -l)
# What 4 bytes at a time of every packet add up to; a pcap file has 24 bytes in front, and each packet 16.
sum=$(od -An -v -tu1 -w1 "$source/lib/src/dpdk/builtin.pcap" | awk '
    NR > 24 && head < 16 { if (head >= 8 && head < 12) left += $1 * 256 ^ (head - 8); ++head; at = 0; next }
    NR > 24 { sum = (sum + $1 * 256 ^ (at++ % 4)) % 2 ^ 32; if (!--left) head = 0 }
    END { printf "%08x", sum }')
for how in $whole; do
    for device in $devices; do
        cd "$work/guide/$how" || exit 1
        check_has "pipeline, $how, on $device" "$packets packets, " "$(./pipeline pcap:builtin $device 2>&1)"
        check_has "keep, $how, on $device" "$packets packets, sum of words $sum, copied $packets" "$(./keep pcap:builtin $device 2>&1)"
        check_has "timed, $how, on $device" "sent 10, 0 of them early" "$(./timed pcap:tx=timed.pcap $device 2>&1)"
        check "timed, $how, on $device: its capture" "$(seq 0 9)" "$(od -An -v -tu1 -w80 -j24 timed.pcap | awk '{print $31}')"
        check_has "table, $how, on $device" "100 rows, sum 1292800" "$(./table loopback $device 2>&1)"
        check_has "reuse, $how, on $device" "sent 200 frames" "$(./reuse pcap:tx=reuse.pcap $device 2>&1)"
        check "reuse, $how, on $device: its capture" "$(seq 0 199)" "$(od -An -v -tu1 -w80 -j24 reuse.pcap | awk '{print $31}')"
        rm -f ./*.pcap
    done
done

# What docs/guide.md says that its programs print, but for times. The echo needs a peer.
printed=0
while read -r program; do
    cd "$work/guide/by-cmake" && words=$(grep -A1 -F "\$ $program" "$source/docs/guide.md" | tail -1)
    check "docs/guide.md: what $program prints" "$(sed 's/[0-9.]* us/N us/' <<<"$words")" "$($program 2>&1 | sed 's/[0-9.]* us/N us/')"
    printed=$((printed + 1))
done < <(sed -n '/iface:/d; s/^\$ \(\.\/.*\)/\1/p' "$source/docs/guide.md")
check "docs/guide.md: programs with what they print" 5 $printed

# The echo, and a peer that is no program of ours.
make_network() {
    [ "$(id -u)" = 0 ] && ip netns add $near && ip netns add $far &&
        ip -n $near link add v1 address 02:00:00:00:00:01 type veth peer name v0 address 02:00:00:00:00:02 netns $far &&
        ip -n $far address add 10.77.0.2/24 dev v0 && ip -n $near link set v1 up && ip -n $far link set v0 up &&
        ip -n $far neighbour add 10.77.0.1 lladdr 02:00:00:00:00:01 dev v0
} 2>/dev/null
# ask_echo FOLDER DEVICE: sends 20 datagrams of many sizes, and says how many came back as they were.
ask_echo() {
    local pid
    : >"$work/echo.log" >"$work/tcpdump.log" # have the words of the ones before
    ip netns exec $near "$work/guide/$1/echo" iface:v1 "$2" >"$work/echo.log" 2>&1 &
    pid=$!
    eventually grep -q echoing "$work/echo.log" || {
        kill $pid 2>/dev/null
        cat "$work/echo.log"
        return
    }
    ip netns exec $far tcpdump -nvv --immediate-mode -U -i v0 -w "$work/echo.pcap" udp src port 7 2>"$work/tcpdump.log" &
    local dump=$!
    eventually grep -q listening "$work/tcpdump.log"
    ip netns exec $far bash -c '
        exec 3<>/dev/udp/10.77.0.1/7
        for number in $(seq 1 20); do
            word=$(printf "%0$((number * 40))d" "$number")
            for attempt in 1 2 3 4 5; do # a datagram may come before the queue is there
                printf %s "$word" >&3
                read -r -N ${#word} -t 5 answer <&3 && break
            done
            [ "$answer" = "$word" ] || exit
            echo back
        done' | wc -l
    kill -TERM $pid
    wait_for_end $pid || echo "echo ended with $?: $(cat "$work/echo.log")"
    kill -INT $dump
    wait_for_end $dump tcpdump
}
if make_network; then
    for how in by-cmake by-meson; do
        for device in $devices; do
            check "echo, $how, on $device: datagrams that came back" 20 "$(ask_echo $how $device)"
            answers=$(tcpdump -nvv -r "$work/echo.pcap" 2>/dev/null)
            check "echo, $how, on $device: their checksums" 0 "$(grep -cE 'bad (udp )?cksum' <<<"$answers")"
            check_has "echo, $how, on $device: the last of them" "10.77.0.1.7 > 10.77.0.2" "$answers"
        done
    done
else
    echo "not checked: the echo and its peer (needs root, and network namespaces)"
fi

# tests/consumer: a static library, link-time optimization, headers of its own; in Meson as meson-compat/README.md tells.
cp -r "$source/tests/consumer" "$work/source"
succeeds "tests/consumer, CMake" bash -c "cmake -S '$work/source' -B '$work/cmake' -G Ninja -DCMAKE_BUILD_TYPE=Release && cmake --build '$work/cmake'"
succeeds "tests/consumer, Meson" bash -c "meson setup '$work/meson' '$work/source' --wrap-mode=nofallback && meson compile -C '$work/meson'"
consumers="cmake meson"
if [ -n "${WEFTIO_LONG:-}" ]; then
    mkdir "$work/source/subprojects"
    ln -s "$source" "$work/source/subprojects/weftio"
    ln -s weftio/meson-compat "$work/source/subprojects/weftio-meson"
    succeeds "tests/consumer, Meson and the sources" \
        env -u PKG_CONFIG_PATH -u CMAKE_PREFIX_PATH \
        bash -c "meson setup '$work/subproject' '$work/source' --wrap-mode=forcefallback && meson compile -C '$work/subproject' consumer"
    consumers="$consumers subproject"
else
    echo "not checked: Meson and the sources of the library, which it compiles one by one (takes minutes: WEFTIO_LONG=1)"
fi
for how in $consumers; do
    check_has "tests/consumer, $how: link-time optimization is on" "-flto" "$(cat "$work/$how/build.ninja")"
    for device in $devices; do
        check_has "tests/consumer, $how, on $device" "counted $packets packets of $packets" "$("$work/$how/consumer" $device 2>&1)"
    done
done
finish
