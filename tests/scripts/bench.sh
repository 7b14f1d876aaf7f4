#!/usr/bin/env bash
# Programs of bench/ say what they found in one shape, and refuse wrong words in one sentence. No figure is judged here.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
[ -x "$build/bench/steering_bench" ] || skip "benchmarks: the build has none (WEFTIO_BENCH)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shape FILE: says what is not as bench/README.md has it; nothing when all is.
shape() {
    python3 - "$1" bench/goals.json <<'END'
import json, sys

document, goals = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert document["schema"] == 1 and list(document) == ["schema", "program", "rows"] and document["rows"], "head"
number = lambda value: type(value) in (int, float)
for row in document["rows"]:
    assert list(row) == "name value unit low high rounds peer ratio goal met machine".split(), row
    assert all(number(row[key]) for key in ("value", "low", "high")) and row["low"] <= row["value"] <= row["high"], row
    assert type(row["rounds"]) is int and row["rounds"] >= 1 and row["name"] and row["unit"] and row["machine"], row
    assert (row["peer"] is None) == (row["ratio"] is None) and (row["ratio"] is None or number(row["ratio"])), row
    assert row["peer"] is None or row["peer"] in [other["name"] for other in document["rows"]], row
    goal = goals["goals"].get(document["program"], {}).get(row["name"], {}).get("goal")
    assert row["goal"] == goal and type(row["met"]) is (bool if goal else type(None)), row
END
}

# writes NAME WORDS...: the program ends well, and its JSON has the shape.
writes() {
    local name=$1 said status
    shift
    said=$("$build/bench/$name" "$@" --json "$work/$name.json" 2>&1)
    status=$?
    check "$name: exit status" 0 $status || echo "$said"
    check "$name: rows are as bench/README.md says" "" "$(shape "$work/$name.json" 2>&1)"
    check "$name: the table has as many rows" "$(grep -c '"name"' "$work/$name.json")" \
        "$(grep -cE ' [0-9]+  (-|[0-9.]+ \()' <<<"$said")" || echo "$said"
}

# refuses PROGRAM: an option that there is not, in one sentence; help is there.
refuses() {
    local said status
    said=$("$1" --no-such-option 2>&1)
    status=$?
    check "${1##*/}: a wrong option: exit status" 2 $status
    check "${1##*/}: a wrong option is told in one line" 1 "$(wc -l <<<"$said")" || echo "$said"
    said=$("$1" --help 2>&1)
    status=$?
    check "${1##*/}: --help: exit status" 0 $status
    check_has "${1##*/}: --help" --json "$said"
}

writes steering_bench --only parse --rounds 2 --seconds 0.001
writes forward_bench --rounds 1 --seconds 0.01
writes dma_bench --rounds 1 --long 1 --small 1000
writes files_bench --rounds 1 --seconds 0.02 --size 8
writes rdma_bench --rounds 1 --seconds 0.01 --trips 100 --idle 8
writes semaphore_bench --rounds 1 --count 1000 --round-trips 10
for program in steering forward dma files rdma semaphore soak; do
    refuses "$build/bench/${program}_bench"
done
for program in roce ring engine memory neighbor gpu initiated pacing file_queue; do
    if [ -x "$build/bench/${program}_bench" ]; then
        refuses "$build/bench/${program}_bench"
    else
        echo "not checked: ${program}_bench (not built; make test ALSO=bench builds it, as .ci/run does)"
    fi
done
if [ -x "$build/bench/neighbor_bench" ]; then
    row="1 pairs of 1 MiB writes"
    one=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
    said=$(taskset -c "$one" "$build/bench/neighbor_bench" --mode inline --rounds 1 --seconds 0.01 --only "$row" 2>&1)
    check_has "neighbor_bench: too few cores are told in the row" "needs 2 cores" "$(grep "^kept of the larger, $row" <<<"$said")"
    if [ "$(nproc)" -ge 2 ]; then
        writes neighbor_bench --mode inline --rounds 1 --seconds 0.01 --only "$row"
        check "neighbor_bench: both shares, and what is kept" 3 \
            "$(grep -cE "\"(share by count|share by work|kept of the larger), $row\"" "$work/neighbor_bench.json")"
    fi
fi
if [ "$(id -u)" = 0 ] && ip netns add "weftio-bench-$$" 2>/dev/null; then
    ip netns del "weftio-bench-$$"
    said=$(bench/versus --build "$build" --only rdma --rounds 1 --seconds 0.05 --json "$work/versus.json" 2>&1)
    check "versus: writes on a veth pair: exit status" 0 $? || echo "$said"
    check "versus: writes on a veth pair: rows are as bench/README.md says" "" "$(shape "$work/versus.json" 2>&1)"
    check "versus: writes on a veth pair: beside frames, and beside UCX where it is installed" \
        "1 $(command -v ucx_perftest >/dev/null && echo 1 || echo 0)" \
        "$(grep -c '"peer": "rdma af_packet on veth: frames' "$work/versus.json") $(grep -c '"peer": "rdma af_packet on veth: UCX' "$work/versus.json")"
    # Ended in the middle, it removes the namespaces that it made.
    left_behind() { ip netns list | grep -oE '^weftio-(compare|ucx-[a-z]*)-[0-9]+' | while read -r name; do kill -0 "${name##*-}" 2>/dev/null || echo "$name"; done; }
    before=$(left_behind)
    said=$(bench/figures --build "$build" --only versus --limit 4 --words="--only rdma --rounds 1 --seconds 60" 2>&1)
    check_has "versus: ended in the middle: is named" "versus (not done within 4 s)" "$said"
    check "versus: ended in the middle: no namespace stays" "$before" "$(left_behind)"
else
    echo "not checked: writes on a veth pair (network namespaces want root)"
fi
refuses bench/versus
refuses bench/verbs
refuses bench/replay
refuses bench/figures
refuses bench/pairs
refuses bench/since
if [ "$(git rev-parse --is-shallow-repository)" = false ]; then
    git merge-base --is-ancestor "$(awk '{print $1; exit}' bench/baseline)" HEAD
    check "bench/baseline names a commit that this one comes from" 0 $?
fi
python3 - "$work/python.json" >"$work/said" <<'END'
import pathlib, sys

sys.dont_write_bytecode = True
sys.path.insert(0, "bench")
from table import Table

table = Table("versus")
table.add("forward null 64: testpmd macswap", "Mpps", [1, 2, 4])
table.add("forward null 64: macswap, inline", "Mpps", [3, 2, 2], "forward null 64: testpmd macswap")
table.finish(pathlib.Path(sys.argv[1]))
END
check "programs in Python: rows are as bench/README.md says" "" "$(shape "$work/python.json" 2>&1)"
check_has "programs in Python: the ratio is the median of the pairs" "1.00 (0.500-3.00)" "$(cat "$work/said")"
check_has "programs in Python: goals are counted" "1 of 1 goals met" "$(cat "$work/said")"

if [ -x "$build/bench/initiated_bench" ]; then
    said=$("$build/bench/initiated_bench" --engines 1,2 --queues 1,3 --sizes 8,65536 --size-queues 2 --ends 4 --proxies 1,2 --rounds 1 \
        --seconds 0.005 --json "$work/initiated.json" 2>&1)
    check "initiated_bench: every byte and every message is there: exit status" 0 $? || echo "$said"
    check "initiated_bench: rows are as bench/README.md says" "" "$(shape "$work/initiated.json" 2>&1)"
    check "initiated_bench: streams of both numbers of engines: rows of six columns" "12 72" \
        "$(grep -cE '^[0-9]+ (queues|B|KiB) .* [0-9.]+$' <<<"$said") $(grep -cE '"name".*(queues|bandwidth)' "$work/initiated.json")"
    check "initiated_bench: exchanges of both numbers of engines: rows of three columns" "6 18" \
        "$(grep -cE '^4 ends .* [0-9.]+$' <<<"$said") $(grep -cE '"name".*, 4 ends: ' "$work/initiated.json")"
    mkdir -p "$work/page"
    said=$("$build/bench/initiated_bench" --peer cpu --engines 1 --ends 2,4 --proxies 1 --rounds 1 --seconds 0.005 \
        --only all-to-all,all-to-all-64,transposition --json "$work/two.json" 2>&1)
    check "initiated_bench: ends on two devices: exit status" 0 $? || echo "$said"
    check "initiated_bench: ends on two devices: rows of two columns" "6 12" \
        "$(grep -cE '^[24] ends .* [0-9.]+$' <<<"$said") $(grep -cE '"name".* engines, two devices, [24] ends: ' "$work/two.json")"
    check_has "initiated_bench: streams from one device to another need memory of devices" "--peer: a stream goes from memory of one device" \
        "$("$build/bench/initiated_bench" --peer cpu 2>&1)"
    cp docs/initiated.md "$work/page"
    check "docs/initiated.md: written from a file" "" "$(bench/initiated/page "$work/initiated.json" "$work/two.json" --on "CPU workers of a test" --into "$work/page" 2>&1)"
    check "docs/initiated.md: the tables have the rows of the file" "1 2 1 1" "$(for row in "Kernels on CPU workers of a test" "| 3 | " "| 64 KiB | " \
        "| transposition of 1024 x 1024, 16 ends | 1.35 | - | - | - |"; do grep -cF "$row" "$work/page/initiated.md"; done | xargs)"
    check "docs/initiated-*.svg: each is a picture" 4 "$(for file in "$work"/page/*.svg; do
        python3 -c 'import sys, xml.dom.minidom as dom; print(len(dom.parse(sys.argv[1]).getElementsByTagName("polyline")) == 3)' "$file"; done | grep -c True)"
    check_has "bench/initiated/page: a file of another program" "has no figures of initiated_bench" \
        "$(bench/initiated/page "$work/python.json" --into "$work/page" 2>&1)"
    said=$("$build/bench/initiated_bench" --over wire --engines 1 --queues 3 --sizes 65536 --size-queues 2 --ends 4 --proxies 2 --rounds 1 \
        --seconds 0.005 --json "$work/wire.json" 2>&1)
    check "initiated_bench: over wires: exit status" 0 $? || echo "$said"
    check "docs/initiated.md: written from two files" "" "$(bench/initiated/page "$work/initiated.json" "$work/wire.json" --into "$work/page" 2>&1)"
    check_has "docs/initiated.md: written from two files: rows" "1 engine a side, wires" "$(cat "$work/page/initiated.md")"
    said=$("$build/bench/initiated_bench" --payload device --only bandwidth 2>&1)
    check "initiated_bench: a CPU has no payload of kind device: exit status" 1 $?
    check_has "initiated_bench: a CPU has no payload of kind device: why" "device cpu: no copy engine" "$said"
    said=$("$build/bench/initiated_bench" --mtu 4096 --only bandwidth --sizes 65536 --size-queues 2 --proxies 1 --rounds 1 --seconds 0.005 2>&1)
    check "initiated_bench: packets of 4,096 bytes: exit status" 0 $? || echo "$said"
    said=$("$build/bench/initiated_bench" --payload device 2>&1)
    check "initiated_bench: exchanges have no payload of kind device: exit status" 2 $?
    check_has "initiated_bench: exchanges have no payload of kind device: what to do" "add --only rate,bandwidth" "$said"
    said=$("$build/bench/initiated_bench" --ends 5 2>&1)
    check "initiated_bench: ends that do not divide a matrix: exit status" 2 $?
    check_has "initiated_bench: ends that do not divide a matrix: what may be" "{2,4,8,16}" "$said"
fi

said=$(bench/figures --build "$build" --only steering_bench --words="--only parse --rounds 1 --seconds 0.001" \
    --json "$work/all.json" 2>&1)
check "figures: exit status" 0 $? || echo "$said"
check "figures: rows of programs" 2 "$(grep -c '"program": "steering_bench"' "$work/all.json")"
check "figures: the last line tells of the goals" 1 \
    "$(tail -1 <<<"$said" | grep -cE '^0 of [0-9]+ goals met; not measured: .*neighbor_bench: beside bad entries')" || echo "$said"

# A program that does not end is ended, and the others are measured.
mkdir -p "$work/slow/bench"
printf '#!/bin/sh\necho "$$" >%s/slow/pid; exec sleep 600\n' "$work" >"$work/slow/bench/a_bench"
printf '#!/bin/sh\nexec "%s/bench/steering_bench" --only parse --rounds 1 --seconds 0.001 "$@"\n' "$build" >"$work/slow/bench/b_bench"
chmod +x "$work"/slow/bench/*
said=$(bench/figures --build "$work/slow" --only a_bench --only b_bench --limit 5 --json "$work/slow.json" 2>&1)
check "figures: a program that does not end: exit status" 1 $? || echo "$said"
check_has "figures: a program that does not end: is named" "failed: a_bench (not done within 5 s)" "$said"
check "figures: a program that does not end: is no longer there" 1 "$(kill -0 "$(cat "$work/slow/pid")" 2>/dev/null; echo $?)"
check "figures: a program that does not end: rows of the others" 2 "$(grep -c '"program": "steering_bench"' "$work/slow.json")"
for words in "--sizes 63" "--sizes 64,x" "--cores 0" "--cores 0,4096"; do
    said=$(bench/versus --build "$build" $words 2>&1)
    check "versus $words: exit status" 2 $? || echo "$said"
    check_has "versus $words: names the value" "${words#* } are not" "$said"
done

# Made-up figures for everything that README.md and bench/README.md can show: each of their cells is written, and nothing else is touched.
python3 - "$work" <<'END'
import importlib.machinery, json, re, sys, types

sys.dont_write_bytecode = True
sys.path.insert(0, "bench")
figures = types.ModuleType("figures")
importlib.machinery.SourceFileLoader("figures", "bench/figures").exec_module(figures)
def made_up(path, names, machine):
    rest = (7654.3, "ns", 1, 9999, 1, "its peer", 1.5, "ratio >= 12.5", True, machine)
    names = {tuple(name.split("|", 1)) for name in names} | {(name.split("|")[0], "its peer") for name in names}
    rows = [dict(zip(figures.KEYS, (row, *rest)), program=program) for program, row in names]
    json.dump({"schema": 1, "rows": rows}, open(f"{sys.argv[1]}/{path}", "w"))
few = [name for _, name, _ in figures.README]
more = [name for template in figures.MORE.values() for name in re.findall("{([^}]*)}", template)]
made_up("made-up.json", [*few, *more, "gpu_bench|a flag", "gpu_bench|an item, kernel-peer-kernel"], "2 cores, AMD, made up")
made_up("many.json", [*few, *more], "16 cores, Xeon, made up")
made_up("other.json", few, "4 cores, M1, made up")
print("few", len(few), "more", len(figures.MORE), file=open(f"{sys.argv[1]}/counts", "w"))
END
read -r _ few _ more <"$work/counts"
mkdir "$work/bench" "$work/docs"
cp README.md "$work"
cp bench/README.md "$work/bench"
cp docs/gpu.md "$work/docs"
check "README.md: written from a file" "" "$(bench/figures --readme "$work/made-up.json" --into "$work" 2>&1)"
check "README.md: each row is written for that machine, and nothing else" "$few $few 0" \
    "$(grep -c '^| [^|]* | 7654 ns .*| >= 12.5 of that |$' "$work/README.md") $(diff README.md "$work/README.md" | grep -c '^>') $(
        grep -c '7654.*7654.*7654' "$work/README.md")"
check "bench/README.md: each row that figures names is written, and nothing else" "$more $more" \
    "$(grep -c 7654 "$work/bench/README.md") $(diff bench/README.md "$work/bench/README.md" | grep -c '^>')"
check "README.md: written from a file of the other machine" "" "$(bench/figures --readme "$work/many.json" --into "$work" 2>&1)"
check "README.md: each row is written for both machines" "$few" \
    "$(grep -c '^| [^|]* | 7654 ns .*| 7654 ns .*| >= 12.5 of that |$' "$work/README.md")"
check "bench/README.md: each row is written for both machines" "$more" "$(grep -c '^| [^|]* |[^|]*7654[^|]*|[^|]*7654' "$work/bench/README.md")"
check_has "README.md: files of two machines at once" "the figures are from AMD and Intel; write those of one machine at a time" \
    "$(bench/figures --readme "$work/made-up.json" "$work/many.json" --into "$work" 2>&1)"
check_has "README.md: a machine that has no columns" 'from "4 cores, M1, made up", and README.md has columns for AMD and Intel' \
    "$(bench/figures --readme "$work/other.json" --into "$work" 2>&1)"
check "README.md: has twelve rows at most" 1 $((few <= 12))
check "docs/gpu.md: written from a file" "" "$(bench/figures --gpu "$work/made-up.json" --into "$work" 2>&1)"
check "docs/gpu.md: the table has the rows of the file" "| a flag | 7,654 | 1.0 | 9,999 | ns |" \
    "$(sed -n '/figures: written/,/end of figures/p' "$work/docs/gpu.md" | grep "a flag")"
check "docs/gpu.md: rows of two GPUs have a table of their own" "| an item, kernel-peer-kernel | 7,654 | 1.0 | 9,999 | ns | 1.50 |" \
    "$(sed -n '/figures of two GPUs: written/,/end of figures of two GPUs/p' "$work/docs/gpu.md" | grep item)"

# bench/pairs, by two builds of fake programs.
# fake SIDE PROGRAM HELP: each time it runs, it writes the next line of standard input.
fake() {
    mkdir -p "$work/$1/bench"
    cat >"$work/$1/bench/$2.rows"
    cat >"$work/$1/bench/$2" <<END
#!/bin/sh
[ "\$1" = --help ] && { echo "$3"; exit; }
[ -s "\$0.rows" ] || { printf 'first words\nlast words\n' >&2; exit 3; }
echo $1 >>"$work/order"
for file; do :; done # the last word
sed -n "\$(grep -c $1 "$work/order")p" "\$0.rows" >"\$file"
END
    chmod +x "$work/$1/bench/$2"
}
# rows NAME "RATE TIME SWINGS"...: a line for each round; NAME is a fourth row.
rows() {
    local name=$1 values rate time swings
    shift
    for values; do
        read -r rate time swings <<<"$values"
        printf '{"schema": 1, "rows": [{"name": "rate", "unit": "M/s", "value": %s}, ' "$rate"
        printf '{"name": "time", "unit": "ns", "value": %s}, ' "$time"
        printf '{"name": "swings", "unit": "Mpps", "value": %s}, ' "$swings"
        printf '{"name": "%s", "unit": "ns", "value": 1}]}\n' "$name"
    done
}
# cells ROW: what the table of `said` has behind the name.
cells() { grep "^$1 " <<<"$said" | tr -s ' ' | cut -d' ' -f2-; }

knows="--count N --round-trips N --rounds N --json TEXT"
rows "old only" "1 100 10" "2 110 10" "3 120 10" "4 130 10" | fake old semaphore_bench "$knows"
rows "new only" "2 200 5" "4 220 5" "6 240 5" "8 260 10" | fake new semaphore_bench "$knows"
said=$(bench/pairs "$work/old" "$work/new" --rounds 4 --only semaphore --json "$work/pairs.json" 2>&1)
check "pairs: a row is below: exit status" 1 $? || echo "$said"
check "pairs: rates are new/old" "M/s 2.50 (1.75-3.25) 4.00 5.00 (3.50-6.50) 8.00 2.000 2.000" "$(cells rate)"
check "pairs: times are old/new, and the mark" "ns 115 (108-122) 100 230 (215-245) 200 0.500 0.500 BELOW" "$(cells time)"
check "pairs: a row with a best as good as before is not below" \
    "Mpps 10.00 (10.00-10.00) 10.00 5.00 (5.00-6.25) 10.00 0.500 1.000" "$(cells swings)"
check "pairs: rows of one build are named" \
    "not in both: semaphore_bench|old only (OLD: ns); semaphore_bench|new only (NEW: ns)" "$(grep "^not in both" <<<"$said")"
check "pairs: the last line" "3 rows, 1 below 0.97" "$(tail -1 <<<"$said")"
check "pairs: builds take turns" "old new new old old new new old" "$(xargs <"$work/order")"
check "pairs: JSON" "rate 2.0 2.0 False, time 0.5 0.5 True, swings 0.5 1.0 False" "$(python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(", ".join("{name} {median_ratio} {best_ratio} {below}".format(**row) for row in rows))' "$work/pairs.json")"

rm "$work/order"
said=$(bench/pairs "$work/old" "$work/new" --rounds 4 --only 'semaphore|^rate$' 2>&1)
check "pairs: no row is below: exit status" 0 $? || echo "$said"
check "pairs: --only PROGRAM|ROW" "1 rows, 0 below 0.97" "$(tail -1 <<<"$said")"

rm "$work/order"
fake old dma_bench "--small N --json TEXT" </dev/null
fake new dma_bench "--long N --small N --json TEXT" </dev/null
fake old forward_bench "--port --seconds --do TEXT:{receive,send,forward} --json a flag" </dev/null
fake new forward_bench "--port --seconds --do TEXT:{receive,send,forward,check} --json TEXT" </dev/null
fake old ring_bench "--seconds N --json TEXT" </dev/null
fake new ring_bench "--seconds N --json TEXT" <<<'{"schema": 1, "rows": []}'
said=$(bench/pairs "$work/old" "$work/new" --rounds 2 --only dma forward ring engine 'semaphore|^rate$' 2>&1)
check "pairs: a program failed: exit status" 1 $? || echo "$said"
check "pairs: a program failed: the others are measured" "1 rows, 0 below 0.97" "$(tail -1 <<<"$said")"
check_has "pairs: a program that failed is named, with its last words" \
    "OLD ring_bench --seconds 0.01: exit status 3: last words" "$(grep "^failed" <<<"$said")"
check_has "pairs: an option that an older program lacks" "OLD dma_bench --long 2 --small 100000: it has no --long" \
    "$(grep "^left out" <<<"$said")"
check_has "pairs: a value that an older program lacks" "--do check: its --do does not know check" "$(grep "^left out" <<<"$said")"
check "pairs: a program that neither build has" "not built in OLD and NEW: engine_bench" "$(grep "^not built" <<<"$said")"
said=$(bench/pairs "$work/old" "$work/none" 2>&1)
check "pairs: a folder that is missing: exit status" 2 $? || echo "$said"
said=$(bench/since no-such-commit 2>&1)
check "since: a commit that is missing: exit status" 2 $? || echo "$said"
check_has "since: a commit that is missing is named" "no-such-commit is no commit" "$said"


said=$("$build/bench/semaphore_bench" --cores 0,9999 2>&1)
check "semaphore_bench: a core that there is not: exit status" 2 $?
check_has "semaphore_bench: a core that there is not is named" "core 9999" "$said"
last=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
said=$(taskset -c "$last" "$build/bench/semaphore_bench" --rounds 1 --count 100 --round-trips 10 2>&1)
check_has "semaphore_bench: takes cores that it may use" "cores $last to $last" "$said"
said=$("$build/bench/semaphore_bench" --items 0 2>&1)
check "semaphore_bench: no items: exit status" 2 $? || echo "$said"
check "goals are of rows of a shape that programs read" "" "$(python3 - bench/goals.json 2>&1 <<'END'
import json, re, sys

document = json.load(open(sys.argv[1], encoding="utf-8"))
assert document["schema"] == 1
for rows in document["goals"].values():
    for name, row in rows.items():
        assert list(row) == ["goal", "why"] and re.fullmatch(r"(value|ratio) [<>]= [0-9.]+", row["goal"]) and row["why"], name
END
)"
finish
