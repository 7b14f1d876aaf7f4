#!/usr/bin/env bash
# weftio-litmus: a NIC whose bytes are late behind their flags has stale reads without a flush and none with one, in 10^6 trials; a NIC
# that keeps the order has none; nor has that of weftio-run. Then wrong arguments, and a machine without a NIC.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
litmus=$build/apps/weftio-litmus late=$build/tests/vendor/verbs
[ -x "$litmus" ] && [ -f "$late/libibverbs.so.1" ] || skip "stale reads: weftio-litmus is not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rows FILE: "FLUSH TRIALS are_some|are_none" of each row
rows()
{
    python3 -c '
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    "not_there" in row or print(row["flush"], row.get("trials", row.get("not_run")), "are_some" if row.get("stale") else "are_none")' "$1" | sort | uniq -c | sed 's/^ *//'
}

# 30 rows; 10 of them without a flush.
LD_LIBRARY_PATH=$late timeout $((10 * patience)) "$litmus" --trials 34000 --json >"$work/late"
check "a NIC whose bytes are late: exit status" 3 $?
check "a NIC whose bytes are late: no flush, and flushes" "10 READ, other pair 34000 are_none
10 READ, same pair 34000 are_none
10 none 34000 are_some" "$(rows "$work/late")"
STAND_IN_NIC=orderly LD_LIBRARY_PATH=$late timeout $((10 * patience)) "$litmus" --trials 5000 --bytes 4096 --pairs 64 --json >"$work/orderly"
check "a NIC that keeps the order: exit status" 0 $?
check "a NIC that keeps the order" "10 READ, other pair 5000 are_none
10 READ, same pair 5000 are_none
10 none 5000 are_none" "$(rows "$work/orderly")"
LD_LIBRARY_PATH=$late "$litmus" --strict --only "WRITE with,none" --until 3 >"$work/until"
check "--until 3: exit status" 3 $?
check_has "--until 3: the row ends there" "
3 stale reads of " "$(cat "$work/until")"

check_has "--list" "WRITE, then atomic / other region / READ, same pair / relaxed" "$("$litmus" --list)"
check "--list: rows" 398 "$("$litmus" --list | wc -l)"
check "--list: rows that need one NIC alone" 31 "$("$litmus" --list --only "data in host / read by CPU" | grep -vc "second's")"
check "--list --json: an array of the same words" "True 398" "$("$litmus" --list --json | python3 -c '
import json, sys
words = json.load(sys.stdin)
print("WRITE, then atomic / other region / READ, same pair / relaxed" in " ".join(words), len(words))')"
check_has "an empty name of a device" "weftio-litmus: --device: the name is empty; leave the option out for the first device" "$("$litmus" -d "" 2>&1)"
check "no such row" "1 weftio-litmus: --only foo: no row has these words; --list prints them
Run with --help for usage." "$(out=$("$litmus" --only foo 2>&1); echo "$? $out")"
check "--bytes 12" "1 weftio-litmus: --bytes 12: not a multiple of 8
Run with --help for usage." "$(out=$("$litmus" --bytes 12 2>&1); echo "$? $out")"
check "no such device" "2 weftio-litmus: there is no RDMA device mlx9; there are stand_in_0, stand_in_1" \
    "$(out=$(LD_LIBRARY_PATH=$late "$litmus" -d mlx9 2>&1); echo "$? $out")"
check "no such port" "2 weftio-litmus: stand_in_0 has no port 2: Invalid argument" \
    "$(out=$(LD_LIBRARY_PATH=$late "$litmus" -i 2 2>&1); echo "$? $out")"
LD_LIBRARY_PATH=$late "$litmus" --strict >/dev/full 2>"$work/words"
check "a full disk" "1" $?
LD_LIBRARY_PATH=$late "$litmus" --strict >&- 2>"$work/words"
check "a closed standard output" "1 weftio-litmus: standard output is closed; redirect it to a file or to /dev/null" "$? $(cat "$work/words")"
(ulimit -v 1000000; LD_LIBRARY_PATH=$late "$litmus" --strict --only "WRITE with,none" --bytes 1048576 >"$work/poor" 2>&1)
check "no memory: exit status" 2 $?
check_has "no memory: the row says so" "not run: there is no memory for it; give a smaller --bytes or --pairs" "$(cat "$work/poor")"
LD_LIBRARY_PATH=$late "$litmus" --trials 1000000000 >"$work/long" 2>&1 &
program=$!
eventually grep -q "Trials/s" "$work/long"
kill -INT $program
wait $program
status=$?
check "Ctrl-C ends it" "ended" "$([ $status = 130 ] || [ $status = 3 ] && echo ended || echo "status $status")"
check_has "Ctrl-C: what is there is told" "stale reads of" "$(cat "$work/long")"

if [ -x "$build/apps/weftio-run" ]; then
    needs_weftio_run "weftio-litmus under weftio-run"
    bounded "$run" --wire litmus-$$ -- "$litmus" --trials 3000 --json >"$work/run"
    check "under weftio-run: exit status" 0 $?
    check "under weftio-run" "10 READ, other pair 3000 are_none
10 READ, same pair 3000 are_none
10 none 3000 are_none" "$(rows "$work/run")"
fi

# commands_of PAGE: those of its block for this script, with the stand-in's device
commands_of()
{
    sed -n '/test: run by litmus.sh/,/^\(```\|\.fi\)$/{/litmus/p}' "$1" | grep -v 'test: run by' | sed "s|mlx5_|stand_in_|g; s|build/apps/|$build/apps/|g; s|^weftio|$build/apps/weftio|; s|10000000|10000|; s|--wire w |--wire litmus-page-$$ |"
}
for page in docs/litmus.md docs/weftio-litmus.1; do
    while read -r command; do
        case $command in
        *weftio-run*)
            [ -x "$build/apps/weftio-run" ] || continue
            bounded bash -c "${command/-n 20000/-n 500}" >"$work/page" 2>&1
            ;;
        *--trials* | *--list*) STAND_IN_NIC=orderly LD_LIBRARY_PATH=$late bounded bash -c "$command" >"$work/page" 2>&1 ;;
        *--gpu*) STAND_IN_NIC=orderly STAND_IN_HIDES=1 LD_LIBRARY_PATH=$late:$build/tests/vendor bounded bash -c "${command/litmus /litmus -n 20 }" >"$work/page" 2>&1 ;;
        *) STAND_IN_NIC=orderly LD_LIBRARY_PATH=$late bounded bash -c "${command/litmus /litmus -n 3000 }" >"$work/page" 2>&1 ;;
        esac
        check "$page: $command" 0 $? || cat "$work/page"
    done < <(commands_of "$(dirname "$0")/../../$page")
done
finish
