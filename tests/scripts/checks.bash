# What scripts beside this one share. Sourced, not run: . "$(dirname "$0")/checks.bash"
failures=0

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

# eventually COMMAND...: until it succeeds, a minute at most.
eventually() {
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
    return 1
}

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
