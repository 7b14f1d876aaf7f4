#!/usr/bin/env bash
# weftio-run as people run it, with a small engine: exit codes, sentences, what the program gets, and what it does not notice.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")/../..")
run=$build/apps/weftio-run preload=$build/lib/verbs/libweftio-verbs-preload.so
[ -x "$run" ] && [ -f "$preload" ] || skip "weftio-run was not run: not built"
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset LD_PRELOAD SYSFS_PATH ${!WEFTIO_RUN_*}
export WEFTIO_RUN_ENGINE=$build/tests/verbs/libverbs_toy_engine.so

# expect STATUS ARGUMENTS...: runs it; its words are in out and err.
expect() {
    bounded "$run" "${@:2}" >out 2>err
    check "weftio-run ${*:2}: exit status" "$1" $?
}

expect 0 --help
expect 0 --version
expect 125
check "no program: sentence" "weftio-run: name the program to start" "$(head -1 err)"
expect 125 --devices 99 true
expect 127 weftio-nothing
check "no such program: sentence" "weftio-run: weftio-nothing: no such program in PATH" "$(cat err)"
expect 126 /etc/passwd
check "not executable: sentence" "weftio-run: /etc/passwd: is not executable" "$(cat err)"
if [ -x /sbin/ldconfig ] && ! grep -q ld-linux <(readelf -l /sbin/ldconfig 2>&1); then
    expect 126 /sbin/ldconfig --version
    check_has "statically linked: sentence" "weftio-run: /sbin/ldconfig: is statically linked, so it cannot preload a library" "$(cat err)"
fi
"$run" --help >/dev/full 2>err
check "a full disk: exit status" 125 $?
check "a full disk: sentence" "weftio-run: standard output cannot be written (No space left on device)" "$(cat err)"
"$run" --help >&- 2>err
check "a closed standard output: exit status" 125 $?
check "a closed standard output: sentence" "weftio-run: standard output is closed; redirect it to a file or to /dev/null" "$(cat err)"
WEFTIO_RUN_ENGINE=$work/none.so expect 125 true
check "no engine's library: sentence" \
    "weftio-run: the engine's library $work/none.so does not exist; build or install Weftio again" "$(cat err)"
mkdir -p alone/bin
cp "$run" alone/bin
alone/bin/weftio-run true 2>err
check "no library to preload: exit status" 125 $?
check_has "no library to preload: sentence" "weftio-run: libweftio-verbs-preload.so does not exist (searched $work/alone/lib/verbs" \
    "$(cat err)"

# What cannot be is refused before the program starts, in one sentence; variables too.
refused() { # refused SENTENCE VARIABLE=VALUE ARGUMENTS...
    env "$2" "$run" "${@:3}" echo started >out 2>err
    check "$2 ${*:3}: exit status" 125 $?
    check "$2 ${*:3}: sentence" "weftio-run: $1" "$(head -1 err)$(cat out)"
}
no_host="not a unicast address of one host; write it as 10.0.0.1 or fd00::1"
refused "--address 127.0.0.1: $no_host" A=B --address 127.0.0.1
refused "WEFTIO_RUN_ADDRESS ::1: $no_host" WEFTIO_RUN_ADDRESS=::1
refused "WEFTIO_RUN_ADDRESS x: not an address; write it as 10.0.0.1 or fd00::1" WEFTIO_RUN_ADDRESS=x
refused "WEFTIO_RUN_DEVICES 9: not a number from 1 to 8" WEFTIO_RUN_DEVICES=9
refused "WEFTIO_RUN_WIRE a/b: write 1 to 64 letters, digits, '-', '_' and '.'" WEFTIO_RUN_WIRE=a/b
refused "WEFTIO_RUN_LOSS 2: not a share from 0 to 1 with an optional seed; write 0.01 or 0.01,7" WEFTIO_RUN_LOSS=2
refused "WEFTIO_RUN_DOORBELL_BYTES 16: is neither 8 nor 64" WEFTIO_RUN_DOORBELL_BYTES=16
refused "WEFTIO_RUN_DUMP /tmp: not a file" WEFTIO_RUN_DUMP=/tmp
refused "--loss and WEFTIO_RUN_PORT: only a wire in memory can lose frames on purpose" WEFTIO_RUN_PORT=null --loss 0.1
WEFTIO_RUN_DEVICES=9 expect 0 --devices 2 true
WEFTIO_RUN_DEVICES='' expect 0 true

# The program is the process.
expect 7 sh -c 'exit 7'
expect 0 -- sh -c 'echo "$0 $1"' 'a  b' '*'
check "arguments are as they were" "a  b *" "$(cat out)"
"$run" sh -c 'echo $$' >out &
wait_for_end $!
check "the program has the process" $! "$(cat out)"
"$run" sh -c 'kill -TERM $$' &
wait_for_end $! 2>/dev/null
check "signals are the program's" 143 $?
printf 'echo "script $1"\n' >script
chmod +x script
expect 0 ./script x
check "a script without an interpreter" "script x" "$(cat out)"

# Its variables.
variables() { "$run" "$@" env | grep -E '^WEFTIO_RUN_[^E]' | sort | tr '\n' ' '; }
check "options are variables" \
    "WEFTIO_RUN_ADDRESS=10.0.0.1 WEFTIO_RUN_DEVICES=2 WEFTIO_RUN_DUMP=$work/a.pcapng WEFTIO_RUN_WIRE=lab " \
    "$(variables --wire lab --address 10.0.0.1 --devices 2 --dump a.pcapng)"
check "no option, no variable" "" "$(variables)"
check "a variable stands for its option" "WEFTIO_RUN_WIRE=lab " "$(WEFTIO_RUN_WIRE=lab variables)"
check "a port takes the wire's place" "WEFTIO_RUN_PORT=null " "$(WEFTIO_RUN_WIRE=lab variables --port null)"
check "LD_PRELOAD" "$preload" "$("$run" printenv LD_PRELOAD)"
check "LD_PRELOAD keeps what is there" "$preload:$preload.other" \
    "$(LD_PRELOAD=$preload.other "$run" "$run" printenv LD_PRELOAD 2>/dev/null)"

# A program that looks for no device notices nothing.
cat >looks <<'END'
echo "threads: $(ls /proc/self/task | wc -l)"
echo "descriptors: $(ls -l /proc/self/fd | awk '{ print $9, $11 }' | sed 's/[0-9][0-9]*/N/g' | tr '\n' ' ')"
echo "engine: $(grep -c toy_engine /proc/self/maps)"
env | grep -vE '^(LD_PRELOAD|_|SHLVL)=' | sort
ls -a /sys/class /proc/self/root
ls -a /dev/shm | grep -v -- -weftio-test- # of tests beside this one
python3 -c 'import os, socket, threading; print(os.stat("/sys/class/net").st_mode, socket.socket().family, threading.active_count())' 2>/dev/null
END
bash looks >before </dev/null
"$run" bash looks >after </dev/null
check "a program that looks for no device notices nothing" "$(cat before)" "$(cat after)"

# An engine that does not start.
check "the engine's sentence" "toy: it does not start" "$(TOY_FAILS=1 "$run" ls -d /dev/infiniband /sys/class/infiniband 2>&1 | grep -v ^ls:)"
check "no engine, no devices" "ls: cannot access '/dev/infiniband': No such file or directory" \
    "$(TOY_FAILS=1 LC_ALL=C "$run" ls -d /dev/infiniband 2>&1 | grep ^ls:)"
check_has "an engine of another version" "weftio-run: the engine's library has another version than the preloaded one: $WEFTIO_RUN_ENGINE" \
    "$(TOY_VERSION=99 "$run" ls -d /dev/infiniband 2>&1)"
cp "$here/LICENSE" broken.so
check_has "a library that is none" "weftio-run: the engine cannot be loaded: $work/broken.so: " \
    "$(WEFTIO_RUN_ENGINE=$work/broken.so "$run" ls -d /dev/infiniband 2>&1)"

# Programs of the system, whose calls we did not choose.
expect 0 sh -c 'cd /sys/class/infiniband && cat */node_guid ; test -c /dev/infiniband/uverbs1 && test -w /dev/infiniband/uverbs0'
check "the shell and cat" "0200:00ff:fe00:0001 0200:00ff:fe00:0002 " "$(tr '\n' ' ' <out)"
check "ls" "crw-rw-rw- 231, 192 /dev/infiniband/uverbs0 crw-rw-rw- 231, 193 /dev/infiniband/uverbs1 " \
    "$("$run" ls -l /dev/infiniband/uverbs0 /dev/infiniband/uverbs1 2>&1 | awk '{ printf "%s %s %s %s ", $1, $5, $6, $NF }')"
check "find" "/dev/infiniband/uverbs0 /dev/infiniband/uverbs1 " "$("$run" find /dev/infiniband -name 'uverbs*' | sort | tr '\n' ' ')"
check "realpath" /sys/devices/pci7765:00/7765:00:01.0 "$("$run" realpath /sys/class/infiniband/mlx5_1/device)"
if command -v python3 >/dev/null; then
    check "python3" "['mlx5_0', 'mlx5_1'] 193 True" "$("$run" python3 -c '
import os, pathlib
print(sorted(os.listdir("/sys/class/infiniband")), os.minor(os.stat("/dev/infiniband/uverbs1").st_rdev),
      pathlib.Path("/dev/infiniband/uverbs0").is_char_device())')"
    check "python3 starts others from a thread" "2 2 2 2" "$("$run" python3 -c '
import concurrent.futures, subprocess
with concurrent.futures.ThreadPoolExecutor() as pool:
    jobs = [pool.submit(subprocess.check_output, ["sh", "-c", "ls /dev/infiniband | grep -c uverbs"]) for _ in range(4)]
print(*(int(job.result()) for job in jobs))')"
fi
if command -v ibv_devinfo >/dev/null; then
    check "ibv_devinfo -l" "2 HCAs found: mlx5_0 mlx5_1 " "$("$run" ibv_devinfo -l 2>&1 | tr -s '\n\t' ' ')"
    check "ibv_devices" "mlx5_0 020000fffe000001 mlx5_1 020000fffe000002 " \
        "$("$run" ibv_devices | awk '/mlx5/ { printf "%s %s ", $1, $2 }')"
    check_has "ibv_devinfo and a folder of the user's" "No IB devices found" \
        "$(mkdir -p own/class/infiniband_verbs && echo 6 >own/class/infiniband_verbs/abi_version && SYSFS_PATH=$work/own "$run" ibv_devinfo 2>&1)"
    check "ibv_devinfo without an engine" "Failed to get IB devices list: Function not implemented" \
        "$(TOY_FAILS=1 "$run" ibv_devinfo 2>&1 | grep -v ^toy)"
else
    echo "not checked: ibv_devinfo (ibverbs-utils is not installed)"
fi

# What is left, and what is swept.
trees() { ls -d /dev/shm/weftio-run-"$1"-* 2>/dev/null | wc -l; }
"$run" sh -c 'ls /dev/infiniband; kill -KILL $$' >/dev/null &
killed=$!
wait_for_end $killed 2>/dev/null
"$run" sh -c 'cd /dev/infiniband; kill -KILL $$' >/dev/null &
killed=$!
wait_for_end $killed 2>/dev/null
check "a killed process leaves its tree" 1 "$(trees $killed)"
"$run" ls /dev/infiniband >out &
wait_for_end $!
check "a process that ends leaves none" 0 "$(trees $!)"
check "and sweeps the killed one's" 0 "$(trees $killed)"

options=$("$run" --help | grep -oE -- '--[a-z-]+' | sort -u)
for option in $options; do
    check_has "the manual page has $option" "$option" "$(sed 's/\\-/-/g' "$here/docs/weftio-run.1")"
    check_has "the completion has $option" "$option" "$(cat "$here/apps/run/weftio-run.bash-completion")"
done
complete_line() {
    bash -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _weftio_run; echo "${COMPREPLY[@]}"' - \
        "$here/apps/run/weftio-run.bash-completion" "$@"
}
check "completion of options" "--wire" "$(complete_line weftio-run --wi)"
check "completion behind the program" "looks" "$(complete_line weftio-run --wire --odd cat lo)"
check_has "completion of programs" "printenv" "$(complete_line weftio-run --devices 2 printen)"
if command -v man >/dev/null; then
    check "the manual page is without errors" "" \
        "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$here/docs/weftio-run.1" 2>&1 >/dev/null)"
fi
finish
