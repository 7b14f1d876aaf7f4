#!/usr/bin/env bash
# weftio-files as people run it: exit codes, sentences, JSON, and that its page and its completion have every option.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
files=$(realpath "$1")/apps/weftio-files
here=$(realpath "$(dirname "$0")/../..")
[ -x "$files" ] || skip "weftio-files was not run: not built"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset WEFTIO_FILE_JSON CUFILE_ENV_PATH_JSON

# expect STATUS ARGUMENTS...: runs it; its words are in out and err.
expect() {
    bounded "$files" "${@:2}" >out 2>err
    check "weftio-files ${*:2}: exit status" "$1" $?
}

expect 0 --help
expect 0 --version
expect 1
expect 1 --check none
check "a path that is not there: one sentence" "weftio-files: none: No such file or directory" "$(cat err)"
expect 1 --check --config none.json
check_has "no configuration: sentence" "none.json: cannot read the configuration: No such file" "$(cat err)"
echo '{"properties": {"use_poll_mode": 1}}' >wrong.json
CUFILE_ENV_PATH_JSON=$work/wrong.json expect 1 --check
check "a wrong value: one sentence" \
    "weftio: $work/wrong.json:1: properties.use_poll_mode: a whole number instead of true or false" "$(cat err)"
expect 0 --check "$work"
check "the sections of gdscheck, in order, and ours" "ENVIRONMENT DRIVER_CONFIGURATION CUFILE_CONFIGURATION GPU_INFO PLATFORM ROUTING GPUDIRECT_RDMA " \
    "$(grep -E '^[A-Z ]+$' out | tr ' \n' '_ ')"
check_has "the mount of a path" "$(stat -c %m "$work") : " "$(cat out)"
if command -v python3 >/dev/null; then
    expect 0 --check --json "$work"
    check "the same as JSON" 7 "$(python3 -c 'import json; print(len(json.load(open("out"))))')"
fi
"$files" --check >/dev/full 2>err
check "a full disk: exit status" 1 $?
check "a full disk: sentence" "weftio-files: standard output cannot be written (No space left on device)" "$(cat err)"
"$files" --check >&- 2>err
check "a closed standard output: exit status" 1 $?
check "a closed standard output: sentence" "weftio-files: standard output is closed; redirect it to a file or to /dev/null" "$(cat err)"

# PLATFORM is what --topology reads.
"$files" --check "$work" | sed -n '/^PLATFORM/,/^ROUTING/{/^  /s/^  //p}' >trees
expect 0 --check --topology trees "$work"
[ -s trees ] && check "a recorded topology is read back" "$(cat trees)" \
    "$(sed -n '/^PLATFORM/,/^ROUTING/{/^  /s/^  //p}' out)"

# What --check says is what an engine does.
echo '{"properties": {"force_compat_mode": true}}' >compat.json
expect 0 --check --config compat.json "$work"
check_has "force_compat_mode: POSIX" "posix: any file system, any memory" "$(grep 'way for host memory' out)"
WEFTIO_CUFILE_LIBRARY=/none/libcufile.so.0 expect 0 --check "$work"
check_has "NVIDIA's library that is asked for is not there: why" "/none/libcufile.so.0: cannot be loaded" \
    "$(grep -A3 "NVIDIA's libcufile.so.0" out)"
check_has "NVIDIA's library is not there: staged" "way for GPU memory" "$(grep -E 'way for GPU memory +(uring|posix): ' out)"

# A short run of every load.
for load in read write mixed; do
    expect 0 bench -s 1m -b 4k,64k --seconds 0.02 -w 2 --verify --$load --random "$work"
    check "bench --$load: both ways of both sizes" "weftio 4096 posix 4096 weftio 65536 posix 65536 " \
        "$(awk '/^weftio/ {printf "%s %s ", $1, $2} /^posix/ {printf "%s %s ", $1, $4}' out)"
done
expect 0 bench -s 1m -b 4k,64k --seconds 0.02 --rounds 2 -w 2 --plot "$work/moved.svg" "$work"
check "bench --plot: a diagram for each size" 2 "$(grep -c 'class="title"' moved.svg)"
if command -v fio >/dev/null; then
    check "bench: fio's row of each size" "fio 4096 fio 65536 " "$(awk '/^fio/ {printf "%s %s ", $1, $2}' out)"
    check "bench: fio is the measure" 1.00 "$(awk '/^fio/ {print $5; exit}' out)"
fi
expect 1 bench --plot moved.png "$work"
check_has "bench --plot of another kind: sentence" "--plot moved.png: the plot is an SVG file; name a file that ends in .svg" "$(cat err)"
expect 1 bench -s 1m -b 4k --seconds 0.01 --no-fio --plot "$work/none/moved.svg" "$work"
check_has "bench --plot that cannot be written: sentence" "--plot $work/none/moved.svg: cannot be written" "$(cat err)"
expect 1 bench -s 1m -b 4k "$work/none/file"
check_has "a file that cannot be made: sentence" "$work/none/file: cannot be created: No such file or directory" "$(cat err)"
mkdir small
if unshare -m mount -t tmpfs -o size=1m none small 2>/dev/null; then
    bounded unshare -m sh -c "mount -t tmpfs -o size=1m none small && exec '$files' bench -s 4m -b 4k small" >out 2>err
    check "bench on a full disk: exit status" 2 $?
    check_has "bench on a full disk: sentence" "no space for 4194304 bytes: No space left on device" "$(cat err)"
fi
mkfifo pipe
expect 1 bench -s 1m -b 4k --seconds 0.01 "$work/pipe"
check_has "bench on a FIFO: sentence" "$work/pipe: neither a regular file nor a block device" "$(cat err)"
truncate -s 1g sparse
expect 0 bench -b 300m -w 1 --seconds 0.01 --rounds 1 --no-fio --json "$work/sparse"
check_has "bench on a file that is there: its size" '"file_bytes": 1073741824' "$(cat out)"
if opencl=$("$files" bench -g opencl -s 1m -b 4k --seconds 0.01 --rounds 1 "$work" 2>&1); then
    check_has "bench into memory of OpenCL" "weftio" "$opencl"
else
    check_has "bench without OpenCL: sentence" "opencl" "$opencl"
fi
expect 1 bench --seconds nan "$work"
expect 1 --check --topology "$work"
check "--topology of a folder: sentence" "weftio-files: $work: not a regular file" "$(cat err)"
expect 1 --check --root "$work/none"
check "--root of nothing: sentence" "weftio-files: --root $work/none: not a folder" "$(cat err)"
mkdir stopped
"$files" bench -s 64m -b 4k --seconds $patience "$work/stopped" >/dev/null 2>&1 &
program=$!
is_making() { ls -l "/proc/$program/fd" 2>/dev/null | grep -q "$work/stopped"; }
eventually_by $program is_making
kill -INT $program 2>/dev/null || kill $program
kill $program 2>/dev/null
wait_for_end $program 2>/dev/null
check "bench that is stopped leaves nothing behind" "" "$(ls stopped)"
check "bench leaves nothing behind" "" "$(find "$work" -name 'weftio-files.*')"

# Counts of a running program.
echo '{"profile": {"cufile_stats": 2}}' >level2.json
WEFTIO_FILE_JSON=$work/level2.json "$files" bench -s 1m -b 4k --seconds $patience "$work" >/dev/null 2>&1 &
program=$!
has_counts() { "$files" --stats $program >out 2>/dev/null && grep -q "^ *4096  [a-z]* *read" out; }
eventually_by $program has_counts
check "--stats: level" "engine 0, level 2" "$(head -1 out)"
expect 0 --stats $program --json
check_has "--stats --json" '"bytes_from": 4096' "$(cat out)"
kill $program
wait_for_end $program 2>/dev/null
rm -f weftio-files.*
expect 3 --stats $program
check "--stats of no process: sentence" "weftio-files: process $program: no such process" "$(cat err)"
expect 3 --stats $$
check "--stats of another program: sentence" "weftio-files: process $$: uses no Weftio files" "$(cat err)"

options=$("$files" --help | grep -oE -- '--[a-z-]+' | sort -u | grep -v -- '--way-')
for option in $options; do
    check_has "the manual page has $option" "$option" "$(sed 's/\\-/-/g' "$here/docs/weftio-files.1")"
    check_has "the completion has $option" "$option" "$(cat "$here/apps/files/weftio-files.bash-completion")"
done
for where in "$here/docs/weftio-files.1" "$here/apps/files/weftio-files.bash-completion" out; do
    "$files" --help >out
    check_has "$where has every kind of device" "cpu opencl cuda" "$(grep -E 'cpu.*cuda' "$where" | grep -oE 'cpu|opencl|cuda' | uniq | tr '\n' ' ')"
done
if command -v man >/dev/null; then
    check "the manual page is without errors" "" \
        "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$here/docs/weftio-files.1" 2>&1 >/dev/null)"
fi
finish
