#!/usr/bin/env bash
# fio's engine libcufile on our libcufile.so.0, with verify. Debian's fio is built without the engine: its one file is compiled, from
# Debian's sources of the same version, as an external engine with our cufile.h. tests/cufile/stand-in takes the place of CUDA.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")/..")
library=$build/lib/cufile
missed="fio's engine libcufile was not run"
[[ -e $library/libcufile.so.0 ]] || skip "$missed: $library/libcufile.so.0 is not built"
grep -q 'WEFTIO_SANITIZE:STRING=.' "$build/CMakeCache.txt" && skip "$missed: fio is built without the sanitizer"
for tool in fio apt-get dpkg-source dpkg-query; do
    command -v $tool >/dev/null || skip "$missed: $tool is not installed"
done
version=$(dpkg-query -W -f '${source:Version}' fio 2>/dev/null) || skip "$missed: fio is not Debian's"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -r $keyring ]] || skip "$missed: $keyring (package debian-archive-keyring) is not installed"

cache=$build/fio-sources
sources=$cache/fio-$version
# Debian's sources, by apt with lists of its own: the machine's own lists stay as they are.
fetch() {
    local apt=$cache/apt
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" || return
    echo "deb-src [signed-by=$keyring] http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME") main" >"$apt/sources.list"
    (cd "$cache" && options=(-q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists"
        -o Dir::Cache::archives="$apt/archives" -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root) &&
        timeout 200 apt-get "${options[@]}" update && timeout 200 apt-get "${options[@]}" source --download-only "fio=$version" &&
        rm -rf unpacked && dpkg-source --no-check --skip-patches -x fio_*.dsc unpacked && rm -rf "$apt" && mv unpacked "$sources")
}
if [[ ! -r $sources/engines/libcufile.c ]]; then
    mkdir -p "$cache"
    fetch >"$cache/fetch.txt" 2>&1 || skip "$missed: Debian's sources of fio $version are not to be had: $(grep -m 1 -E '^(E|Err)' "$cache/fetch.txt")"
fi

work=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
cd "$work" || exit
trap 'rm -rf "$work"' EXIT
# config-host.h says what fio's own build has found; a distribution has all of it.
if [[ ! -r $sources/config-host.h ]]; then
    (cd "$sources" && timeout 200 ./configure --disable-native >configure.txt 2>&1) || skip "$missed: fio's configure fails: $(tail -1 "$sources/configure.txt")"
fi
# The number of fio's interface to engines is that of the sources: fio refuses an engine of another one.
check "the engine compiles with our cufile.h" "" "$("${CC:-cc}" -shared -fPIC -O1 -g -std=gnu99 -D_GNU_SOURCE -include "$sources/config-host.h" \
    -DFIO_INTERNAL -DCONFIG_DYNAMIC_ENGINES -I "$sources" -I "$here/cufile/stand-in" -I "$here/../lib/cufile/include" "$sources/engines/libcufile.c" \
    -L "$library" -lcufile -o "$work/libcufile-engine.so" 2>&1 | grep -E 'error|cufile\.h')" || finish
cat "$work"/*.txt 2>/dev/null

# run NAME OPTION...: a job of fio with verify; the operations that fio counts, "verified", or what it says.
run() {
    local name=$1
    shift
    LD_LIBRARY_PATH=$library timeout -k 5 $((2 * patience)) fio --name="$name" --ioengine=external:"$work/libcufile-engine.so" --directory="$work" --size=8m \
        --gpu_dev_ids=0 --cuda_io=cufile --randseed=4711 --verify=crc32c --verify_fatal=1 --do_verify=1 \
        --output-format=json --output="$work/$name.json" "$@" >"$work/$name.txt" 2>&1
    local status=$?
    [[ $status == 0 ]] || { echo "exit status $status"; tail -5 "$work/$name.txt"; return; }
    python3 - "$work/$name.json" <<'PYTHON'
import json, sys
text = open(sys.argv[1]).read()
jobs = json.loads(text[text.index("{"):])["jobs"]
reads, writes, errors = (sum(job[of][what] if of else job[what] for job in jobs)
                         for of, what in (("read", "total_ios"), ("write", "total_ios"), ("", "error")))
print("verified" if reads > 0 and writes > 0 and errors == 0 else f"{reads} reads, {writes} writes, {errors} errors")
PYTHON
}

for direct in 0 1; do
    words="through the page cache"
    [[ $direct == 0 ]] || words="with O_DIRECT"
    check "random reads and writes of 4 KiB $words" verified "$(run small$direct --rw=randrw --bs=4k --direct=$direct)"
    check "random reads and writes of 1 MiB $words" verified "$(run large$direct --rw=randrw --bs=1m --direct=$direct --size=32m)"
    check "four threads at once $words" verified "$(run threads$direct --rw=randrw --bs=16k --direct=$direct --numjobs=4 --thread --size=2m)"
done
check "blocks that O_DIRECT does not take as they are" verified "$(run odd --rw=randrw --bs=3000 --direct=1 --size=3000000)"
check "in order" verified "$(run sequential --rw=rw --bs=64k --direct=0)"
mkdir full
if unshare -m mount -t tmpfs -o size=1m none full 2>/dev/null; then
    check_has "fio learns from errno that the disk is full" "cuFileWrite: err=28" "$(LD_LIBRARY_PATH=$library timeout -k 5 $patience unshare -m sh -c \
        "mount -t tmpfs -o size=1m none full && exec fio --name=full --ioengine=external:$work/libcufile-engine.so --directory=full --size=4m --rw=write \
        --bs=64k --fallocate=none --gpu_dev_ids=0 --cuda_io=cufile" 2>&1)"
fi
# What was verified is also what is in the file, as fio's own engine reads it.
check "pread finds the same" 0 "$(fio --name=sequential --ioengine=psync --directory="$work" --size=8m --rw=rw --bs=64k --randseed=4711 \
    --verify=crc32c --verify_only --verify_fatal=1 >"$work/psync.txt" 2>&1; echo $?)"
finish
