#!/usr/bin/env bash
# What weftio-run refuses: each call that the tables of docs/verbs.md name fails with the errno and the line of its row, which is
# logged once; every call of tests/verbs/refusals.c has a row. What only asks whether a feature is there makes no warning.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1")
needs_weftio_run "refusals under weftio-run"
needs_file /usr/include/infiniband/mlx5dv.h libibverbs-dev "refusals under weftio-run"
page=$here/../../docs/verbs.md
work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
c_program refusals -libverbs -lmlx5
"$work/refusals" --list | sort >"$work/calls"

# rows HEADING: CALL|CELL|... for each call in code in the first column of the table below the heading.
rows() {
    awk -v heading="### $1" '
        /^#/ { inside = $0 == heading }
        inside && /^\| `/ {
            count = split($0, cells, / *\| */)
            rest = ""
            for (i = 3; i < count; ++i) rest = rest "|" cells[i]
            for (calls = cells[2]; match(calls, /`[^`]*`/); calls = substr(calls, RSTART + RLENGTH))
                print substr(calls, RSTART + 1, RLENGTH - 2) rest
        }' "$page"
}
rows "Refused calls" >"$work/refused"
rows "Calls that libraries refuse" >"$work/refused_by_libraries"
accepted="ibv_reg_mr IBV_ACCESS_HUGETLB
ibv_reg_mr IBV_ACCESS_RELAXED_ORDERING"
check "the page and the program have the same calls" "$(cat "$work/calls")" \
    "$({ cut -d'|' -f1 "$work/refused" "$work/refused_by_libraries"; echo "$accepted"; } | sort)"

# below NAME COMMAND...: its streams are NAME.out and NAME.err.
below() { bounded "$run" --wire "refusals-$$-$1" -- "${@:2}" >"$work/$1.out" 2>"$work/$1.err"; }
make_call() { WEFTIO_LOG=info below "$1" "$work/refusals" "$2"; }
jobs=0
while read -r call; do
    jobs=$((jobs + 1))
    make_call $jobs "$call" </dev/null &
    [ $((jobs % 8)) != 0 ] || wait
done <"$work/calls"
wait

lines() { grep -E "^($1): weftio-run: " "$work/$2.err"; }
number=0
while read -r call; do
    number=$((number + 1))
    if row=$(grep -F "$call|" "$work/refused" | grep "^$call|"); then
        IFS='|' read -r _ command error level reason <<<"$row"
        line="$level: weftio-run: $command: $error: $reason (docs/verbs.md#refused-calls)"
        [ "$level" = warning ] && warnings=$line || warnings=''
        check "$call: errno" "$error $error" "$(cat "$work/$number.out")"
        check "$call: its line" "$line" "$(grep -F "$line" "$work/$number.err")"
        check "$call: warnings" "$warnings" "$(lines "warning|error" $number)"
    elif row=$(grep -F "$call|" "$work/refused_by_libraries" | grep "^$call|"); then
        IFS='|' read -r _ error reason <<<"$row"
        check "$call: errno" "$error $error" "$(cat "$work/$number.out")"
        check "$call: warnings" "" "$(lines "warning|error" $number)"
    else
        check "$call: is accepted" "- -" "$(cat "$work/$number.out")"
        check "$call: warnings" "" "$(lines "warning|error" $number)"
    fi
done <"$work/calls"

# count LEVELS NAME PART: lines of these levels that have the part.
count() { lines "$1" "$2" | grep -cF "$3"; }
WEFTIO_LOG=debug below repeated "$work/refusals" ibv_advise_mr
check "a repeated refusal is a line of level debug" "1 1" "$(count warning repeated ADVISE_MR) $(count debug repeated ADVISE_MR)"

# Other programs: those that need what is refused have one line, and those that only ask have none.
below umad cat /dev/infiniband/umad0
check "a missing node: one line" "1 1" "$(count warning umad "open /dev/infiniband/umad: ENOENT") $(count "warning|error" umad "")"
if command -v rdma >/dev/null; then
    below iproute2 rdma link
    check "rdma link: one line" "1 1" \
        "$(count warning iproute2 "socket NETLINK_RDMA: EPROTONOSUPPORT") $(count "warning|error" iproute2 "")"
else
    echo "not checked: rdma link (iproute2 is not installed)"
fi
if command -v ucx_info >/dev/null; then
    WEFTIO_LOG=info below ucx ucx_info -d
    check "ucx_info -d: no warning, DevX at level info" "0 1" \
        "$(count "warning|error" ucx "") $(count info ucx "GET_CONTEXT: EINVAL: the device has no DevX")"
else
    echo "not checked: ucx_info (ucx-utils is not installed)"
fi
finish
