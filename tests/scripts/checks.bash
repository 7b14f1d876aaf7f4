# What scripts beside this one share. Sourced, not run: . "$(dirname "$0")/checks.bash"
failures=0

# The bound of every wait for what must come, in seconds: a minute times WEFTIO_PATIENCE, at least one second.
patience=$(awk -v factor="${WEFTIO_PATIENCE:-1}" 'BEGIN {
    if (factor !~ /^[0-9]*[.]?[0-9]+$/ || factor <= 0 || factor > 1000) exit 1
    seconds = int(60 * factor)
    print seconds < 60 * factor ? seconds + 1 : seconds
}') || {
    echo "WEFTIO_PATIENCE is \"$WEFTIO_PATIENCE\", which is no number above 0 and up to 1000: set it to how many minutes tests wait"
    exit 2
}

# skip WHAT WAS MISSED
skip() {
    echo "skipped: $*"
    exit 77
}

# check WHAT EXPECTED SEEN: says what differs, counts it, and fails, when they are not the same.
check() {
    if [ "$2" = "$3" ]; then
        echo "ok: $1"
    else
        echo "FAILED: $1"
        diff <(echo "$2") <(echo "$3") | head -20 | sed 's/^/    /'
        failures=$((failures + 1))
        return 1
    fi
}

# check_has WHAT PART TEXT: the part is in the text.
check_has() {
    case $3 in
    *"$2"*) echo "ok: $1" ;;
    *) check "$1" "... $2 ..." "$3" ;;
    esac
}

# within_patience COMMAND...: whether it succeeds in time. For what may be lost: a check says so afterwards.
within_patience() {
    local tries
    for tries in $(seq $((10 * patience))); do
        "$@" && return
        sleep 0.1
    done
    return 1
}

# eventually COMMAND...: until it succeeds. Out of patience, the script ends.
eventually() {
    within_patience "$@" || out_of_time "$*"
}

# eventually_by PROCESS COMMAND...: the same for what a process in the background does. The script fails when that ends before.
eventually_by() {
    local process=$1
    shift
    succeeds_or_is_over() { "$@" || ! kill -0 "$process" 2>/dev/null; }
    within_patience succeeds_or_is_over "$@" || out_of_time "$*"
    "$@" && return
    wait "$process"
    echo "FAILED: its process ended with status $? before this: $*"
    failures=$((failures + 1))
    finish
}

# family_of PROCESS: it and all that it has started.
family_of() {
    local child
    echo "$1"
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        family_of "$child"
    done
}

# threads_of PROCESS...: one line for each thread: its name, its state, and what it waits for in the kernel.
threads_of() {
    local process thread
    for process; do
        for thread in /proc/"$process"/task/*; do
            echo "    $(cat "$thread/comm"): $(awk '/^State:/ { print $2 }' "$thread/status"), $(cat "$thread/wchan")"
        done
    done 2>/dev/null
}

# wait_for_end PROCESS [WHAT]: waits for a process of ours; its exit status. Out of patience, its threads are told, it and what it has
# started are killed, and the script ends.
wait_for_end() {
    local tries family
    for tries in $(seq $((10 * patience + 40))); do
        kill -0 "$1" 2>/dev/null || break
        [ "$tries" -le 50 ] && sleep 0.02 || sleep 0.1
    done
    if kill -0 "$1" 2>/dev/null; then
        family=$(family_of "$1")
        threads_of $family >&$script_output
        kill -KILL $family
        out_of_time "${2:-the end of process $1}"
    fi
    wait "$1"
}

# bounded COMMAND...: its exit status, as wait_for_end has it. Its SIGINT is ignored until it catches it.
bounded() {
    local process status=0
    "$@" <&0 &
    process=$!
    wait_for_end $process "$*" || status=$?
    return $status
}

# end_all: kills what this script has started and what that has started. For its trap on EXIT: what is left holds the output open,
# and CTest waits for it. A process whose parent has ended is not found. `disown`: bash is not to tell of each.
end_all() {
    disown -a
    kill -KILL $(family_of $$ | tail -n +2) 2>/dev/null || true
}

# out_of_time WHAT: ends the script, also from a subshell. When no check has failed before, it has only run out of time: exit
# status 75 (EX_TEMPFAIL), and the last line says what it waited for.
exec {script_output}>&1
out_of_time() {
    [ $failures = 0 ] || finish
    echo "out of time: waited $patience s for this: $*" >&$script_output
    [ $BASHPID = $$ ] || kill -USR1 $$
    exit 75
}
trap 'exit 75' USR1

# find_devices PROGRAM ARGUMENTS...: sets `devices` to those on which the program can run here.
find_devices() {
    local words
    devices="cpu opencl"
    words=$("$@" -g opencl 2>&1) && return
    devices=cpu
    echo "not checked: OpenCL ($(tail -1 <<<"$words"))"
}

# The end of a script: how many checks failed, and the exit status that says so.
finish() {
    echo "$failures checks failed"
    [ $failures = 0 ]
    exit
}
