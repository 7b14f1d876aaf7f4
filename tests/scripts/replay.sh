#!/usr/bin/env bash
# weftio-replay as people run it: into a capture, from pipes and compressed files, stopped, with a port that goes away, and
# beside tcpreplay in a network namespace.
set -euo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
replay=$build/apps/weftio-replay
[[ -x $replay ]] || skip "weftio-replay was not run: not built"
for tool in python3 capinfos gzip zstd xz bzip2; do
    command -v $tool >/dev/null || skip "weftio-replay was not run: $tool is not installed"
done
capture=/usr/share/sip-tester/g711a.pcap
[[ -r $capture ]] || skip "weftio-replay was not run: $capture (package sip-tester) is not installed"

work=$(mktemp -d)
namespace=weftio-replay-$$
cleanup()
{
    end_all
    ip netns del "$namespace" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

fail()
{
    echo "FAILED: $*"
    exit 1
}

# expect STATUS COMMAND...
expect()
{
    local status=0
    bounded "${@:2}" >out.txt 2>err.txt || status=$?
    [[ $status == "$1" ]] || {
        cat out.txt err.txt
        fail "exit status $status, not $1: ${*:2}"
    }
}

# value FILE EXPRESSION: of a JSON report r
value()
{
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

echo "== exit codes"
expect 0 "$replay" --help
expect 1 "$replay"
expect 1 "$replay" none.pcap null
expect 1 "$replay" "$capture"
expect 4 "$replay" "$capture" iface:none0
head -c 20000 "$capture" >cut.pcap
expect 2 "$replay" -t cut.pcap null
grep -q "damaged at byte" err.txt || fail "a damaged file is not named"
expect 2 "$replay" --strict -t cut.pcap pcap:tx=strict.pcap
[[ ! -s strict.pcap ]] || fail "--strict has sent something"
expect 2 "$replay" --check cut.pcap "$capture"

echo "== names are shown, and steer no terminal"
one_plain_line() { [[ $(wc -l <err.txt) == 1 ]] && ! grep -q $'\x1b' err.txt || fail "not one line without control characters: $(cat -v err.txt)"; }
strange=$'a\n\x1b[31mb'
expect 1 "$replay" "$strange" null
one_plain_line
expect 1 "$replay" "--$strange" "$capture" null
one_plain_line
expect 4 "$replay" "$capture" "no$strange"
one_plain_line
expect 1 "$replay" -t "$capture" null --json "$strange/none"
one_plain_line
expect 4 "$replay" "$capture" "iface:$strange"
one_plain_line
cp cut.pcap "$strange"
expect 2 "$replay" -t "$strange" null
one_plain_line

echo "== a report that cannot be written is found before anything is sent"
for option in --json --plot; do
    expect 1 "$replay" $option "$work/none/report" "$capture" pcap:tx=unsent.pcap
    [[ ! -e unsent.pcap ]] || fail "$option: frames were sent"
done

echo "== no file that is read is written, and none twice"
cp "$capture" own.pcap
ln -s own.pcap link.pcap
ln own.pcap hard.pcap
for words in "own.pcap pcap:tx=own.pcap" "own.pcap pcap:tx=./link.pcap" "own.pcap pcap:tx=hard.pcap" "- pcap:tx=own.pcap" \
    "--json hard.pcap own.pcap null" "--plot link.pcap own.pcap -x 100 null" "--check --json own.pcap own.pcap" \
    "--json both --plot both own.pcap -x 100 null"; do
    # shellcheck disable=SC2086
    expect 1 "$replay" $words <own.pcap
    [[ $(wc -l <err.txt) == 1 && ! -s out.txt ]] || fail "the reason is not said in one line: $words"
    cmp -s "$capture" own.pcap || fail "a capture that was read is overwritten: $words"
done
[[ ! -e both ]] || fail "a file was made for two reports"

echo "== a full device is an error, with the reason"
full() { "$@" >/dev/full; }
for words in "-x 100 $capture null" "--check $capture" "--help" "-q -x 100 --json /dev/full $capture null" \
    "-x 100 --stats 0.01 $capture null" "-q --check --json - $capture"; do
    # shellcheck disable=SC2086
    expect 1 full "$replay" $words
    [[ $(grep -c "No space left on device" err.txt) == 1 ]] || fail "the reason is not said once: $words"
done

echo "== so is a limit of sizes: the process is not killed by its signal"
# What it prints goes through a pipe, since files take no byte.
expect 1 bash -o pipefail -c "(ulimit -f 0; exec '$replay' -q -x 100 --json large.json '$capture' null) 2>&1 | cat >&2"
grep -q "large.json: .*File too large" err.txt || fail "the reason is not said"

echo "== a closed standard output is an error, and no other file is taken for it"
expect 1 bash -c "exec '$replay' -x 1000 --stats 0.01 '$capture' pcap:tx=closed.pcap >&-"
[[ $(cat err.txt) == "weftio-replay: standard output is closed; redirect it to a file or to /dev/null" ]] || fail "the reason is not said"
expect 0 "$replay" -x 1000 "$capture" pcap:tx=open.pcap
[[ $(wc -c <closed.pcap) == "$(wc -c <open.pcap)" ]] || fail "the capture has more than the frames"

echo "== a report on standard output stands there alone"
expect 0 "$replay" -x 100 --stats 0.01 --json - "$capture" null
[[ $(value out.txt 'r["total"]["sent"]') == 236 ]] || fail "other lines are among the JSON"
grep -q " frames " err.txt || fail "lines of --stats are lost"
expect 0 "$replay" -x 100 --stats 0.01 --plot - "$capture" null
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' out.txt || fail "other lines are among the SVG"

echo "== what went wrong is said once, without a table of zeros"
expect 2 "$replay" -x 100 /etc/passwd null
[[ ! -s out.txt && $(grep -c "neither pcap nor pcapng" err.txt) == 1 ]] || fail "a file that is no capture"

echo "== --check goes on behind a missing file"
expect 1 "$replay" --check --json missing.json none.pcap "$capture" cut.pcap
[[ $(value missing.json '" ".join(f["verdict"] for f in r["files"]), r["exit_code"]') == "('unreadable good damaged', 1)" ]] ||
    fail "no true report of a missing file"

echo "== a line on a narrow terminal"
if command -v script >/dev/null; then
    shown_lines() { tr '\r' '\n' <narrow.txt | sed 's/\x1b\[K//g' | grep " frames "; }
    shows_three() { [[ $(shown_lines | wc -l) -ge 3 ]]; }
    # longest_line COMMAND: sets `longest`, of three lines or more that it shows behind this command on a terminal.
    longest_line()
    {
        local pid
        script -qec "echo \$\$ >narrow.pid; $1 exec '$replay' --loop 0 '$capture' null >/dev/null" /dev/null </dev/null >narrow.txt &
        pid=$!
        eventually_by $pid shows_three
        kill -INT "$(<narrow.pid)"
        wait_for_end $pid "the end of a run on a terminal" || true # its status is that of a run which may be late
        longest=$(shown_lines | awk '{ if (length > most) most = length } END { print most + 0 }')
    }
    longest_line "stty cols 50;"
    [[ $longest -gt 20 && $longest -le 49 ]] || fail "the longest line has $longest characters of 50 columns"
    longest_line ""
    [[ $longest -gt 49 && $longest -le 79 ]] || fail "the longest line has $longest characters where the width is unknown"
fi

echo "== a capture into a capture"
expect 0 "$replay" --json report.json "$capture" pcap:tx=sent.pcap
python3 - "$capture" sent.pcap report.json <<'PYTHON'
import json, struct, sys

def frames(path):
    data = open(path, "rb").read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    scale = 1 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    at = 24
    while at < len(data):
        seconds, fraction, captured, _ = struct.unpack_from(order + "IIII", data, at)
        yield seconds * 10**9 + fraction * scale, data[at + 16:at + 16 + captured]
        at += 16 + captured

source, sent = list(frames(sys.argv[1])), list(frames(sys.argv[2]))
report = json.load(open(sys.argv[3]))
total = report["total"]
assert [frame for _, frame in source] == [frame for _, frame in sent], "other frames, or another order"
assert total["last_planned_ns"] - total["first_planned_ns"] == source[-1][0] - source[0][0], "the plan is not the capture's"
assert total["early"] == 0 and total["sent"] == len(source) == 236, total
worst = max((s - sent[0][0]) - (c - source[0][0]) for (s, _), (c, _) in zip(sent, source))
print("largest difference from the source's deltas: %.1f us" % (worst / 1000))
PYTHON

echo "== frame check sequences are removed, as the capture tells of them"
cat >fcs.py <<'PYTHON'
import struct, sys, zlib

def frame(length): # with an FCS
    data = bytes.fromhex("020000000002" "020000000001" "88b5") + bytes(length - 14)
    return data + struct.pack("<I", zlib.crc32(data))

def block(type, body):
    return struct.pack("<II", type, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

lengths = (1514, 60)
if sys.argv[1] == "write":
    with open("fcs.pcap", "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 2 << 28 | 1 << 26 | 1))
        for length in lengths:
            file.write(struct.pack("<IIII", 1, 0, length + 4, length + 4) + frame(length))
    with open("fcs.pcapng", "wb") as file:
        file.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHIHHIHH", 1, 0, 0, 13, 1, 4, 0, 0)))
        for length in lengths:
            padded = frame(length).ljust((length + 7) // 4 * 4, b"\0")
            file.write(block(6, struct.pack("<IIIII", 0, 0, 1, length + 4, length + 4) + padded))
    sys.exit()
data, at = open(sys.argv[1], "rb").read(), 24
assert struct.unpack_from("<I", data, 20)[0] == 1, "the written capture claims an FCS"
for length in lengths:
    got = struct.unpack_from("<IIII", data, at)[2]
    assert data[at + 16:at + 16 + got] == frame(length)[:-4], "%d bytes instead of %d" % (got, length)
    at += 16 + got
assert at == len(data)
PYTHON
python3 fcs.py write
for file in fcs.pcap fcs.pcapng; do
    expect 0 "$replay" --check $file
    grep -q "2 with a frame check sequence" out.txt || fail "--check does not tell of the FCS: $(cat out.txt)"
    expect 0 "$replay" -t --json fcs.json $file pcap:tx=fcs-sent.pcap
    python3 fcs.py fcs-sent.pcap || fail "$file: other frames than were captured"
    [[ $(value fcs.json 'r["total"]["with_fcs"]') == 2 ]] || fail "$file: the report does not count the FCS"
done

echo "== nanoseconds survive"
cat >nanoseconds.py <<'PYTHON'
import json, struct, sys

def times(path):
    data, at = open(path, "rb").read(), 24
    assert data[:4] == b"\x4d\x3c\xb2\xa1", path + " has no nanoseconds"
    while at < len(data):
        seconds, ns, captured, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + ns
        at += 16 + captured

if sys.argv[1] == "write":
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for number in range(500): # gaps of 1,234,567 ns and more, none like another
            at = 1_700_000_000_000_000_001 + number * 1_234_567 + 7 * number * (number - 1) // 2
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, 60, 60) + bytes(60))
    sys.exit()
source, sent = list(times(sys.argv[1])), list(times(sys.argv[2]))
total = json.load(open(sys.argv[3]))["total"]
assert len(sent) == len(source) == 500, len(sent)
assert total["last_planned_ns"] - total["first_planned_ns"] == source[-1] - source[0], "the plan has lost nanoseconds"
assert any(at % 1000 for at in sent), "the times sent are whole microseconds"
# By the clock of net_pcap, which is off by what its thread was kept waiting for between two readings: a figure, no promise.
late = sorted((s - total["first_planned_ns"]) - (c - source[0]) for s, c in zip(sent, source))
print("sent less planned, in the capture that was written: least %d ns, p50 %d ns, p90 %d ns" % (late[0], late[250], late[450]))
PYTHON
python3 nanoseconds.py write nanoseconds.pcap
expect 0 "$replay" --json nanoseconds.json nanoseconds.pcap pcap:tx=nanoseconds-sent.pcap
python3 nanoseconds.py nanoseconds.pcap nanoseconds-sent.pcap nanoseconds.json || fail "nanoseconds"

echo "== pipes and compression"
gzip -k -c "$capture" >c.pcap.gz
zstd -q -c "$capture" >c.pcap.zst
xz -c "$capture" >c.pcap.xz
bzip2 -c "$capture" >c.pcap.bz2
for file in c.pcap.gz c.pcap.zst c.pcap.xz c.pcap.bz2; do
    expect 0 "$replay" -t "$file" pcap:tx=packed.pcap
    [[ $(bounded capinfos -M -T -r -c packed.pcap | cut -f2) == 236 ]] || fail "$file"
done
expect 0 bash -c "cat '$capture' | '$replay' -t --json pipe.json - null"
[[ $(value pipe.json 'r["total"]["sent"]') == 236 ]] || fail "standard input"
head -c 3000 c.pcap.gz >cut.pcap.gz
expect 2 "$replay" -t cut.pcap.gz null

echo "== verdicts beside capinfos"
shopt -s nullglob
gopacket=/usr/share/gocode/src/github.com/google/gopacket
captures=(/usr/share/sip-tester/*.pcap /usr/share/doc/pcapfix/examples/*.pcap /usr/share/doc/python3-dpkt/examples/data/*.pcap
    "$gopacket"/pcap/*.pcap "$gopacket"/pcapgo/tests/{be,le}/*.pcapng)
expect 2 "$replay" --check -q --json check.json "${captures[@]}" # some are damaged
value check.json '"\n".join("%s %d %s" % (f["file"], f["frames"], f["verdict"]) for f in r["files"])' >mine.txt
for file in "${captures[@]}"; do
    verdict=good
    row=$(bounded capinfos -M -T -r -c "$file" 2>said.txt) || verdict=damaged
    frames=$(cut -s -f2 <<<"$row")
    [[ -n $frames ]] || frames=$(sed -n 's/.*after reading \([0-9]*\) packets.*/\1/p' said.txt) # of some damaged files there is no row
    echo "$file ${frames:-0} $verdict"
done >capinfos.txt
diff mine.txt capinfos.txt || fail "other verdicts than capinfos"
echo "${#captures[@]} captures, $(grep -c damaged mine.txt) damaged"

# milliseconds
now() { date +%s%3N; }
# Whether the lines of --stats in stats.txt tell of more than ten frames.
plays() { grep -qE "([0-9],|[2-9]|[1-9][0-9])[0-9]+ frames" stats.txt; }

echo "== stopped by a signal"
core=$(($(nproc) - 1))
"$replay" --loop 0 --core $core --stats 0.1 --json stopped.json "$capture" null >stats.txt &
pid=$!
eventually_by $pid plays
for thread in /proc/$pid/task/*; do
    echo "$(cat $thread/comm) $(taskset -pc "${thread##*/}" | sed 's/.*: //')"
done >threads.txt
if [[ $core -gt 0 ]]; then
    [[ $(grep -c "^weftio/[0-9]* $core\$" threads.txt) == 1 ]] || fail "the engine is not on core $core: $(cat threads.txt)"
    grep -v "^weftio/[0-9]* " threads.txt | grep -qE "[ ,-]$core\$" && fail "others are on the engine's core: $(cat threads.txt)"
fi
begin=$(now)
kill -INT $pid
status=0
wait_for_end $pid || status=$?
echo "ended after $(($(now) - begin)) ms with status $status"
# On a busy machine it may be behind its plan when it is stopped: then what was due and did not leave is told, by status 3.
stopped_well() { # STATUS
    [[ $(value stopped.json "r['interrupted'] and r['total']['sent'] > 10 and $1 == (3 if r['total']['not_sent'] else 0)") == True ]]
}
stopped_well $status || fail "stopping a run without end: exit status $status, $(value stopped.json 'r["total"]')"
mkfifo pipe
(cat "$capture"; exec sleep $((10 * patience))) >pipe &
writer=$!
"$replay" --json stopped.json - null <pipe >/dev/null &
pid=$!
catches_sigint() { ((0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 2)); }
eventually_by $pid catches_sigint
kill -INT $pid
status=0
wait_for_end $pid || status=$?
kill $writer
[[ $status == 3 ]] || fail "stopping a run that waits for a pipe: $status"

echo "== a kernel that waits for frames to go leaves its core to others"
"$replay" -q --loop 0 --pps 50000 --json stopped.json "$capture" null &
pid=$!
has_kernel() { grep -qx weftio/b0 /proc/$pid/task/*/comm 2>/dev/null; }
eventually_by $pid has_kernel
begin=$(now)
sleep 2
took_ms=$(($(now) - begin))
for thread in /proc/$pid/task/*; do
    [[ $(cat "$thread/comm") == weftio/b0 ]] && read -r used_ns _ <"$thread/schedstat"
done
kill -INT $pid
status=0
wait_for_end $pid || status=$?
stopped_well $status || fail "exit status $status of a run without end, $(value stopped.json 'r["total"]')"
echo "used $((used_ns / 1000000)) ms of $took_ms ms"
[[ $((used_ns / 500000)) -lt $took_ms ]] || fail "it spins"

echo "== a sparse capture of 100 GB"
# Records of 200 kB whose bytes are a hole; the first 500,000 are all there are.
python3 - <<'PYTHON'
import os, struct
record, frames = 200_000, 500_000
with open("sparse.pcap", "wb") as file:
    file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
    for number in range(2000):
        os.pwrite(file.fileno(), struct.pack("<IIII", number, 0, record, record), 24 + number * (record + 16))
        file.flush()
    # From there on, empty records: a hole is a row of headers with length 0.
    os.truncate(file.fileno(), 24 + frames * (record + 16))
PYTHON
begin=$(now)
expect 0 /usr/bin/env time -f %M -o rss.txt "$replay" -t --mtu-trunc --limit 2000 --json sparse.json sparse.pcap null
rss=$(tail -1 rss.txt)
echo "$(du -h --apparent-size sparse.pcap | cut -f1) sparse, ended after $(($(now) - begin)) ms, $((rss / 1024)) MiB"
[[ $rss -le $((256 * 1024)) && $(value sparse.json 'r["total"]["sent"]') == 2000 ]] || fail "sparse capture"

ip netns add "$namespace" 2>/dev/null || skip "weftio-replay was not run on a veth pair beside tcpreplay: network namespaces need root"
within() { ip netns exec "$namespace" "$@"; }
within ip link add left type veth peer name right
within ip link set left up
within ip link set right up

echo "== a veth pair, beside tcpreplay"
received() { within cat /sys/class/net/right/statistics/rx_packets; }
has_received() { [[ $(($(received) - before)) -ge $1 ]]; }
before=$(received)
expect 0 within "$replay" --json veth.json -x 5 "$capture" iface:left
within_patience has_received 236 || fail "frames did not reach the other end"
value veth.json '"weftio-replay (%s): drift %d ns, error p50 %d ns, p99 %d ns" % (r["driver"], r["total"]["drift_ns"], r["total"]["schedule_error_ns"]["p50"], r["total"]["schedule_error_ns"]["p99"])'
if command -v tcpreplay >/dev/null; then
    bounded within tcpreplay -q -x 5 -i left "$capture" 2>&1 | grep -E "Actual|Rated" || true
    echo "planned $(value veth.json 'r["planned_duration_ns"] / 1e9') s"
fi

echo "== a port that goes away"
within "$replay" --loop 0 --json gone.json "$capture" iface:left >/dev/null 2>gone.txt &
pid=$!
before=$(received)
eventually_by $pid has_received 50 # more than the report below is to speak of
within ip link set left down # as it is for a moment while it is removed
within ip link del left
status=0
wait_for_end $pid || status=$?
[[ $status == 4 ]] || fail "exit status $status when the port goes away"
grep -q "is gone" gone.txt || fail "the port that went away is not named"
[[ $(value gone.json 'r["exit_code"] == 4 and r["total"]["sent"] > 10') == True ]] || fail "no true report of a port that went away"
echo "passed"
